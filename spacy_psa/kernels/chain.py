"""Viterbi, k best and forward-backward of linear chains, compiled for the CPU.

The twin is the scan in a semiring in `structs.chain`. In all functions, `potentials` are
(B, n, K, K) by previous tag and tag, C-contiguous float32 or float64, and `lengths` (B,) int64. The
entries that are read are those that `structs.chain.LinearChain` describes, and sums are in float64.
The sum over previous tags goes row by row, with one running value for each tag, because the inner
loop then goes over neighbours in memory.
"""

import math

import numpy as np
from numpy.typing import NDArray

from spacy_psa.kernels.compiled import compiled

Floats = NDArray[np.float32] | NDArray[np.float64]


@compiled()
def viterbi(
    potentials: Floats, lengths: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Find the best score (B,) and the best tags (B, n) of each sentence.

    Of equal scores, the lowest tag counts. A sentence without a possible sequence has the score
    -inf and tags of 0.
    """
    batch, longest, tags = potentials.shape[:3]
    scores = np.empty(batch, np.float64)
    path = np.zeros((batch, longest), np.int64)
    back = np.zeros((longest, tags), np.int32)
    best = np.empty(tags, np.float64)
    step = np.empty(tags, np.float64)
    for b in range(batch):
        for y in range(tags):
            best[y] = potentials[b, 0, 0, y]
        for t in range(1, lengths[b]):
            for y in range(tags):
                step[y] = -np.inf
                back[t, y] = 0
            for previous in range(tags):
                before = best[previous]
                if before == -np.inf:
                    continue
                for y in range(tags):
                    score = before + potentials[b, t, previous, y]
                    if score > step[y]:
                        step[y] = score
                        back[t, y] = previous
            best, step = step, best
        scores[b] = _trace(best, back, path[b, : lengths[b]])
    return scores, path


@compiled()
def _longest(lengths):  # type: ignore[no-untyped-def]
    """Find the largest length, 0 if there is none.

    For `lengths.max()`, as for `np.argmax`, numba imports scipy's linear algebra.
    """
    longest = 0
    for length in lengths:
        longest = max(longest, length)
    return longest


@compiled()
def _trace(best, back, path):  # type: ignore[no-untyped-def]
    """Write the best tags (n,) to `path`, and return their score; -inf leaves `path` as it is.

    `best` (K,) has the scores of the last tags, and `back` (n, K) the best tag before each tag.
    """
    last = 0
    for y in range(1, len(best)):
        if best[y] > best[last]:
            last = y
    if best[last] > -np.inf:
        path[-1] = last
        for t in range(len(path) - 1, 0, -1):
            path[t - 1] = back[t, path[t]]
    return best[last]


@compiled()
def kbest(
    potentials: Floats, lengths: NDArray[np.int64], k: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Find the k best scores (k, B), in descending order, and their tags (k, B, n).

    Missing sequences have the score -inf and tags of 0. Of equal scores, the sequence with the
    lowest tag comes first, as in `viterbi`.
    """
    batch, longest, tags = potentials.shape[:3]
    scores = np.full((k, batch), -np.inf)
    path = np.zeros((k, batch, longest), np.int64)
    back = np.empty((longest, tags, k), np.int32)  # previous tag · k + its rank
    best = np.empty((tags, k), np.float64)
    step = np.empty((tags, k), np.float64)
    for b in range(batch):
        best[:] = -np.inf
        for y in range(tags):
            best[y, 0] = potentials[b, 0, 0, y]
        for t in range(1, lengths[b]):
            step[:] = -np.inf
            for previous in range(tags):
                if best[previous, 0] > -np.inf:
                    for y in range(tags):
                        score = potentials[b, t, previous, y]
                        _merge(best[previous], score, previous * k, step[y], back[t, y])
            best, step = step, best
        _trace_kbest(best, back, scores[:, b], path[:, b, : lengths[b]])
    return scores, path


@compiled()
def _trace_kbest(best, back, scores, path):  # type: ignore[no-untyped-def]
    """Write the k best scores (k,) to `scores`, and their tags (k, n) to `path`.

    `best` (K, k) has the scores of the last tags. `back` (n, K, k) has the places before each of
    the best scores of a tag: the tag times k, plus the rank.
    """
    k = len(scores)
    final = np.empty(k, np.int32)
    for y in range(len(best)):
        _merge(best[y], 0.0, y * k, scores, final)
    for i in range(k):
        if scores[i] > -np.inf:
            at = final[i]
            for t in range(path.shape[1] - 1, 0, -1):
                path[i, t] = at // k
                at = back[t, at // k, at % k]
            path[i, 0] = at // k


@compiled()
def log_partition(potentials: Floats, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Compute the log partition of each sentence, (B,); it is -inf if no sequence is possible."""
    batch, _, tags = potentials.shape[:3]
    result = np.empty(batch, np.float64)
    alpha = np.empty(tags, np.float64)
    top = np.empty(tags, np.float64)
    total = np.empty(tags, np.float64)
    for b in range(batch):
        for y in range(tags):
            alpha[y] = potentials[b, 0, 0, y]
        for t in range(1, lengths[b]):
            _tops(alpha, potentials[b, t], top)
            total[:] = 0.0
            for previous in range(tags):
                before = alpha[previous]
                if before == -np.inf:
                    continue
                for y in range(tags):
                    score = before + potentials[b, t, previous, y]
                    if score > -np.inf:
                        total[y] += math.exp(score - top[y])
            _logs(top, total, alpha)
        result[b] = _logsumexp(alpha)
    return result


@compiled()
def forward_backward(
    potentials: Floats, lengths: NDArray[np.int64]
) -> tuple[NDArray[np.float64], Floats]:
    """Compute the log partition (B,) and its gradient (B, n, K, K) with respect to `potentials`.

    The gradient holds the probabilities of pairs of tags; at the first place, its row 0 holds the
    probabilities of tags. It is 0 at entries that are not read, and if no sequence is possible.

    The backward pass needs no logarithms and so cannot underflow: the forward pass stores the share
    of each previous tag in alpha[t, y], and p(previous, y) = p(y) · share.
    """
    batch, longest, tags = potentials.shape[:3]
    result = np.empty(batch, np.float64)
    pairs = np.zeros_like(potentials)
    alpha = np.empty(tags, np.float64)
    top = np.empty(tags, np.float64)
    total = np.empty((longest, tags), np.float64)
    marginal = np.empty(tags, np.float64)
    for b in range(batch):
        for y in range(tags):
            alpha[y] = potentials[b, 0, 0, y]
        for t in range(1, lengths[b]):
            _tops(alpha, potentials[b, t], top)
            total[t] = 0.0
            for previous in range(tags):
                before = alpha[previous]
                if before == -np.inf:
                    continue
                for y in range(tags):
                    score = before + potentials[b, t, previous, y]
                    if score > -np.inf:
                        weight = math.exp(score - top[y])
                        pairs[b, t, previous, y] = weight
                        total[t, y] += weight
            _logs(top, total[t], alpha)
        result[b] = _logsumexp(alpha)
        if result[b] == -np.inf:
            pairs[b] = 0.0
            continue
        for y in range(tags):
            marginal[y] = math.exp(alpha[y] - result[b])
        for t in range(lengths[b] - 1, 0, -1):
            for y in range(tags):
                marginal[y] = marginal[y] / total[t, y] if total[t, y] > 0.0 else 0.0
            for previous in range(tags):
                summed = 0.0
                for y in range(tags):
                    pair = pairs[b, t, previous, y] * marginal[y]
                    pairs[b, t, previous, y] = pair
                    summed += pair
                top[previous] = summed
            marginal, top = top, marginal
        for y in range(tags):
            pairs[b, 0, 0, y] = marginal[y]
    return result, pairs


@compiled()
def _merge(ranked, score, first, best, back):  # type: ignore[no-untyped-def]
    """Insert `ranked` + score, numbered from `first`, into the k `best` in descending order."""
    k = len(best)
    for rank in range(k):
        candidate = ranked[rank] + score
        if not candidate > best[k - 1]:
            return
        place = k - 1
        while place > 0 and candidate > best[place - 1]:
            best[place] = best[place - 1]
            back[place] = back[place - 1]
            place -= 1
        best[place] = candidate
        back[place] = first + rank


@compiled()
def _tops(alpha, scores, top):  # type: ignore[no-untyped-def]
    """Compute top[y] = max over previous tags of alpha[previous] + scores[previous, y]."""
    top[:] = -np.inf
    for previous in range(len(alpha)):
        before = alpha[previous]
        if before == -np.inf:
            continue
        for y in range(len(top)):
            top[y] = max(top[y], before + scores[previous, y])


@compiled()
def _logs(top, total, alpha):  # type: ignore[no-untyped-def]
    """Compute alpha = top + log(total), which is -inf if the total is 0."""
    for y in range(len(alpha)):
        alpha[y] = top[y] + math.log(total[y]) if total[y] > 0.0 else -np.inf


@compiled()
def _logsumexp(alpha):  # type: ignore[no-untyped-def]
    top = alpha.max()
    if top == -np.inf:
        return top
    total = 0.0
    for y in range(len(alpha)):
        total += math.exp(alpha[y] - top)
    return top + math.log(total)
