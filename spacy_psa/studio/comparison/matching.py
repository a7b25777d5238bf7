"""Which predicted unit stands for which gold unit, and what is wrong with it."""

from collections.abc import Sequence
from typing import NamedTuple

from spacy_psa.studio.comparison.units import Unit

RIGHT = "right"
MISSED = "missed"
INVENTED = "invented"
BOUNDS = "wrong bounds"
TYPE = "wrong type"
BOTH = "wrong bounds and type"
WRONG = (MISSED, INVENTED, BOUNDS, TYPE, BOTH)


class Pair(NamedTuple):
    """A gold unit and the predicted unit for it; one of them may be missing.

    Examples:
        >>> Pair((0, 2, "PER"), (0, 1, "PER")).kind
        'wrong bounds'
        >>> Pair(None, (0, 1, "PER")).kind
        'invented'
    """

    gold: Unit | None
    found: Unit | None

    @property
    def kind(self) -> str:
        """What is right or wrong."""
        if self.gold is None:
            return INVENTED
        if self.found is None:
            return MISSED
        if self.gold == self.found:
            return RIGHT
        if self.gold[:2] == self.found[:2]:
            return TYPE
        return BOUNDS if self.gold[2] == self.found[2] else BOTH


def match(gold: Sequence[Unit], found: Sequence[Unit]) -> list[Pair]:
    """Match the gold and the predicted units of a sentence, one to one.

    Equal units first, then those of equal bounds, then those that overlap and have the same label,
    then others that overlap; of several, those that share the greatest part of their tokens.

    Returns:
        A pair for each unit, in the order of the text.

    Examples:
        >>> [pair.kind for pair in match([(0, 2, "PER"), (4, 5, "LOC")], [(0, 1, "ORG")])]
        ['wrong bounds and type', 'missed']
    """
    right = set(gold) & set(found)
    pairs = [Pair(unit, unit) for unit in right]
    left = sorted(set(gold) - right)
    others = sorted(set(found) - right)
    ranked = sorted(
        (a[:2] != b[:2], a[2] != b[2], -_shared(a, b), a, b)
        for a in left
        for b in others
        if a[0] < b[1] and b[0] < a[1]
    )
    taken: set[tuple[str, Unit]] = set()
    for *_, a, b in ranked:
        if ("gold", a) not in taken and ("found", b) not in taken:
            taken |= {("gold", a), ("found", b)}
            pairs.append(Pair(a, b))
    pairs += [Pair(a, None) for a in left if ("gold", a) not in taken]
    pairs += [Pair(None, b) for b in others if ("found", b) not in taken]
    return sorted(pairs, key=lambda pair: pair.gold or pair.found or (0, 0, ""))


def _shared(one: Unit, other: Unit) -> float:
    """Compute the tokens that both have over the tokens that either has."""
    both = min(one[1], other[1]) - max(one[0], other[0])
    return both / (max(one[1], other[1]) - min(one[0], other[0]))
