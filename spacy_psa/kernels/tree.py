"""CKY, k best and inside-outside of labelled spans, compiled for the CPU.

The twin is the recursion in a semiring in `structs.inside`. All functions take the cells of all
sentences one after the other (see `structs.span_cells`), S in total, and `lengths`, (B,) int64, and
compute in float64. `label`, (S,), holds one number for all labels of a cell but null: their maximum
or their log sum. `null`, (S,), holds the score of the null label. So the cubic part works on one
number for each span. Arrays are C-contiguous.

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


@compiled()
def cky(label: Floats, null: Floats, lengths: Int64s) -> tuple[Float64s, Int64s]:
    """Find the best score (B,) and the cells of all constituents of the best trees, in preorder.

    Of equal scores, null comes before a label, and then the lowest split is taken. If no tree is
    possible, the score is -inf and there are no cells.

    Examples:
        >>> label = np.array([-1.0, 0.0, 2.0])  # the cells (0, 1), (0, 2), (1, 2)
        >>> scores, cells = cky(label, np.zeros(3), np.array([2]))
        >>> scores.tolist(), cells.tolist()
        ([2.0], [1, 2])
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
        inner = 0.0
        for start in range(n - 1, -1, -1):
            row = first + _row(start, n)
            for end in range(start + 1, n + 1):
                with_label, best = label[row + end], max(label[row + end], null[row + end])
                inner = 0.0
                if end == start + 1:
                    with_label = best
                else:
                    inner = -np.inf
                    at = start + 1
                    for middle in range(start + 1, end):
                        score = left[start, middle] + right[end, middle]
                        if score > inner:
                            inner = score
                            at = middle
                    split[start, end] = at
                left[start, end] = with_label + inner
                right[end, start] = best + inner
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
def kbest(
    labelled: Floats, null: Floats, lengths: Int64s, k: int
) -> tuple[Float64s, Int64s, Int64s, Int64s]:
    """Find the k best scores (k, B), in descending order, and the constituents of their trees.

    Of equal scores, the lowest label comes first, then the lowest split, then the better left part
    and the better right part.

    Args:
        labelled: (S, L - 1), the scores of all labels but null.
        null: (S,), the scores of the null label.
        lengths: (B,) int64, the tokens of each sentence.
        k: number of trees.

    Returns:
        The scores, and three arrays with an entry for each constituent: the number of its tree
        (rank · B + sentence), its cell and its label. Missing trees have the score -inf and no
        constituents.
    """
    batch = len(lengths)
    scores = np.full((k, batch), -np.inf)
    trees = np.empty(2 * k * lengths.sum(), np.int64)
    cells = np.empty_like(trees)
    labels = np.empty_like(trees)
    n = lengths.max() if batch else 0
    size = n + 1
    left = np.empty((size, size, k), np.float64)
    right = np.empty((size, size, k), np.float64)
    inner = np.empty(k, np.float64)
    left_from = np.empty((size, size, k), np.int64)  # rank of the label · k + rank inside
    right_from = np.empty((size, size, k), np.int64)
    inner_from = np.empty((size, size, k), np.int64)  # (split · k + left rank) · k + right
    every = n * (n + 1) // 2
    known = np.empty((every, k), np.float64)  # scores of the best labels of a cell, without null
    known_label = np.empty((every, k), np.int64)
    either = np.empty((every, k), np.float64)  # the same with null
    either_label = np.empty((every, k), np.int64)
    stack = np.empty((size, 4), np.int64)
    first = count = 0
    for b in range(batch):
        n = lengths[b]
        for at in range(n * (n + 1) // 2):
            _best_labels(labelled[first + at], known[at], known_label[at])
            either[at] = -np.inf
            _insert(null[first + at], 0, either[at], either_label[at])
            for rank in range(k):
                _insert(known[at, rank], known_label[at, rank], either[at], either_label[at])
        for start in range(n - 1, -1, -1):
            row = _row(start, n)
            for end in range(start + 1, n + 1):
                if end == start + 1:
                    left[start, end] = either[row + end]
                    right[end, start] = either[row + end]
                    continue
                inner[:] = -np.inf
                for middle in range(start + 1, end):
                    if left[start, middle, 0] + right[end, middle, 0] > inner[k - 1]:
                        a, c = left[start, middle], right[end, middle]
                        _combine(a, c, middle * k * k, inner, inner_from[start, end])
                left[start, end] = -np.inf
                _combine(known[row + end], inner, 0, left[start, end], left_from[start, end])
                right[end, start] = -np.inf
                _combine(either[row + end], inner, 0, right[end, start], right_from[end, start])
        for rank in range(k):
            scores[rank, b] = known[0, rank] if n == 1 else left[0, n, rank]
            if scores[rank, b] == -np.inf:
                break
            depth = _push4(stack, 0, 0, n, 1, rank)
            while depth:
                depth -= 1
                start, end, is_left, place = stack[depth]
                at = _row(start, n) + end
                if n == 1:
                    chosen = known_label[at, place]
                elif end == start + 1:
                    chosen = either_label[at, place]
                else:
                    if is_left:
                        origin = left_from[start, end, place]
                        chosen = known_label[at, origin // k]
                    else:
                        origin = right_from[end, start, place]
                        chosen = either_label[at, origin // k]
                    origin = inner_from[start, end, origin % k]
                    middle = origin // (k * k)
                    depth = _push4(stack, depth, middle, end, 0, origin % k)
                    depth = _push4(stack, depth, start, middle, 1, origin // k % k)
                if chosen:
                    trees[count] = rank * batch + b
                    cells[count] = first + at
                    labels[count] = chosen
                    count += 1
        first += n * (n + 1) // 2
    return scores, trees[:count], cells[:count], labels[:count]


@compiled()
def log_partition(label: Float64s, null: Float64s, lengths: Int64s) -> Float64s:
    """Compute the log partition of each sentence, (B,); it is -inf if no tree is possible.

    Examples:
        >>> log_partition(np.zeros(6), np.zeros(6), np.array([3])).round(4).tolist()  # log 24
        [3.1781]
    """
    result = np.empty(len(lengths), np.float64)
    size = lengths.max() + 1 if len(lengths) else 0
    left, right, inner = np.empty((3, size, size), np.float64)
    first = 0
    for b in range(len(lengths)):
        n = lengths[b]
        last = first + n * (n + 1) // 2
        result[b] = _inside(label[first:last], null[first:last], n, left, right, inner)
        first = last
    return result


@compiled()
def inside_outside(
    label: Float64s, null: Float64s, lengths: Int64s
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
        result[b] = _inside(label[first:last], null[first:last], n, left, right, inner)
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
                    for middle in range(start + 1, end):
                        log_share = left[start, middle] + right[end, middle] - inner[start, end]
                        part = node * math.exp(log_share)
                        if part > 0.0:
                            entropy[b] -= part * log_share
                            as_left[start, middle] += part
                            as_right[end, middle] += part
        first = last
    return result, with_label, without, entropy


@compiled()
def _inside(label, null, n, left, right, inner):  # type: ignore[no-untyped-def]
    """Fill the charts of one sentence with the log sums of all parts; return its log partition.

    inner[start, end] is the sum over the splits, without the label of the span.
    """
    for start in range(n - 1, -1, -1):
        row = _row(start, n)
        for end in range(start + 1, n + 1):
            with_label = label[row + end]
            either = _logaddexp(with_label, null[row + end])
            total = 0.0
            if end == start + 1:
                with_label = either
            else:
                top = -np.inf
                for middle in range(start + 1, end):
                    top = max(top, left[start, middle] + right[end, middle])
                if top > -np.inf:
                    for middle in range(start + 1, end):
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


@compiled()
def _push4(stack, depth, start, end, labelled, rank):  # type: ignore[no-untyped-def]
    stack[depth, 3] = rank
    return _push(stack, depth, start, end, labelled)


@compiled()
def _best_labels(scores, best, labels):  # type: ignore[no-untyped-def]
    """Find the best of the scores (L - 1,) of the labels from 1 on, in descending order."""
    best[:] = -np.inf
    for at in range(len(scores)):
        _insert(scores[at], at + 1, best, labels)


@compiled()
def _combine(a, b, first, best, origin):  # type: ignore[no-untyped-def]
    """Insert the sums of one number of `a` and one of `b`, both descending, into the k `best`.

    The origin of a sum is first + rank in a · k + rank in b.
    """
    k = len(best)
    for i in range(k):
        for j in range(k // (i + 1)):  # (i + 1)(j + 1) - 1 other sums are no worse
            score = a[i] + b[j]
            if not score > best[k - 1]:
                if j == 0:
                    return
                break
            _insert(score, first + i * k + j, best, origin)


@compiled()
def _insert(score, number, best, numbers):  # type: ignore[no-untyped-def]
    """Insert a score and its number into `best`, in descending order, after equal scores."""
    place = len(best) - 1
    if not score > best[place]:
        return
    while place > 0 and score > best[place - 1]:
        best[place] = best[place - 1]
        numbers[place] = numbers[place - 1]
        place -= 1
    best[place] = score
    numbers[place] = number
