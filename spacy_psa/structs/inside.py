"""The sum over all trees in a semiring, and the compiled log partition with gradients.

`label` and `null` are as in `kernels.tree`: for each cell, the log sum over all labels but null,
and the score of the null label. This file computes `label` for a batch of `SpanCells` before the
cubic part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from spacy_psa.ragged import to_device
from spacy_psa.structs.semiring import Log, Semiring
from spacy_psa.structs.span_cells import SpanCells
from spacy_psa.structs.tree_kernels import inside_outside


def total(
    semiring: Semiring, labelled: Tensor, null: Tensor, cells: SpanCells, size: int = 1
) -> Tensor:
    """Sum over all trees: a semiring value (size, B) in float64.

    There is one step for each width of spans, over the whole batch. A left child of two tokens or
    more must have a label, so that each tree counts once.

    Args:
        labelled: (S, L - 1), the scores of all labels but null.
        null: (S,), the scores of the null label.
        size: the size of a value's first axis.
    """

    def fit(values: Tensor) -> Tensor:
        """Bring values (m, ...) to (size, ...): keep the best, or add impossible values."""
        if len(values) > size:
            values = semiring.sum(values[..., None], -1)
        return pad(values, (0, 0) * (values.dim() - 1) + (0, size - len(values)), value=-torch.inf)

    label = fit(semiring.sum(semiring.lift(labelled.double()), -1))
    alone = fit(semiring.lift(null.double()))
    either = fit(semiring.sum(torch.stack([alone, label], -1), -1))
    longest = max(cells.lengths.tolist(), default=1)
    place = torch.full((len(cells.lengths), longest + 1, longest + 1), len(cells))
    place[cells.sentence, cells.start, cells.end] = torch.arange(len(cells))
    place = to_device(place, labelled.device)
    impossible = fit(semiring.lift(null.new_full((1,), -torch.inf, dtype=torch.float64)))
    label = torch.cat([label, impossible], 1)
    either = torch.cat([either, impossible], 1)

    words = place.diagonal(1, 1, 2)
    whole = [label[:, words[:, 0]]]  # by the width of the sentence
    left = right = either[:, words][..., None]  # (size, B, start, width), (..., end, width)
    for width in range(2, longest + 1):
        spans = place.diagonal(width, 1, 2)
        first = left[:, :, : spans.shape[1]]
        second = right[:, :, width - 1 :].flip(-1)
        inner = fit(semiring.sum(semiring.times(first, second), -1))
        with_label = fit(semiring.times(label[:, spans], inner))
        with_any = fit(semiring.times(either[:, spans], inner))
        whole.append(with_label[:, :, 0])
        left = torch.cat([left, pad(with_label, (0, width - 1))[..., None]], -1)
        right = torch.cat([right, pad(with_any, (width - 1, 0))[..., None]], -1)
    own = to_device(cells.lengths - 1, labelled.device).expand(size, 1, -1)
    # A sum over one value has no gradient where nothing is possible.
    return semiring.sum(torch.stack(whole, 1).gather(1, own), -2)


def _blocks(cells: Tensor) -> tuple[Tensor, ...]:
    """Split cells into blocks that stay in the processor's cache in float64."""
    return cells.split(512 if cells.device.type == "cpu" else 1 << 16)


@torch.no_grad()
def reduce_labels(labelled: Tensor) -> Tensor:
    """Compute log Σ exp over the labels of each cell: (S, L - 1) -> (S,) float64."""
    return torch.cat([rows.double().logsumexp(1) for rows in _blocks(labelled)])


@torch.no_grad()
def label_entropy(labelled: Tensor, label: Tensor) -> Tensor:
    """Compute the entropy of the choice among the labels of a constituent, (S,) float64 nats.

    `labelled` (S, L - 1) has the scores of all labels but null, `label` (S,) is the result of
    `reduce_labels`.
    """
    shares = _label_shares(labelled, label)
    return torch.cat([torch.special.entr(share).sum(1) for share in shares])


@torch.no_grad()
def spread_labels(labelled: Tensor, label: Tensor, weight: Tensor) -> Tensor:
    """Share out a weight (S,) for each cell among its labels: (S, L - 1), as in `label_entropy`.

    The result has the type of `labelled`.
    """
    result = torch.empty_like(labelled)
    shares = _label_shares(labelled, label)
    for rows, share, part in zip(_blocks(result), shares, _blocks(weight), strict=True):
        rows.copy_(share.mul_(part[:, None]))
    return result


def _label_shares(labelled: Tensor, label: Tensor) -> Iterator[Tensor]:
    """Yield the probabilities of the labels of a constituent, float64, some cells at a time."""
    label = label.masked_fill(label == -torch.inf, 0.0)
    for rows, sums in zip(_blocks(labelled), _blocks(label), strict=True):
        yield (rows.double() - sums[:, None]).exp_()


class LogPartition(torch.autograd.Function):
    """Computes log Z (B,) float64 by the kernel, with gradients.

    The arguments of `apply` are labelled (S, L - 1), null (S,) and the cells of the batch.

    Examples:
        >>> cells = SpanCells(torch.tensor([3]), batch=1, longest=3)
        >>> LogPartition.apply(torch.zeros(6, 1), torch.zeros(6), cells)  # log of the 24 trees
        tensor([3.1781], dtype=torch.float64)
    """

    @staticmethod
    def forward(ctx: Any, labelled: Tensor, null: Tensor, cells: SpanCells) -> Tensor:
        label = reduce_labels(labelled)
        log_z, with_label, without, _ = inside_outside(label, null, cells)
        ctx.save_for_backward(labelled, null, label, with_label, without)
        ctx.cells = cells
        return log_z

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        labelled, null, label, with_label, without = ctx.saved_tensors
        gradient = gradient[to_device(ctx.cells.sentence, gradient.device)]
        if torch.is_grad_enabled():  # create_graph: it will be differentiated again
            marginals, alone = marginals_by_autograd(labelled, null, ctx.cells)
            own = gradient.to(labelled.dtype)
            return own[:, None] * marginals, own * alone, None
        spread = spread_labels(labelled, label, with_label * gradient)
        return spread, (without * gradient).to(null.dtype), None


def marginals_by_autograd(
    labelled: Tensor, null: Tensor, cells: SpanCells
) -> tuple[Tensor, Tensor]:
    """Compute the gradients of log Z, (S, L - 1) and (S,), which can be differentiated again."""
    keep = labelled.requires_grad or null.requires_grad
    if not labelled.requires_grad:
        labelled = labelled.detach().clone().requires_grad_()
    if not null.requires_grad:
        null = null.detach().clone().requires_grad_()
    marginals, alone = torch.autograd.grad(
        total(Log(), labelled, null, cells).sum(),
        [labelled, null],
        create_graph=keep,
        materialize_grads=True,  # the null label of a sentence of one token is not read
    )
    return marginals, alone
