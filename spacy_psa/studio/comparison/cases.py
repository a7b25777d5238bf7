"""The errors of one or two models: what each made of the same gold unit, or of none."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spacy_psa.studio.comparison.matching import INVENTED, RIGHT, Pair
from spacy_psa.studio.comparison.units import Unit


class Case(NamedTuple):
    """A gold unit that a model has not, or a predicted unit without a gold one.

    Examples:
        >>> case = Case((0, 2, "PER"), ((0, 2, "PER"), (0, 1, "PER")), ("right", "wrong bounds"))
        >>> case.units
        [(0, 2, 'PER'), (0, 1, 'PER')]
    """

    gold: Unit | None
    found: tuple[Unit | None, ...]
    """The unit of each model."""
    kinds: tuple[str, ...]
    """What is right or wrong with it. A model that rightly has no unit is right."""

    @property
    def units(self) -> list[Unit]:
        """The distinct units, the gold one first."""
        return [unit for unit in dict.fromkeys([self.gold, *self.found]) if unit is not None]


def cases(models: Sequence[Sequence[Pair]]) -> list[Case]:
    """Find the errors in a sentence.

    Units that several models invent over the same tokens are one case.

    Args:
        models: the pairs of each model, as `match` gives them.

    Returns:
        The cases in which a model is wrong, in the order of the text.

    Examples:
        >>> one = [Pair((0, 1, "PER"), (0, 1, "PER")), Pair(None, (2, 3, "LOC"))]
        >>> other = [Pair((0, 1, "PER"), None), Pair(None, (2, 3, "ORG"))]
        >>> [case.kinds for case in cases([one, other])]
        [('right', 'missed'), ('invented', 'invented')]
    """
    found = [case for case in _of_gold(models) if {*case.kinds} != {RIGHT}]
    found += _invented(models)
    return sorted(found, key=lambda case: case.units[0])


def _of_gold(models: Sequence[Sequence[Pair]]) -> Iterator[Case]:
    by_gold = [{pair.gold: pair for pair in pairs if pair.gold is not None} for pairs in models]
    for gold in by_gold[0]:
        pairs = [own[gold] for own in by_gold]
        yield Case(gold, tuple(p.found for p in pairs), tuple(p.kind for p in pairs))


def _invented(models: Sequence[Sequence[Pair]]) -> Iterator[Case]:
    places: dict[tuple[int, int], list[Unit | None]] = {}
    for number, pairs in enumerate(models):
        for pair in pairs:
            if pair.gold is None and pair.found is not None:
                found = places.setdefault(pair.found[:2], [None] * len(models))
                found[number] = pair.found
    for units in places.values():
        yield Case(None, tuple(units), tuple(INVENTED if unit else RIGHT for unit in units))


def sureness(case: Case, model: int, posteriors: dict[Unit, float]) -> float:
    """Tell how sure a model was of what it did in a case.

    This is the probability of its unit; where it has none, that of not having the unit of the case.

    Args:
        case: the case.
        model: the number of the model.
        posteriors: the model's probability of each unit of the case.

    Examples:
        >>> case = Case((0, 2, "PER"), (None,), ("missed",))
        >>> sureness(case, 0, {(0, 2, "PER"): 0.25})
        0.75
    """
    own = case.found[model]
    return posteriors[own] if own else 1 - posteriors[case.units[0]]
