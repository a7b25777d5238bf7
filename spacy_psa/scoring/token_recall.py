"""Recall by token and class (Li2019 section 5.4, Tables 3 and 4).

Entity tags ("B-PER", "O") can be read as two tasks: `chunk_class` tells where entities are, and
`type_class` what they are. The classes are read from the tags of one model; nothing is trained
again.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple


class Recall(NamedTuple):
    """The recall of a class: of `total` gold tokens of the class, `right` were predicted as it."""

    right: int
    total: int

    @property
    def rate(self) -> float:
        """The fraction of tokens that are right, between 0 and 1."""
        return self.right / self.total


def chunk_class(tag: str) -> str:
    """Return the chunk class of a tag: O, S, B, I or E (O, B or I of BIO tags)."""
    return tag.partition("-")[0]


def type_class(tag: str) -> str:
    """Return the type of a tag, NONE for "O"."""
    return tag.partition("-")[2] or "NONE"


def token_recall(
    gold: Iterable[Sequence[str | None]],
    predicted: Iterable[Sequence[str]],
    project: Callable[[str], str] = str,
) -> dict[str, Recall]:
    """Compute the recall of each class of the gold tokens, sorted by class.

    The tags are by sentence; gold tokens with None are left out. `project` returns the class of a
    tag; by default the tag itself.
    """
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for wanted, given in zip(gold, predicted, strict=True):
        for tag, other in zip(wanted, given, strict=True):
            if tag is not None:
                total[project(tag)] += 1
                right[project(tag)] += project(tag) == project(other)
    return {name: Recall(right[name], total[name]) for name in sorted(total)}


def differences(base: Mapping[str, Recall], other: Mapping[str, Recall]) -> dict[str, float]:
    """Subtract the recalls of `base` from those of another setup, in percentage points by class.

    These are the columns of Li2019 Tables 3 and 4.
    """
    return {name: 100 * (other[name].rate - base[name].rate) for name in base}
