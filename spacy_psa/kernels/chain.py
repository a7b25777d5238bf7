"""Viterbi, k best and forward-backward of linear chains; the twin of the semiring scan of
`structs/chain.py`.

All take `potentials: (B, n, K, K)` (previous tag, tag), C-contiguous float32 or float64,
and `lengths: (B,)` int64, read only what `structs.chain.LinearChain` says is read, and
accumulate in float64. The sum over previous tags is taken row by row, with one running
value for each tag, since then the inner loop runs over neighbours in memory.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float32] | NDArray[np.float64]


@njit(cache=True, nogil=True)
def viterbi(
    potentials: Floats, lengths: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The best score (B,) and tags (B, n) of each sentence, ties to the lowest tag.

    A sentence in which nothing is possible has the score -inf and the tags 0.
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
        last = np.argmax(best)
        scores[b] = best[last]
        if scores[b] > -np.inf:
            path[b, lengths[b] - 1] = last
            for t in range(lengths[b] - 1, 0, -1):
                path[b, t - 1] = back[t, path[b, t]]
    return scores, path


@njit(cache=True, nogil=True)
def kbest(
    potentials: Floats, lengths: NDArray[np.int64], k: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The k best scores (k, B), descending, and their tags (k, B, n).

    Missing ones have the score -inf and the tags 0. Of equals that with the lowest tag
    comes first, as in `viterbi`.
    """
    batch, longest, tags = potentials.shape[:3]
    scores = np.full((k, batch), -np.inf)
    path = np.zeros((k, batch, longest), np.int64)
    back = np.empty((longest, tags, k), np.int32)  # previous tag · k + its rank
    best = np.empty((tags, k), np.float64)
    step = np.empty((tags, k), np.float64)
    final = np.empty(k, np.int32)
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
        for y in range(tags):
            _merge(best[y], 0.0, y * k, scores[:, b], final)
        for i in range(k):
            if scores[i, b] > -np.inf:
                at = final[i]
                for t in range(lengths[b] - 1, 0, -1):
                    path[i, b, t] = at // k
                    at = back[t, at // k, at % k]
                path[i, b, 0] = at // k
    return scores, path


@njit(cache=True, nogil=True)
def log_partition(potentials: Floats, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """The log partition (B,) of each sentence, -inf where nothing is possible."""
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


@njit(cache=True, nogil=True)
def forward_backward(
    potentials: Floats, lengths: NDArray[np.int64]
) -> tuple[NDArray[np.float64], Floats]:
    """The log partition (B,) and its gradient (B, n, K, K) with respect to `potentials`.

    The gradient holds the probabilities of the pairs of tags, at the first place those of
    the tags, in row 0; it is 0 at what is not read and where nothing is possible.

    The way back needs no logarithms, and so cannot underflow: the forward pass leaves the
    share of each previous tag in alpha[t, y], and p(previous, y) = p(y) · share.
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


@njit(cache=True, nogil=True)
def _merge(ranked, score, first, best, back):  # type: ignore[no-untyped-def]
    """Insert `ranked` + score, numbered from `first`, into the descending k `best`."""
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


@njit(cache=True, nogil=True)
def _tops(alpha, scores, top):  # type: ignore[no-untyped-def]
    """top[y] = max over previous tags of alpha[previous] + scores[previous, y]."""
    top[:] = -np.inf
    for previous in range(len(alpha)):
        before = alpha[previous]
        if before == -np.inf:
            continue
        for y in range(len(top)):
            top[y] = max(top[y], before + scores[previous, y])


@njit(cache=True, nogil=True)
def _logs(top, total, alpha):  # type: ignore[no-untyped-def]
    """alpha = top + log(total), -inf where the total is 0."""
    for y in range(len(alpha)):
        alpha[y] = top[y] + math.log(total[y]) if total[y] > 0.0 else -np.inf


@njit(cache=True, nogil=True)
def _logsumexp(alpha):  # type: ignore[no-untyped-def]
    top = alpha.max()
    if top == -np.inf:
        return top
    total = 0.0
    for y in range(len(alpha)):
        total += math.exp(alpha[y] - top)
    return top + math.log(total)
