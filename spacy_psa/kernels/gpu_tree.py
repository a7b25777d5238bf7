"""CKY and inside-outside of labelled spans as one Triton kernel, for a GPU.

The same recursion runs in two semirings: the log semiring yields log partitions, probabilities and
entropies, the max semiring the best trees. Each sentence has a program of its own. It goes over
the diagonals of its chart, from narrow spans to wide ones for the inside, then back for the
outside, and works on the spans of a diagonal and their splits in blocks. So a batch is one launch.

`label`, `null` (S,) and `lengths` (B,) are as in `kernels.tree`, and sums are in float64 as there.
A chart is (S,) too. That of left children is in the order of the cells, that of right children by
(end, start), because then the splits of a span are neighbours in both.

With TRITON_INTERPRET=1 in the environment, Triton runs the kernel on tensors of the CPU.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from spacy_psa.ragged import to_device

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for a CPU comes without it
    pass

STARTS, SPLITS = 16, 32
"""The spans of a block, and the splits of each that are taken at once."""


def _chart(
    label: tl.tensor,
    null: tl.tensor,
    firsts: tl.tensor,
    lengths: tl.tensor,
    limit: tl.tensor,
    left: tl.tensor,
    right: tl.tensor,
    inner: tl.tensor,
    split: tl.tensor,
    as_left: tl.tensor,
    as_right: tl.tensor,
    total: tl.tensor,
    with_label: tl.tensor,
    without: tl.tensor,
    entropy: tl.tensor,
    MAX: tl.constexpr,
    OUTSIDE: tl.constexpr,
    STARTS: tl.constexpr,
    SPLITS: tl.constexpr,
) -> None:
    b = tl.program_id(0)
    first = tl.load(firsts + b)
    n = tl.load(lengths + b).to(tl.int32)
    nothing = float("-inf")
    for width in range(1, n + 1):
        splits = tl.minimum(width - 1, limit)
        for block in range(0, n - width + 1, STARTS):
            start = block + tl.arange(0, STARTS)
            end = start + width
            here = (end <= n) & ((start + limit >= end) | (end == n))
            row = first + start * n - start * (start - 1) // 2 - start - 1
            column = first + end * (end - 1) // 2
            top = tl.full((STARTS,), nothing, tl.float64)
            sums = tl.zeros((STARTS,), tl.float64)
            at = tl.zeros((STARTS,), tl.int32)
            for chunk in range(0, splits, SPLITS):
                place = chunk + tl.arange(0, SPLITS)
                known = here[:, None] & (place < splits)[None, :]
                middle = (start + 1)[:, None] + place[None, :]
                score = tl.load(left + row[:, None] + middle, known, nothing)
                score += tl.load(right + column[:, None] + middle, known, nothing)
                best = tl.max(score, 1)
                if MAX:
                    lowest = start + 1 + chunk + tl.argmax(score, 1)
                    at = tl.where(best > top, lowest, at)
                    top = tl.maximum(top, best)
                else:
                    higher = tl.maximum(top, best)
                    finite = tl.where(higher > nothing, higher, 0.0)
                    sums = sums * tl.exp(top - finite)
                    sums += tl.sum(tl.exp(score - finite[:, None]), 1)
                    top = higher
            if not MAX:
                top += tl.log(tl.where(sums > 0.0, sums, 1.0))
            top = tl.where(width > 1, top, 0.0)
            sure = tl.load(label + row + end, here, nothing).to(tl.float64)
            alone = tl.load(null + row + end, here, nothing).to(tl.float64)
            either = tl.maximum(sure, alone)
            if not MAX:
                gap = tl.where(either > nothing, tl.minimum(sure, alone) - either, 0.0)
                either += tl.log(1.0 + tl.exp(gap))
            tl.store(left + row + end, tl.where(width > 1, sure, either) + top, here)
            tl.store(right + column + start, either + top, here)
            tl.store(inner + row + end, top, here)
            if MAX:
                tl.store(split + row + end, at, here)
        tl.debug_barrier()  # wider spans are made of these
    whole = first + n - 1
    score = tl.load(label + whole).to(tl.float64) + tl.load(inner + whole)
    tl.store(total + b, score)
    if OUTSIDE:
        tl.store(as_left + whole, tl.where(score > nothing, 1.0, 0.0).to(tl.float64))
        tl.debug_barrier()
        surprise = tl.zeros((STARTS,), tl.float64)
        for step in range(0, n):
            width = n - step
            splits = tl.minimum(width - 1, limit)
            for block in range(0, step + 1, STARTS):
                start = block + tl.arange(0, STARTS)
                end = start + width
                here = (end <= n) & ((start + limit >= end) | (end == n))
                row = first + start * n - start * (start - 1) // 2 - start - 1
                column = first + end * (end - 1) // 2
                sure = tl.load(as_left + row + end, here, 0.0)
                free = tl.load(as_right + column + start, here, 0.0)
                node = sure + free
                # In a longer sentence, a left child of one token may be null too.
                word = (end == start + 1) & (n > 1)
                free = tl.where(word, node, free)
                labelled = tl.load(label + row + end, here, nothing).to(tl.float64)
                alone = tl.load(null + row + end, here, nothing).to(tl.float64)
                if MAX:
                    null_share = tl.where(labelled > alone, 0.0, 1.0)
                    label_share = 1.0 - null_share
                else:
                    either = tl.maximum(labelled, alone)
                    finite = tl.where(either > nothing, either, 0.0)
                    finite += tl.log(tl.exp(labelled - finite) + tl.exp(alone - finite))
                    log_share = tl.where(either > nothing, labelled - finite, nothing)
                    label_share = tl.exp(log_share)
                    part = free * label_share
                    surprise -= tl.where(part > 0.0, part * log_share, 0.0)
                    log_share = tl.where(either > nothing, alone - finite, nothing)
                    null_share = tl.exp(log_share)
                    part = free * null_share
                    surprise -= tl.where(part > 0.0, part * log_share, 0.0)
                tl.store(with_label + row + end, node - free + free * label_share, here)
                tl.store(without + row + end, free * null_share, here)
                inside = tl.load(inner + row + end, here, 0.0)
                if MAX:
                    at = tl.load(split + row + end, here, 0)
                for chunk in range(0, splits, SPLITS):
                    place = chunk + tl.arange(0, SPLITS)
                    known = (here & (node > 0.0))[:, None] & (place < splits)[None, :]
                    middle = (start + 1)[:, None] + place[None, :]
                    first_part = row[:, None] + middle
                    second_part = column[:, None] + middle
                    if MAX:
                        shared = tl.where(middle == at[:, None], node[:, None], 0.0)
                    else:
                        of_split = tl.load(left + first_part, known, nothing)
                        of_split += tl.load(right + second_part, known, nothing)
                        of_split -= inside[:, None]
                        shared = node[:, None] * tl.exp(of_split)
                        surprise -= tl.sum(tl.where(shared > 0.0, shared * of_split, 0.0), 1)
                    # No two spans of a diagonal share a start or an end, so nothing is added twice.
                    as_first = shared + tl.load(as_left + first_part, known, 0.0)
                    as_second = shared + tl.load(as_right + second_part, known, 0.0)
                    tl.store(as_left + first_part, as_first, known)
                    tl.store(as_right + second_part, as_second, known)
            tl.debug_barrier()  # narrower spans have shares of these
        tl.store(entropy + b, tl.sum(surprise, 0))


def cky(label: Tensor, null: Tensor, lengths: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Find the best scores and the cells of the best trees, as `kernels.tree`, in ascending order.

    Args:
        label: (S,) float32 or float64, contiguous.
        null: (S,) float32 or float64, contiguous.
        lengths: (B,) int64 on the CPU.
        width: the most tokens of a span with a label.
    """
    scores, best, _, _ = _launch(label, null, lengths, width, best=True, outside=True)
    return scores, best.nonzero()[:, 0]


def log_partition(label: Tensor, null: Tensor, lengths: Tensor, width: int) -> Tensor:
    """Compute the log partition of each sentence, (B,) float64; see `cky`."""
    return _launch(label, null, lengths, width, best=False, outside=False)[0]


def inside_outside(label: Tensor, null: Tensor, lengths: Tensor, width: int) -> tuple[Tensor, ...]:
    """Compute the four results of `kernels.tree.inside_outside`; see `cky`."""
    return _launch(label, null, lengths, width, best=False, outside=True)


def _launch(
    label: Tensor, null: Tensor, lengths: Tensor, width: int, best: bool, outside: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Run the kernel in the max semiring (`best`) or the log semiring, with the outside or not.

    Returns:
        The best score or log partition (B,); 0 or 1, or the probability, for the label of a span
        and for null, both (S,), or empty without the outside; and the entropy (B,), which has a
        meaning only in the log semiring with the outside.
    """
    cells = lengths * (lengths + 1) // 2
    firsts = to_device(torch.cumsum(cells, 0) - cells, label.device)
    inner, left, right = label.new_empty((3, len(label)), dtype=torch.float64).unbind()
    split = torch.empty(len(label) if best else 0, dtype=torch.int32, device=label.device)
    shares = label.new_zeros((4, len(label) if outside else 0), dtype=torch.float64)
    as_left, as_right, with_label, without = shares.unbind()
    total, entropy = label.new_zeros((2, len(lengths)), dtype=torch.float64).unbind()
    if len(lengths):
        given = label, null, firsts, to_device(lengths, label.device), width
        filled = left, right, inner, split, as_left, as_right, total, with_label, without, entropy
        sizes = {"STARTS": STARTS, "SPLITS": SPLITS}
        # Without stages, so that no load moves before a barrier.
        launch = _compiled()[(len(lengths),)]
        launch(*given, *filled, MAX=best, OUTSIDE=outside, **sizes, num_stages=1)
    return total, with_label, without, entropy


@cache
def _compiled() -> Any:
    return triton.jit(_chart)
