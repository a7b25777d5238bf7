"""Recall by token and class (Li2019 section 5.4, Tables 3 and 4).

Entity tags ("B-PER", "O") can be read as two tasks: `chunk_class` tells where entities are, and
`type_class` what they are. The classes are read from the tags of one model; nothing is trained
again.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple


class Recall(NamedTuple):
    """The recall of a class: of `total` gold tokens of the class, `found` were predicted as it.

    Examples:
        >>> Recall(found=3, total=4).rate
        0.75
    """

    found: int
    total: int

    @property
    def rate(self) -> float:
        """The fraction of tokens found, between 0 and 1."""
        return self.found / self.total


def chunk_class(tag: str) -> str:
    """Give the chunk class of a tag: O, S, B, I or E (O, B or I of BIO tags).

    Examples:
        >>> chunk_class("B-PER"), chunk_class("O")
        ('B', 'O')
    """
    return tag.partition("-")[0]


def type_class(tag: str) -> str:
    """Give the type of a tag, NONE for "O".

    Examples:
        >>> type_class("B-PER"), type_class("O")
        ('PER', 'NONE')
    """
    return tag.partition("-")[2] or "NONE"


def token_recall(
    gold: Iterable[Sequence[str | None]],
    predicted: Iterable[Sequence[str]],
    project: Callable[[str], str] = str,
) -> dict[str, Recall]:
    """Compute the recall of each class of the gold tokens, sorted by class.

    Args:
        gold: the tags of each sentence; tokens with None are left out.
        predicted: the predicted tags of each sentence.
        project: gives the class of a tag; by default the tag itself.

    Raises:
        ValueError: if the two have different lengths.

    Examples:
        >>> token_recall([["B-PER", "O", None]], [["B-LOC", "O", "O"]], chunk_class)
        {'B': Recall(found=1, total=1), 'O': Recall(found=1, total=1)}
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
    """Subtract the recalls of `base` from those of another setup, in percentage points by class.

    These are the columns of Li2019 Tables 3 and 4.

    Examples:
        >>> differences({"PER": Recall(1, 2)}, {"PER": Recall(2, 2)})
        {'PER': 50.0}
    """
    return {name: 100 * (other[name].rate - base[name].rate) for name in base}
