"""Errors: which predicted unit belongs to which gold unit, and what each model made of it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from spacy_psa.studio.comparison.units import Unit

RIGHT = "right"
MISSED = "missed"
INVENTED = "invented"
BOUNDS = "wrong bounds"
TYPE = "wrong type"
BOTH = "wrong bounds and type"
WRONG = (MISSED, INVENTED, BOUNDS, TYPE, BOTH)
NOTHING = ""
"""The type of a unit that is not there, in a table of confusion."""


class Pair(NamedTuple):
    """A gold unit and the predicted unit for it; one of them may be missing."""

    gold: Unit | None
    predicted: Unit | None

    @property
    def kind(self) -> str:
        """`RIGHT` or one of the kinds in `WRONG`."""
        if self.gold is None:
            return INVENTED
        if self.predicted is None:
            return MISSED
        if self.gold == self.predicted:
            return RIGHT
        if self.gold[:2] == self.predicted[:2]:
            return TYPE
        return BOUNDS if self.gold[2] == self.predicted[2] else BOTH


def match(gold: Sequence[Unit], predicted: Sequence[Unit]) -> list[Pair]:
    """Match the gold and the predicted units of a sentence, one to one, in the order of the text.

    Equal units first, then those of equal bounds, then those that overlap and have the same label,
    then others that overlap; of several, those that share the greatest part of their tokens.
    """
    right = set(gold) & set(predicted)
    pairs = [Pair(unit, unit) for unit in right]
    left = sorted(set(gold) - right)
    others = sorted(set(predicted) - right)
    ranked = sorted(
        (a[:2] != b[:2], a[2] != b[2], -_shared(a, b), a, b)
        for a in left
        for b in others
        if a[0] < b[1] and b[0] < a[1]
    )
    matched: set[tuple[str, Unit]] = set()
    for *_, a, b in ranked:
        if ("gold", a) not in matched and ("predicted", b) not in matched:
            matched |= {("gold", a), ("predicted", b)}
            pairs.append(Pair(a, b))
    pairs += [Pair(a, None) for a in left if ("gold", a) not in matched]
    pairs += [Pair(None, b) for b in others if ("predicted", b) not in matched]
    return sorted(pairs, key=lambda pair: pair.gold or pair.predicted or (0, 0, ""))


def _shared(a: Unit, b: Unit) -> float:
    """Compute the tokens that both have over the tokens that either has."""
    both = min(a[1], b[1]) - max(a[0], b[0])
    return both / (max(a[1], b[1]) - min(a[0], b[0]))


class Case(NamedTuple):
    """A gold unit that a model does not have, or a predicted unit without a gold unit."""

    gold: Unit | None
    predicted: tuple[Unit | None, ...]
    """The unit of each model."""
    kinds: tuple[str, ...]
    """The kind for each model. A model that rightly has no unit is right."""

    @property
    def units(self) -> list[Unit]:
        """The distinct units, the gold one first."""
        return [unit for unit in dict.fromkeys([self.gold, *self.predicted]) if unit is not None]

    def sureness(self, model: int, posteriors: dict[Unit, float]) -> float:
        """Compute how sure a model was of its decision.

        This is the model's probability of its unit; if it has none, of not having the first unit.
        """
        own = self.predicted[model]
        return posteriors[own] if own else 1 - posteriors[self.units[0]]


def cases(models: Sequence[Sequence[Pair]]) -> list[Case]:
    """Find the errors in a sentence from the pairs of each model, in the order of the text.

    Units that several models invent over the same tokens are one case.
    """
    wrong = [case for case in _of_gold(models) if {*case.kinds} != {RIGHT}]
    wrong += _invented(models)
    return sorted(wrong, key=lambda case: case.units[0])


def _of_gold(models: Sequence[Sequence[Pair]]) -> Iterator[Case]:
    by_gold = [{pair.gold: pair for pair in pairs if pair.gold is not None} for pairs in models]
    for gold in by_gold[0]:
        pairs = [own[gold] for own in by_gold]
        yield Case(gold, tuple(p.predicted for p in pairs), tuple(p.kind for p in pairs))


def _invented(models: Sequence[Sequence[Pair]]) -> Iterator[Case]:
    places: dict[tuple[int, int], list[Unit | None]] = {}
    for number, pairs in enumerate(models):
        for pair in pairs:
            if pair.gold is None and pair.predicted is not None:
                place = places.setdefault(pair.predicted[:2], [None] * len(models))
                place[number] = pair.predicted
    for units in places.values():
        yield Case(None, tuple(units), tuple(INVENTED if unit else RIGHT for unit in units))


def confusion(pairs: Iterable[Pair], labels: Sequence[str]) -> dict[str, Any]:
    """Count the pairs of gold and predicted types.

    `rows` has, for each gold type and then for no gold unit (invented), the numbers for each
    predicted type and then for no predicted unit (missed). `moved` has the numbers among them whose
    bounds differ.
    """
    every: Counter[tuple[str, str]] = Counter()
    moved: Counter[tuple[str, str]] = Counter()
    for gold, predicted in pairs:
        cell = (gold[2] if gold else NOTHING, predicted[2] if predicted else NOTHING)
        every[cell] += 1
        moved[cell] += bool(gold and predicted and gold[:2] != predicted[:2])
    names = [*labels, NOTHING]
    return {
        name: [[counts[row, column] for column in names] for row in names]
        for name, counts in (("rows", every), ("moved", moved))
    }
