"""Best sequences of linear chains whose scores of pairs are the same at all places, for the CPU.

The score of the pair (previous, tag) at a token is emissions[token, tag] + transitions[previous,
tag]. The twins are the kernels of `kernels.pair_chain` and `kernels.chain` over the sums of all
legal pairs, with the same results to the bit.
"""

import numpy as np
from numpy.typing import NDArray

from spacy_psa.kernels.chain import _longest, _merge, _trace, _trace_kbest
from spacy_psa.kernels.compiled import compiled

Floats = NDArray[np.float32] | NDArray[np.float64]
Integers = NDArray[np.int64]


@compiled()
def viterbi(
    emissions: Floats,
    transitions: Floats,
    lengths: Integers,
    previous: Integers,
    begins: Integers,
    rows: Integers,
    columns: Integers,
) -> tuple[NDArray[np.float64], Integers]:
    """Find the best score (B,) of each sentence, and its best tags (N,).

    Of equal scores, the lowest tag counts. A sentence without a possible sequence has the score
    -inf and tags of 0.

    Let best[r] be the best score of a sequence that ends in r. A row r comes before no tag of
    `columns` in a best sequence if best[r] + max(transitions[r]) < best[a] + min(transitions[a])
    for some row a, so it is left out. If emissions differ more than transitions, few rows are left.

    Args:
        emissions: (N, K) the scores of tags at the tokens of a ragged batch.
        transitions: (K, K) C-contiguous, the score of the column's tag after the row's tag.
        lengths: (B,) the tokens of each sentence.
        previous, begins: the legal pairs, as in `kernels.pair_chain`.
        rows, columns: tags in ascending order, such that the pairs with a tag of `columns` are
            those of all `rows` with it.
    """
    tags = len(begins) - 1
    scores = np.empty(len(lengths), np.float64)
    path = np.zeros(len(emissions), np.int64)
    back = np.empty((_longest(lengths), tags), np.int32)
    best = np.empty(tags, np.float64)
    step = np.empty(tags, np.float64)
    others = np.ones(tags, np.bool_)
    others[columns] = False
    block, least, most, largest = _block(transitions, rows, columns)
    eps = np.finfo(emissions.dtype).eps
    tops = np.empty(len(columns), np.float64)
    where = np.empty(len(columns), np.int64)
    first = 0
    for b in range(len(lengths)):
        for y in range(tags):
            best[y] = emissions[first, y]
        for t in range(1, lengths[b]):
            row = emissions[first + t]
            own = row[columns]
            floor = -np.inf
            for i in range(len(rows)):
                floor = max(floor, best[rows[i]] + least[i])
            floor -= _rounding(eps, max(largest, _largest(own)), floor)
            tops[:] = -np.inf
            where[:] = 0
            for i in range(len(rows)):
                before = best[rows[i]]
                if before > -np.inf and before + most[i] >= floor:
                    _raise(tops, where, before, rows[i], own, block[i])
            for j in range(len(columns)):
                step[columns[j]] = tops[j]
                back[t, columns[j]] = where[j]
            for y in range(tags):
                if others[y]:
                    step[y] = -np.inf
                    back[t, y] = 0
                    for p in range(begins[y], begins[y + 1]):
                        score = best[previous[p]] + (row[y] + transitions[previous[p], y])
                        if score > step[y]:
                            step[y] = score
                            back[t, y] = previous[p]
            best, step = step, best
        scores[b] = _trace(best, back, path[first : first + lengths[b]])
        first += lengths[b]
    return scores, path


@compiled()
def kbest(
    emissions: Floats,
    transitions: Floats,
    lengths: Integers,
    previous: Integers,
    begins: Integers,
    rows: Integers,
    columns: Integers,
    k: int,
) -> tuple[NDArray[np.float64], Integers]:
    """Find the k best scores (k, B) of each sentence, in descending order, and their tags (k, N).

    Missing sequences have the score -inf and tags of 0. Of equal scores, the sequence with the
    lowest tag comes first. Arguments are those of `viterbi`; rows are left out likewise, by the
    k-th best score of some row.
    """
    tags = len(begins) - 1
    scores = np.full((k, len(lengths)), -np.inf)
    path = np.zeros((k, len(emissions)), np.int64)
    back = np.empty((_longest(lengths), tags, k), np.int32)
    best = np.empty((tags, k), np.float64)
    step = np.empty((tags, k), np.float64)
    others = np.ones(tags, np.bool_)
    others[columns] = False
    block, least, most, largest = _block(transitions, rows, columns)
    eps = np.finfo(emissions.dtype).eps
    first = 0
    for b in range(len(lengths)):
        best[:] = -np.inf
        for y in range(tags):
            best[y, 0] = emissions[first, y]
        for t in range(1, lengths[b]):
            row = emissions[first + t]
            own = row[columns]
            floor = -np.inf
            for i in range(len(rows)):
                floor = max(floor, best[rows[i], k - 1] + least[i])
            floor -= _rounding(eps, max(largest, _largest(own)), floor)
            step[:] = -np.inf
            for i in range(len(rows)):
                before = best[rows[i]]
                if before[0] > -np.inf and before[0] + most[i] >= floor:
                    for j in range(len(columns)):
                        y = columns[j]
                        _merge(before, own[j] + block[i, j], rows[i] * k, step[y], back[t, y])
            for y in range(tags):
                if others[y]:
                    for p in range(begins[y], begins[y + 1]):
                        score = row[y] + transitions[previous[p], y]
                        _merge(best[previous[p]], score, previous[p] * k, step[y], back[t, y])
            best, step = step, best
        _trace_kbest(best, back, scores[:, b], path[:, first : first + lengths[b]])
        first += lengths[b]
    return scores, path


@compiled()
def _raise(tops, where, before, row, emissions, transitions):  # type: ignore[no-untyped-def]
    """Raise `tops` to the scores of the sequences through a row, and note the row in `where`."""
    for j in range(len(tops)):
        score = before + np.float64(emissions[j] + transitions[j])
        higher = score > tops[j]
        tops[j] = score if higher else tops[j]
        where[j] = row if higher else where[j]


@compiled()
def _block(transitions, rows, columns):  # type: ignore[no-untyped-def]
    """Copy the transitions from `rows` to `columns`.

    Returns:
        The copy, the least and the highest transition of each row, and the largest absolute value.
    """
    block = np.empty((len(rows), len(columns)), transitions.dtype)
    least = np.empty(len(block))
    most = np.empty(len(block))
    largest = 0.0
    for i in range(len(rows)):
        block[i] = transitions[rows[i]][columns]
        least[i] = block[i].min()
        most[i] = block[i].max()
        largest = max(largest, _largest(block[i]))
    return block, least, most, largest


@compiled()
def _rounding(eps, scale, floor):  # type: ignore[no-untyped-def]
    """Bound the error of a sum of scores up to `scale`, and of a score near `floor`."""
    return 8 * eps * scale + 1e-14 * abs(floor)


@compiled()
def _largest(values):  # type: ignore[no-untyped-def]
    """Find the largest absolute value that is finite."""
    largest = 0.0
    for value in values:
        if value > -np.inf:
            largest = max(largest, abs(value))
    return largest
