"""Recall by token and class (Li2019 section 5.4, Tables 3 and 4).

Entity tags ("B-PER", "O") can be read as two tasks: where entities are, by
`chunk_class`, and what they are, by `type_class`. Nothing is trained again.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple


class Recall(NamedTuple):
    """Of `total` gold tokens of a class, `found` were given it."""

    found: int
    total: int

    @property
    def rate(self) -> float:
        """Between 0 and 1."""
        return self.found / self.total


def chunk_class(tag: str) -> str:
    """The B of "B-PER": O, S, B, I or E (O, B or I of BIO tags)."""
    return tag.partition("-")[0]


def type_class(tag: str) -> str:
    """The PER of "B-PER", NONE for "O"."""
    return tag.partition("-")[2] or "NONE"


def token_recall(
    gold: Iterable[Sequence[str | None]],
    predicted: Iterable[Sequence[str]],
    project: Callable[[str], str] = str,
) -> dict[str, Recall]:
    """The recall of each class that gold tokens have, sorted by class.

    gold, predicted: tags sentence by sentence; gold tokens of None are left out.
    project: from a tag to its class; by default the tag itself.

    Errors: ValueError where the two are not of the same lengths.
    """
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for right, given in zip(gold, predicted, strict=True):
        for tag, other in zip(right, given, strict=True):
            if tag is not None:
                total[project(tag)] += 1
                found[project(tag)] += project(tag) == project(other)
    return {name: Recall(found[name], total[name]) for name in sorted(total)}


def differences(base: Mapping[str, Recall], other: Mapping[str, Recall]) -> dict[str, float]:
    """What another setup's recalls are above `base`'s, class by class, in points of 100:
    the columns of Li2019 Table 3 and 4."""
    return {name: 100 * (other[name].rate - base[name].rate) for name in base}
