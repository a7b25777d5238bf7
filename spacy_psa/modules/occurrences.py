"""Where the word of a token stands elsewhere in the same document."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_psa.kernels import available

Ints = NDArray[np.int64]


def nearest_occurrences(words: NDArray[Any], documents: Ints, most: int) -> Ints:
    """Find the other places of each word in its document, the nearest first.

    The time grows linearly with the number of tokens, however often a word occurs.

    Args:
        words: (N,) a number for each token; equal numbers are the same word.
        documents: (N,) the number of the document of each token.
        most: k, the most places for a token. Of two places at the same distance, the earlier one
            comes first.

    Returns:
        (N, k) int64, -1 in the places that are left. k is smaller than `most` where no word has as
        many other places.

    Examples:
        >>> words = np.array([7, 8, 7, 9, 7, 8])
        >>> nearest_occurrences(words, np.array([0, 0, 0, 0, 0, 1]), most=2).tolist()
        [[2, 4], [-1, -1], [0, 4], [-1, -1], [2, 0], [-1, -1]]
    """
    order = np.lexsort((words, documents))  # stable: the places of a word ascend
    new = np.ones(len(order), dtype=np.bool_)
    for keys in (words[order], documents[order]):
        new[1:] &= keys[1:] == keys[:-1]
    new[1:] = ~new[1:]
    starts = np.append(np.flatnonzero(new), len(order))
    most = min(most, max(int(np.diff(starts).max(initial=0)) - 1, 1))
    found = np.full((len(order), most), -1)
    if available():
        from spacy_psa.kernels.occurrences import walk as compiled_walk

        compiled_walk(order, starts, found)
    else:
        walk(order, starts, found)
    return found


def without(occurrences: Ints, left_out: NDArray[np.bool_]) -> Ints:
    """Leave some tokens out of the occurrences of others.

    Args:
        occurrences: (N, k) as `nearest_occurrences` gives them.
        left_out: (N,) the tokens.

    Returns:
        (N, k), in the same order, -1 in the places that are left, which are the last ones of a row.

    Examples:
        >>> occurrences = np.array([[1, 2], [0, 2], [1, 0], [-1, -1]])
        >>> without(occurrences, np.array([False, True, False, False])).tolist()
        [[2, -1], [0, 2], [0, -1], [-1, -1]]
    """
    kept = np.where(left_out[occurrences], -1, occurrences)
    order = np.argsort(kept < 0, axis=1, kind="stable")
    return np.take_along_axis(kept, order, 1)


def walk(order: Ints, starts: Ints, found: Ints) -> None:
    """Fill in the nearest places; the arguments are those of the compiled twin.

    It sorts the k places before each place and the k places after it by their distance.
    """
    most = found.shape[1]
    sizes = np.diff(starts)
    first, end = np.repeat(starts[:-1], sizes), np.repeat(starts[1:], sizes)
    steps = np.arange(1, most + 1)
    near = np.arange(len(order))[:, None] + np.concatenate([-steps, steps])
    inside = (near >= first[:, None]) & (near < end[:, None])
    places = order[np.where(inside, near, 0)]
    distance = np.where(inside, np.abs(places - order[:, None]), np.iinfo(np.int64).max)
    chosen = np.argsort(distance, axis=1, kind="stable")[:, :most]
    rows = np.arange(len(order))[:, None]
    found[order] = np.where(inside[rows, chosen], places[rows, chosen], -1)
