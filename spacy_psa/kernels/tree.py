"""CKY and inside-outside of labelled spans, compiled for the CPU.

The twin is the recursion in a semiring in `structs.inside`. Arguments have the cells of all
sentences one after the other (see `structs.span_cells`), S in total; `lengths` are (B,) int64. All
functions compute in float64. `label`, (S,), holds one number for all labels of a cell but null:
their maximum or their log sum. `null`, (S,), holds the score of the null label. So the cubic part
works on one number for each span. Arrays are C-contiguous. Spans of more than
`width` tokens have no label: only those that end their sentence are computed, and the work grows
with n · width².

A left child of two tokens or more has a label; a right child has one or none. Charts of left
children are indexed by [start, end], and charts of right children by [end, start], because the
inner loops then go over neighbours in memory.
"""

import math

import numpy as np
from numpy.typing import NDArray

from spacy_psa.kernels.compiled import compiled

Floats = NDArray[np.float32] | NDArray[np.float64]
Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]
NO_LIMIT = 2**40


@compiled()
def cky(
    label: Floats, null: Floats, lengths: Int64s, width: int = NO_LIMIT
) -> tuple[Float64s, Int64s]:
    """Find the best score (B,) and the cells of all constituents of the best trees, in preorder.

    Of equal scores, null comes before a label, and then the lowest split comes first. If no tree is
    possible, the score is -inf and there are no cells.
    """
    scores = np.empty(len(lengths), np.float64)
    cells = np.empty(2 * lengths.sum(), np.int64)
    size = lengths.max() + 1 if len(lengths) else 0
    left = np.empty((size, size), np.float64)
    right = np.empty((size, size), np.float64)
    split = np.empty((size, size), np.int32)
    stack = np.empty((size, 3), np.int64)
    first = count = 0
    for b in range(len(lengths)):
        n = lengths[b]
        inner = _fill(label, null, first, n, width, left, right, split)
        scores[b] = label[first + n - 1] + inner
        if scores[b] > -np.inf:
            depth = _push(stack, 0, 0, n, 1)
            while depth:
                depth -= 1
                start, end, labelled = stack[depth]
                at = first + _row(start, n) + end
                if labelled or label[at] > null[at]:
                    cells[count] = at
                    count += 1
                if end > start + 1:
                    middle = split[start, end]
                    depth = _push(stack, depth, middle, end, 0)
                    depth = _push(stack, depth, start, middle, middle > start + 1)
        first += n * (n + 1) // 2
    return scores, cells[:count]


@compiled()
def _fill(
    label: Floats,
    null: Floats,
    first: int,
    n: int,
    width: int,
    left: Float64s,
    right: Float64s,
    split: NDArray[np.int32],
) -> float:
    """Find the best scores and splits of the spans of a sentence.

    Args:
        label: the best score of each cell with a label.
        null: the score of each cell without one.
        first: the first cell of the sentence.
        n: its number of tokens.
        width: the most tokens of a span with a label.
        left: (> n, > n), filled with the scores of spans as left children, by [start, end].
        right: (> n, > n), filled with those of spans as right children, by [end, start].
        split: (> n, > n), filled with the lowest best split of each span of several tokens.

    Returns:
        The best score of the inside of the whole sentence.
    """
    inner = 0.0
    for start in range(n - 1, -1, -1):
        row = first + _row(start, n)
        for end in range(start + 1, n + 1):
            if end - start > width and end < n:
                continue
            with_label, best = label[row + end], max(label[row + end], null[row + end])
            inner = 0.0
            if end == start + 1:
                with_label = best
            else:
                inner = -np.inf
                at = start + 1
                for middle in range(start + 1, min(end, start + width + 1)):
                    score = left[start, middle] + right[end, middle]
                    if score > inner:
                        inner = score
                        at = middle
                split[start, end] = at
            left[start, end] = with_label + inner
            right[end, start] = best + inner
    return inner


@compiled()
def best_children(
    label: Floats, null: Floats, n: int, width: int = NO_LIMIT
) -> tuple[Float64s, Float64s]:
    """Find the best score of each span of one sentence of n tokens as a left and a right child.

    Returns:
        Two arrays (n + 1, n + 1), the first by [start, end], the second by [end, start]; the rest
        of them is -inf.
    """
    left = np.full((n + 1, n + 1), -np.inf)
    right = np.full((n + 1, n + 1), -np.inf)
    _fill(label, null, 0, n, width, left, right, np.empty((n + 1, n + 1), np.int32))
    return left, right


@compiled()
def log_partition(
    label: Float64s, null: Float64s, lengths: Int64s, width: int = NO_LIMIT
) -> Float64s:
    """Compute the log partition of each sentence, (B,); it is -inf if no tree is possible."""
    result = np.empty(len(lengths), np.float64)
    size = lengths.max() + 1 if len(lengths) else 0
    left, right, inner = np.empty((3, size, size), np.float64)
    first = 0
    for b in range(len(lengths)):
        n = lengths[b]
        last = first + n * (n + 1) // 2
        result[b] = _inside(label[first:last], null[first:last], n, width, left, right, inner)
        first = last
    return result


@compiled()
def inside_outside(
    label: Float64s, null: Float64s, lengths: Int64s, width: int = NO_LIMIT
) -> tuple[Float64s, Float64s, Float64s, Float64s]:
    """Compute log partitions, the probabilities of labels and of null, and entropies.

    The backward pass goes from a span to its parts by the share of each choice in the span. It
    subtracts no two large numbers, neither for the probabilities nor for the entropy.

    Returns:
        The log partition (B,); its gradients (S,) with respect to `label` and `null`, which are
        probabilities; and the entropy (B,) in nats, without the choice among the labels of a
        constituent. All but the first are 0 if no tree is possible.
    """
    result = np.empty(len(lengths), np.float64)
    entropy = np.zeros(len(lengths), np.float64)
    with_label = np.zeros_like(label)
    without = np.zeros_like(null)
    size = lengths.max() + 1 if len(lengths) else 0
    left, right, inner, as_left, as_right = np.empty((5, size, size), np.float64)
    first = 0
    for b in range(len(lengths)):
        n = lengths[b]
        last = first + n * (n + 1) // 2
        result[b] = _inside(label[first:last], null[first:last], n, width, left, right, inner)
        if result[b] > -np.inf:
            as_left[: n + 1, : n + 1] = 0.0
            as_right[: n + 1, : n + 1] = 0.0
            as_left[0, n] = 1.0
            for start in range(n):
                row = first + _row(start, n)
                for end in range(n, start, -1):
                    sure, free = as_left[start, end], as_right[end, start]
                    if end == start + 1 and n > 1:
                        sure, free = 0.0, sure + free
                    if free > 0.0:
                        either = _logaddexp(label[row + end], null[row + end])
                        for is_null in range(2):
                            log_share = (null if is_null else label)[row + end] - either
                            part = free * math.exp(log_share)
                            if part > 0.0:
                                entropy[b] -= part * log_share
                                (without if is_null else with_label)[row + end] = part
                    with_label[row + end] += sure
                    node = sure + free
                    if end == start + 1 or node == 0.0:
                        continue
                    for middle in range(start + 1, min(end, start + width + 1)):
                        log_share = left[start, middle] + right[end, middle] - inner[start, end]
                        part = node * math.exp(log_share)
                        if part > 0.0:
                            entropy[b] -= part * log_share
                            as_left[start, middle] += part
                            as_right[end, middle] += part
        first = last
    return result, with_label, without, entropy


@compiled()
def _inside(label, null, n, width, left, right, inner):  # type: ignore[no-untyped-def]
    """Fill the charts of one sentence with the log sums of all parts; return its log partition.

    inner[start, end] is the sum over the splits, without the label of the span.
    """
    for start in range(n - 1, -1, -1):
        row = _row(start, n)
        for end in range(start + 1, n + 1):
            if end - start > width and end < n:
                continue
            with_label = label[row + end]
            either = _logaddexp(with_label, null[row + end])
            total = 0.0
            if end == start + 1:
                with_label = either
            else:
                top = -np.inf
                stop = min(end, start + width + 1)
                for middle in range(start + 1, stop):
                    top = max(top, left[start, middle] + right[end, middle])
                if top > -np.inf:
                    for middle in range(start + 1, stop):
                        total += math.exp(left[start, middle] + right[end, middle] - top)
                    total = top + math.log(total)
                else:
                    total = top
            inner[start, end] = total
            left[start, end] = with_label + total
            right[end, start] = either + total
    return label[n - 1] + inner[0, n]


@compiled()
def _row(start, n):  # type: ignore[no-untyped-def]
    """Return the number that, added to `end`, is the place of (start, end) in its sentence."""
    return start * n - start * (start - 1) // 2 - start - 1


@compiled()
def _logaddexp(a, b):  # type: ignore[no-untyped-def]
    top = max(a, b)
    return top if top == -np.inf else top + math.log1p(math.exp(min(a, b) - top))


@compiled()
def _push(stack, depth, start, end, labelled):  # type: ignore[no-untyped-def]
    stack[depth, 0], stack[depth, 1], stack[depth, 2] = start, end, labelled
    return depth + 1
