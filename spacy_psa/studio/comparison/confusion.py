"""Which type a model takes for which."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from spacy_psa.studio.comparison.matching import Pair

NOTHING = ""
"""The label of what is not there."""


def confusion(pairs: Iterable[Pair], labels: Sequence[str]) -> dict[str, Any]:
    """Count the pairs of gold and predicted types.

    Args:
        pairs: the pairs of all sentences.
        labels: the types, in the order of rows and columns.

    Returns:
        `rows`, for each gold type and then for no gold unit (invented), the numbers for each
        predicted type and then for no predicted unit (missed); and `moved`, the numbers among them
        whose bounds differ.

    Examples:
        >>> pairs = [Pair((0, 1, "A"), (0, 1, "B")), Pair((2, 4, "A"), (2, 3, "A")),
        ...          Pair((5, 6, "B"), None), Pair(None, (7, 8, "A"))]
        >>> confusion(pairs, ["A", "B"])
        {'rows': [[1, 1, 0], [0, 0, 1], [1, 0, 0]], 'moved': [[1, 0, 0], [0, 0, 0], [0, 0, 0]]}
    """
    every: Counter[tuple[str, str]] = Counter()
    moved: Counter[tuple[str, str]] = Counter()
    for gold, found in pairs:
        cell = (gold[2] if gold else NOTHING, found[2] if found else NOTHING)
        every[cell] += 1
        moved[cell] += bool(gold and found and gold[:2] != found[:2])
    names = [*labels, NOTHING]
    return {
        name: [[counts[gold, found] for found in names] for gold in names]
        for name, counts in (("rows", every), ("moved", moved))
    }
