"""Viterbi and forward-backward of linear chains over legal pairs of tags, compiled for the CPU.

The arguments of all functions are

- `potentials`, (N, P) C-contiguous float32 or float64: the log potentials of the P legal pairs at
  the N tokens of a ragged batch;
- `lengths`, (B,) int64: the tokens of each sentence;
- `previous`, (P,) int64: the previous tag of each pair. The pairs are sorted by tag, then by
  previous tag;
- `begins`, (K + 1,) int64: the pairs of tag y are those from `begins[y]` to `begins[y + 1]`. Each
  tag has at least one. At the first token of a sentence, the first pair of a tag holds the score of
  starting with it, and the others are not read.

The sums are in float64 and in the order of `kernels.chain`, so both have the same results to the
bit.
"""

import math

import numpy as np
from numpy.typing import NDArray

from spacy_psa.kernels.chain import _logsumexp, _longest, _trace
from spacy_psa.kernels.compiled import compiled

Floats = NDArray[np.float32] | NDArray[np.float64]
Integers = NDArray[np.int64]


@compiled()
def viterbi(
    potentials: Floats, lengths: Integers, previous: Integers, begins: Integers
) -> tuple[NDArray[np.float64], Integers]:
    """Find the best score (B,) of each sentence, and its best tags (N,).

    Of equal scores, the lowest tag counts. A sentence without a possible sequence has the score
    -inf and tags of 0.
    """
    tags = len(begins) - 1
    scores = np.empty(len(lengths), np.float64)
    path = np.zeros(len(potentials), np.int64)
    back = np.empty((_longest(lengths), tags), np.int32)
    best = np.empty(tags, np.float64)
    step = np.empty(tags, np.float64)
    first = 0
    for b in range(len(lengths)):
        for y in range(tags):
            best[y] = potentials[first, begins[y]]
        for t in range(1, lengths[b]):
            row = potentials[first + t]
            for y in range(tags):
                top = -np.inf
                where = 0
                for p in range(begins[y], begins[y + 1]):
                    score = best[previous[p]] + row[p]
                    if score > top:
                        top = score
                        where = previous[p]
                step[y] = top
                back[t, y] = where
            best, step = step, best
        scores[b] = _trace(best, back, path[first : first + lengths[b]])
        first += lengths[b]
    return scores, path


@compiled()
def log_partition(
    potentials: Floats, lengths: Integers, previous: Integers, begins: Integers
) -> NDArray[np.float64]:
    """Compute the log partition of each sentence, (B,); it is -inf if no sequence is possible."""
    tags = len(begins) - 1
    result = np.empty(len(lengths), np.float64)
    alpha = np.empty(tags, np.float64)
    after = np.empty(tags, np.float64)
    total = np.empty(tags, np.float64)
    weights = np.empty(potentials.shape[1], potentials.dtype)
    first = 0
    for b in range(len(lengths)):
        for y in range(tags):
            alpha[y] = potentials[first, begins[y]]
        for t in range(1, lengths[b]):
            _forward(alpha, potentials[first + t], previous, begins, weights, total, after)
            alpha, after = after, alpha
        result[b] = _logsumexp(alpha)
        first += lengths[b]
    return result


@compiled()
def forward_backward(
    potentials: Floats, lengths: Integers, previous: Integers, begins: Integers
) -> tuple[NDArray[np.float64], Floats]:
    """Compute the log partition (B,) and its gradient (N, P) with respect to `potentials`.

    The gradient holds the probabilities of pairs of tags; at the first token of a sentence, the
    first pair of a tag holds the probability of the tag. It is 0 at entries that are not read, and
    if no sequence is possible. See `kernels.chain.forward_backward` for the backward pass.
    """
    tags = len(begins) - 1
    result = np.empty(len(lengths), np.float64)
    pairs = np.zeros_like(potentials)
    alpha = np.empty(tags, np.float64)
    after = np.empty(tags, np.float64)
    total = np.empty((_longest(lengths), tags), np.float64)
    marginal = np.empty(tags, np.float64)
    before = np.empty(tags, np.float64)
    first = 0
    for b in range(len(lengths)):
        for y in range(tags):
            alpha[y] = potentials[first, begins[y]]
        for t in range(1, lengths[b]):
            weights = pairs[first + t]
            _forward(alpha, potentials[first + t], previous, begins, weights, total[t], after)
            alpha, after = after, alpha
        result[b] = _logsumexp(alpha)
        if result[b] == -np.inf:
            pairs[first : first + lengths[b]] = 0.0
            first += lengths[b]
            continue
        for y in range(tags):
            marginal[y] = math.exp(alpha[y] - result[b])
        for t in range(lengths[b] - 1, 0, -1):
            before[:] = 0.0
            for y in range(tags):
                share = marginal[y] / total[t, y] if total[t, y] > 0.0 else 0.0
                for p in range(begins[y], begins[y + 1]):
                    pair = pairs[first + t, p] * share
                    pairs[first + t, p] = pair
                    before[previous[p]] += pair
            marginal, before = before, marginal
        for y in range(tags):
            pairs[first, begins[y]] = marginal[y]
        first += lengths[b]
    return result, pairs


@compiled()
def _forward(alpha, row, previous, begins, weights, total, after):  # type: ignore[no-untyped-def]
    """Move on by one token: from `alpha` (K,) and the potentials `row` (P,) to `after` (K,).

    The share of a pair in the sum of its tag is `weights` (P,) divided by `total` (K,). Weights of
    impossible pairs are not written.
    """
    for y in range(len(total)):
        top = -np.inf
        for p in range(begins[y], begins[y + 1]):
            top = max(top, alpha[previous[p]] + row[p])
        total[y] = 0.0
        after[y] = top
        if top > -np.inf:
            for p in range(begins[y], begins[y + 1]):
                score = alpha[previous[p]] + row[p]
                if score > -np.inf:
                    weight = math.exp(score - top)
                    weights[p] = weight
                    total[y] += weight
            after[y] = top + math.log(total[y])
