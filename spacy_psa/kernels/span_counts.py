"""How many spans sentences have, under linear chains over legal pairs; compiled for the CPU.

See `pipeline.chain.span_counts` for left and right, and `kernels.pair_chain` for the pairs. All
functions have the arguments

- `expected`, (N, P) float64: the probabilities of the P pairs of tags at the N tokens of a ragged
  batch. At the first token of a sentence, the first pair of a tag holds the probability of the tag;
- `lengths`, (B,) int64: the tokens of each sentence;
- `previous`, (P,) int64, and `begins`, (K + 1,) int64: the pairs;
- `weights`, (K, X) float64: x where a tag begins a span, else 1, for each of X numbers x.
"""

import math

import numpy as np
from numpy.typing import NDArray

from spacy_psa.kernels.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@compiled()
def from_left(
    expected: Floats,
    lengths: Integers,
    previous: Integers,
    begins: Integers,
    weights: Floats,
    tokens: Integers,
    tags: Integers,
) -> tuple[Floats, Floats]:
    """Compute left at some tokens, and log E[x^m] for the number m of spans of each sentence.

    Args:
        tokens: (S,) ascending, the numbers of tokens among all N.
        tags: (S,) the tag of each of them.

    Returns:
        left (S, X), and the logarithms (B, X).
    """
    count = weights.shape[1]
    result = np.empty((len(tokens), count), np.float64)
    log_totals = np.empty((len(lengths), count), np.float64)
    left = np.empty_like(weights)
    before = np.empty_like(weights)
    scale = np.empty(count, np.float64)
    top = np.empty(count, np.float64)
    at = 0
    first = 0
    for b in range(len(lengths)):
        scale[:] = 0.0
        for token in range(first, first + lengths[b]):
            if token == first:
                left[:] = weights
            else:
                left, before = before, left
                _step(expected[token], previous, begins, weights, before, left)
            _rescale(left, top, scale)
            while at < len(tokens) and tokens[at] == token:
                for i in range(count):
                    result[at, i] = left[tags[at], i] * math.exp(scale[i])
                at += 1
        last = expected[first + lengths[b] - 1]
        total = log_totals[b]
        total[:] = 0.0
        for y in range(len(weights)):
            marginal = _sum(last, begins[y], begins[y + 1] if lengths[b] > 1 else begins[y] + 1)
            for i in range(count):
                total[i] += marginal * left[y, i]
        for i in range(count):
            total[i] = math.log(total[i]) + scale[i]
        first += lengths[b]
    return result, log_totals


@compiled()
def from_right(
    expected: Floats,
    lengths: Integers,
    previous: Integers,
    begins: Integers,
    weights: Floats,
    goes_on: NDArray[np.bool_],
    tokens: Integers,
    tags: Integers,
) -> Floats:
    """Compute right at some tokens, if no span continues after them.

    Args:
        goes_on: (P,) whether a pair goes on with a span.
        tokens: (S,) descending, the numbers of tokens among all N.
        tags: (S,) the tag of each of them.

    Returns:
        right (S, X).
    """
    count = weights.shape[1]
    result = np.empty((len(tokens), count), np.float64)
    right = np.empty_like(weights)
    stops = np.empty_like(
        weights
    )  # the sums of pairs that go on with no span, and of those that do
    stays = np.empty_like(weights)
    stop = np.empty(len(weights), np.float64)  # the probabilities of these pairs
    stay = np.empty(len(weights), np.float64)
    weighted = np.empty(count, np.float64)
    at = 0
    end = lengths.sum()
    for b in range(len(lengths) - 1, -1, -1):
        for token in range(end - 1, end - lengths[b] - 1, -1):
            if token == end - 1:
                right[:] = 1.0
                stops[:] = 1.0
            else:
                stop[:] = 0.0
                stay[:] = 0.0
                stops[:] = 0.0
                stays[:] = 0.0
                row = expected[token + 1]
                for y in range(len(weights)):
                    for i in range(count):
                        weighted[i] = weights[y, i] * right[y, i]
                    for p in range(begins[y], begins[y + 1]):
                        q = previous[p]
                        if goes_on[p]:
                            stay[q] += row[p]
                            _add(row[p], weighted, stays[q])
                        else:
                            stop[q] += row[p]
                            _add(row[p], weighted, stops[q])
                for q in range(len(weights)):
                    both = stop[q] + stay[q]
                    for i in range(count):
                        right[q, i] = (stops[q, i] + stays[q, i]) / both if both > 0.0 else 0.0
                        stops[q, i] = stops[q, i] / stop[q] if stop[q] > 0.0 else 0.0
            while at < len(tokens) and tokens[at] == token:
                result[at] = stops[tags[at]]
                at += 1
        end -= lengths[b]
    return result


@compiled()
def _step(row, previous, begins, weights, before, left):  # type: ignore[no-untyped-def]
    """Move on by one token: from left (K, X) of the token before to left (K, X) of this one."""
    for y in range(len(weights)):
        left[y] = 0.0
        total = _sum(row, begins[y], begins[y + 1])
        if total > 0.0:
            for p in range(begins[y], begins[y + 1]):
                if row[p] > 0.0:
                    _add(row[p] / total, before[previous[p]], left[y])
            for i in range(weights.shape[1]):
                left[y, i] *= weights[y, i]


@compiled()
def _rescale(left, top, scale):  # type: ignore[no-untyped-def]
    """Divide left (K, X) by its largest number for each x, whose logarithm goes to scale (X,)."""
    top[:] = 0.0
    for y in range(len(left)):
        for i in range(len(top)):
            top[i] = max(top[i], left[y, i])
    for y in range(len(left)):
        for i in range(len(top)):
            left[y, i] /= top[i]
    for i in range(len(top)):
        scale[i] += math.log(top[i])


@compiled()
def _sum(row, begin, end):  # type: ignore[no-untyped-def]
    total = 0.0
    for p in range(begin, end):
        total += row[p]
    return total


@compiled()
def _add(factor, values, total):  # type: ignore[no-untyped-def]
    for i in range(len(total)):
        total[i] += factor * values[i]
