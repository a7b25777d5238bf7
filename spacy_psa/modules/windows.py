"""Long documents in overlapping windows of wordpieces, for encoders that read a few hundred."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

from spacy_psa.errors import SettingError, check_sizes

Ints = NDArray[numpy.int64]
PADDING = 0.05
"""The most padding of a group of windows, as a share of it."""
FREE = 32
"""Places of padding that a group may have in any case: an encoder is slower for many groups."""


class Windows(NamedTuple):
    """Windows over a document of M words with P wordpieces."""

    starts: Ints
    """(W,) the first wordpiece of each window."""
    size: int
    """The wordpieces of each window."""
    owners: Ints
    """(M,) the window that each word is taken from."""


def windows(pieces: Ints, window: int, context: int) -> Windows:
    """Cover a document with windows, and find the one in which each word is most central.

    All windows have the same size and the distance from one to the next is the same, up to
    rounding. Except at the ends of the document, each word has at least about `context` wordpieces
    of its window on both sides.

    Args:
        pieces: (M,) the number of wordpieces of each word, which may be 0.
        window: the most wordpieces of a window.
        context: the least that two windows which follow each other overlap is twice this number.

    Examples:
        >>> windows(numpy.ones(10, dtype=int), window=6, context=1)
        Windows(starts=array([0, 4]), size=6, owners=array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1]))
    """
    ends = numpy.cumsum(pieces)
    total = int(ends[-1]) if len(ends) else 0
    if total <= window:
        return Windows(numpy.zeros(1, int), total, numpy.zeros(len(pieces), int))
    count = -(-(total - window) // (window - 2 * context)) + 1
    starts = numpy.arange(count) * (total - window) // (count - 1)
    # Between two centres, and of a word between its wordpieces; all doubled, to stay whole.
    middles = starts[:-1] + starts[1:] + window
    return Windows(starts, window, numpy.searchsorted(middles, 2 * ends - pieces, side="right"))


def check_windows(window: int, context: int) -> None:
    """Check the settings of `windows`.

    Raises:
        SettingError: for a setting out of its range.
    """
    check_sizes(window=window)
    check_sizes(least=0, context=context)
    if 2 * context >= window:
        raise SettingError("context", context, f"it must be less than half of window, {window}")


def groups(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Group windows of similar length, the longest first.

    Args:
        lengths: the length of each window.
        budget: the most places of a group, padding included. A single window may exceed it.

    Yields:
        The indices of the windows in a group. At most a share of `PADDING` of its places is
        padding, or `FREE` places.

    Examples:
        >>> list(groups([100, 3, 99, 2], budget=1000))
        [[0, 2], [1, 3]]
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    group: list[int] = []
    filled = 0
    for index in order:
        if group:
            places = lengths[group[0]] * (len(group) + 1)
            padding = places - filled - lengths[index]
            if places > budget or padding > max(FREE, PADDING * places):
                yield group
                group, filled = [], 0
        group.append(index)
        filled += lengths[index]
    if group:
        yield group
