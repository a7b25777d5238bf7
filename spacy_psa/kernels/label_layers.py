"""Best sets and forward-backward of spans in one layer for each label, compiled for the CPU.

The twin is the recursion in a semiring in `structs.label_layers`. In both functions, `labelled` is
(S, L) float32 or float64, with the scores of the spans of at most `width` tokens of all sentences,
ordered by sentence, start and end. `outside` is (N, L) float64, with the score of each token in no
span of a label, and `lengths` (B,) int64. They compute in float64. The loop over labels is the
inner one, because the scores of one span are neighbours in memory.
"""

import math

import numpy as np
from numpy.typing import NDArray

from spacy_psa.kernels.compiled import compiled

Floats = NDArray[np.float32] | NDArray[np.float64]
Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]


@compiled()
def viterbi(
    labelled: Floats, outside: Float64s, lengths: Int64s, width: int
) -> tuple[Float64s, Int64s, Int64s]:
    """Find the best score (B,), and the row and label of each span of the best sets.

    Of equal scores, a token in no span comes before spans, and short spans come first. The spans
    are ordered by sentence and label, which counts from 0. If no set is possible, the score is -inf
    and there are no spans.
    """
    labels = labelled.shape[1]
    scores = np.zeros(len(lengths), np.float64)
    size = lengths.max() + 1 if len(lengths) else 0
    best = np.empty((size, labels), np.float64)
    back = np.empty((size, labels), np.int32)  # the tokens of the last span; 0 for no span
    at = np.empty(size, np.int64)
    rows = np.empty(outside.size, np.int64)
    chosen = np.empty(outside.size, np.int64)
    count = token = row = 0
    for b in range(len(lengths)):
        n = lengths[b]
        row = _first_rows(at, row, n, width)
        best[0] = 0.0
        for end in range(1, n + 1):
            for k in range(labels):
                best[end, k] = best[end - 1, k] + outside[token + end - 1, k]
                back[end, k] = 0
            for start in range(end - 1, max(0, end - width) - 1, -1):
                span = at[start] + end - start - 1
                for k in range(labels):
                    score = best[start, k] + labelled[span, k]
                    if score > best[end, k]:
                        best[end, k] = score
                        back[end, k] = end - start
        for k in range(labels):
            scores[b] += best[n, k]
        for k in range(labels if scores[b] > -np.inf else 0):
            end = n
            while end:
                wide = back[end, k]
                if wide:
                    rows[count] = at[end - wide] + wide - 1
                    chosen[count] = k
                    count += 1
                end -= max(1, wide)
        token += n
    return scores, rows[:count].copy(), chosen[:count].copy()


@compiled()
def forward_backward(
    labelled: Floats, outside: Float64s, lengths: Int64s, width: int
) -> tuple[Float64s, Float64s]:
    """Compute the log partition (B,) and the probability of each span and label (S, L).

    The probabilities are 0 if no set is possible. As in `kernels.chain`, the forward pass stores
    the share of each span in alpha of its end, so that the backward pass needs no logarithms.
    """
    labels = labelled.shape[1]
    result = np.zeros(len(lengths), np.float64)
    spans = np.zeros(labelled.shape, np.float64)
    size = lengths.max() + 1 if len(lengths) else 0
    alpha = np.empty((size, labels), np.float64)
    apart = np.empty((size, labels), np.float64)  # the share of the token before in no span
    total = np.empty((size, labels), np.float64)
    reached = np.empty((size, labels), np.float64)  # p(no span goes over a fencepost)
    at = np.empty(size, np.int64)
    top = np.empty(labels, np.float64)
    token = row = 0
    for b in range(len(lengths)):
        n, before = lengths[b], row
        row = _first_rows(at, row, n, width)
        alpha[0] = 0.0
        for end in range(1, n + 1):
            first = max(0, end - width)
            for k in range(labels):
                top[k] = alpha[end - 1, k] + outside[token + end - 1, k]
            for start in range(first, end):
                span = at[start] + end - start - 1
                for k in range(labels):
                    top[k] = max(top[k], alpha[start, k] + labelled[span, k])
            for k in range(labels):
                share = 0.0
                if top[k] > -np.inf:
                    share = math.exp(alpha[end - 1, k] + outside[token + end - 1, k] - top[k])
                apart[end, k] = share
                total[end, k] = share
            for start in range(first, end):
                span = at[start] + end - start - 1
                for k in range(labels):
                    if top[k] > -np.inf:
                        share = math.exp(alpha[start, k] + labelled[span, k] - top[k])
                        spans[span, k] = share
                        total[end, k] += share
            for k in range(labels):
                alpha[end, k] = top[k]
                if top[k] > -np.inf:
                    alpha[end, k] += math.log(total[end, k])
        for k in range(labels):
            result[b] += alpha[n, k]
        token += n
        if result[b] == -np.inf:
            spans[before:row] = 0.0
            continue
        reached[:n] = 0.0
        reached[n] = 1.0
        for end in range(n, 0, -1):
            for k in range(labels):
                if total[end, k] > 0.0:
                    reached[end, k] /= total[end, k]
                reached[end - 1, k] += apart[end, k] * reached[end, k]
            for start in range(max(0, end - width), end):
                span = at[start] + end - start - 1
                for k in range(labels):
                    p = spans[span, k] * reached[end, k]
                    spans[span, k] = p
                    reached[start, k] += p
    return result, spans


@compiled()
def _first_rows(at, row, n, width):  # type: ignore[no-untyped-def]
    """Write the row of the first span at each start, and return the row after the last one."""
    for start in range(n):
        at[start] = row
        row += min(width, n - start)
    return row
