"""The recurrence of a bidirectional LSTM on a CPU (Hochreiter & Schmidhuber 1997).

Both directions advance together over the sentences that have not ended. The backward pass computes
the weight gradients of all steps by one matrix product; torch's own LSTM adds them up step by step.
"""

from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from spacy_psa import kernels
from spacy_psa.modules.precision import Precision, Weight, add_product, filled, product

BLOCK_ROWS = 2048


class Packing:
    """The order in which both directions of an LSTM read a ragged batch, step by step.

    Args:
        lengths: (B,) int64, the tokens of each sentence, each at least 1.

    Attributes:
        sizes: for each of the max(lengths) steps, the number of sentences that have not ended, in
            descending order.
        forward: (N,) int64, the flat token that the forward direction reads at each packed place.
        backward: (N,) int64, the same for the backward direction.
        last: (B,) int64, the packed place of each sentence's last step.

    Examples:
        >>> packing = Packing(torch.tensor([2, 3]))
        >>> packing.sizes
        [2, 2, 1]
        >>> packing.forward, packing.backward
        (tensor([2, 0, 3, 1, 4]), tensor([4, 1, 3, 0, 2]))
    """

    def __init__(self, lengths: Tensor):
        n = lengths.numpy()
        order = np.argsort(-n, kind="stable")
        ends = np.cumsum(n)
        first, last = (ends - n)[order], ends[order] - 1
        steps = np.arange(n.max())[:, None]
        running = steps < n[order][None, :]
        counts = running.sum(axis=1)
        starts = np.cumsum(counts) - counts
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        self.sizes: list[int] = counts.tolist()
        self.forward = torch.from_numpy((first + steps)[running])
        self.backward = torch.from_numpy((last - steps)[running])
        self.last = torch.from_numpy(starts[n - 1] + rank)


class Recurrence(torch.autograd.Function):
    """One bidirectional LSTM layer on packed inputs, on a CPU, with its gradients.

    `Recurrence.apply` takes

        x: (2, N, I), the inputs in the order in which each direction reads them
        w_ih0, w_ih1: (4H, I) each, the weights of the inputs
        w_hh0, w_hh1: (4H, H) each, the weights of the states
        bias0, bias1: (4H,) each
        sizes: sentences at each step, see `Packing`
        precision: "float32", or "bfloat16" to multiply in it, forward and backward

    and returns the states (2, N, H). Gates are in torch's order: input, forget, cell, output.
    Weights, sums and gates stay in the type of x with both precisions.

    Examples:
        >>> packing, lstm = Packing(torch.tensor([2, 3])), nn.LSTM(4, 6, bidirectional=True)
        >>> x = torch.randn(5, 4)
        >>> inputs = torch.stack([x[packing.forward], x[packing.backward]])
        >>> w_ih, w_hh, bias = direction_weights(lstm)
        >>> Recurrence.apply(inputs, *w_ih, *w_hh, *bias, packing.sizes, "float32").shape
        torch.Size([2, 5, 6])
    """

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, x, w_ih0, w_ih1, w_hh0, w_hh1, bias0, bias1, sizes, precision: Precision
    ):
        w_ih, w_hh, bias = (w_ih0, w_ih1), (w_hh0, w_hh1), (bias0, bias1)
        total, hidden = x.shape[1], w_hh0.shape[1]
        gates = x.new_empty(2, total, 4, hidden)
        flat = gates.view(2, total, 4 * hidden)
        enter, again = ([Weight(w, precision) for w in two] for two in (w_ih, w_hh))
        for d in (0, 1):
            flat[d] = bias[d]
            add_product(x[d], enter[d].of(total).t(), flat[d])
        cells, squashed, out = (x.new_empty(2, total, hidden) for _ in range(3))
        step, _ = _steps(x)
        for start, size, before in _places(sizes):
            if before >= 0:
                for d in (0, 1):
                    states, gate = out[d, before : before + size], flat[d, start : start + size]
                    add_product(states, again[d].of(size).t(), gate)
            step(gates, cells, squashed, out, start, size, before)
        # The weights too, so that torch refuses to go back if they have been changed in between.
        ctx.save_for_backward(x, gates, cells, squashed, out, *w_ih, *w_hh)
        ctx.weights, ctx.sizes, ctx.precision = (enter, again), sizes, precision
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, d_out):  # type: ignore[no-untyped-def]
        x, gates, cells, squashed, out, *_ = ctx.saved_tensors
        (enter, again), sizes, precision = ctx.weights, ctx.sizes, ctx.precision
        total, hidden = out.shape[1:]
        d_hidden, d_cell = d_out.clone(), torch.zeros_like(d_out)
        d_gates = torch.empty_like(gates)
        flat = d_gates.view(2, total, 4 * hidden)
        _, step = _steps(x)
        places = list(_places(sizes))
        for start, size, before in reversed(places):
            step(gates, cells, squashed, d_hidden, d_cell, d_gates, start, size, before)
            if before >= 0:
                for d in (0, 1):
                    earlier = d_hidden[d, before : before + size]
                    add_product(flat[d, start : start + size], again[d].of(size), earlier)
        d_bias = flat.sum(1)
        d_x = None
        if ctx.needs_input_grad[0]:
            d_x = torch.stack([product(flat[d], enter[d].of(total)) for d in (0, 1)])
        first = sizes[0]  # no rows come before the rows of the first step
        previous = torch.cat([torch.arange(b, b + size) for _, size, b in places[1:]] or [_NONE])
        d_ih = [_outer(flat[d], x[d], precision) for d in (0, 1)]
        d_hh = [_outer(flat[d, first:], out[d, previous], precision) for d in (0, 1)]
        return d_x, *d_ih, *d_hh, d_bias[0], d_bias[1], None, None


def _outer(a: Tensor, b: Tensor, precision: Precision) -> Tensor:
    """Compute aᵀ b, the gradient of weights: (N, k), (N, d) -> (k, d)."""
    if precision == "float32":
        return a.t() @ b
    return (filled(a).t() @ filled(b)).to(a.dtype)


_NONE = torch.empty(0, dtype=torch.int64)


def _places(sizes: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield each step's first packed row, its size, and the first row of the step before or -1."""
    start, before = 0, -1
    for size in sizes:
        yield start, size, before
        start, before = start + size, start


def direction_weights(
    layer: nn.LSTM,
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return w_ih, w_hh and bias of both directions of a bidirectional LSTM of one layer.

    Examples:
        >>> w_ih, w_hh, bias = direction_weights(nn.LSTM(4, 6, bidirectional=True))
        >>> w_ih[0].shape, w_hh[1].shape, bias[0].shape
        (torch.Size([24, 4]), torch.Size([24, 6]), torch.Size([24]))
    """
    (w_ih0, w_hh0, *bias0), (w_ih1, w_hh1, *bias1) = layer.all_weights
    return (w_ih0, w_ih1), (w_hh0, w_hh1), (torch.add(*bias0), torch.add(*bias1))


def states(
    x: Tensor,
    hidden: int,
    sizes: list[int],
    enter: Callable[[int, slice, Tensor], None],
    again: Callable[[int, Tensor, Tensor], None],
) -> Tensor:
    """Compute what `Recurrence` returns, (2, N, H), if nothing is to be trained.

    It works on about BLOCK_ROWS rows at a time. Of the other steps, it keeps only the states.

    Args:
        x: a tensor of N rows, with the type of the result.
        hidden: H, units of each direction.
        sizes: sentences at each step, see `Packing`.
        enter: called with a direction d, a slice of packed rows and `out`, (rows, 4H). It fills
            `out` with what the inputs and the biases give to the gates.
        again: called with a direction d, the states h, (size, H), of the step before and `out`,
            (size, 4H). It adds to `out` what these states give to the gates.
    """
    cells, out = x.new_empty(2, sizes[0], hidden), x.new_empty(2, len(x), hidden)
    step = _annotation_step(x)
    places = list(_places(sizes))
    while places:
        block = _block(places)
        places = places[len(block) :]
        begin, end = block[0][0], block[-1][0] + block[-1][1]
        gates = x.new_empty(2, end - begin, 4, hidden)
        flat = gates.flatten(2)
        for d in (0, 1):
            enter(d, slice(begin, end), flat[d])
        for start, size, before in block:
            at = start - begin
            if before >= 0:
                for d in (0, 1):
                    again(d, out[d, before : before + size], flat[d, at : at + size])
            step(gates, cells, out, at, start, size, before < 0)
    return out


def _block(places: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Take the first steps that together have about BLOCK_ROWS rows, at least one step."""
    most = places[0][0] + BLOCK_ROWS
    return list(takewhile(lambda place: place[0] < most, places))


def _steps(x: Tensor) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return the forward and the backward function of a step, compiled if possible."""
    if not _compiled(x):
        return forward_step, backward_step
    from spacy_psa.kernels import gates

    return _on_arrays(gates.forward_step), _on_arrays(gates.backward_step)


def _annotation_step(x: Tensor) -> Callable[..., None]:
    if not _compiled(x):
        return annotation_step
    from spacy_psa.kernels import gates

    return _on_arrays(gates.annotation_step)


def _compiled(x: Tensor) -> bool:
    return x.dtype in (torch.float32, torch.float64) and kernels.available()


def _on_arrays(kernel: Callable[..., None]) -> Callable[..., None]:
    """Let a kernel of arrays take tensors, whose memory the arrays share."""

    def step(*arguments: Any) -> None:
        kernel(*(x.numpy() if isinstance(x, Tensor) else x for x in arguments))

    return step


def forward_step(
    gates: Tensor, cells: Tensor, squashed: Tensor, out: Tensor, start: int, size: int, before: int
) -> None:
    """Do one step forward, as `kernels.gates.forward_step` does."""
    now = slice(start, start + size)
    i, f, g, o = gates[:, now].unbind(2)
    for gate in (i, f, o):
        gate.sigmoid_()
    g.tanh_()
    torch.mul(i, g, out=cells[:, now])
    if before >= 0:
        cells[:, now].addcmul_(f, cells[:, before : before + size])
    torch.tanh(cells[:, now], out=squashed[:, now])
    torch.mul(o, squashed[:, now], out=out[:, now])


def annotation_step(
    gates: Tensor, cells: Tensor, out: Tensor, at: int, start: int, size: int, first: bool
) -> None:
    """Do one step forward without training, as `kernels.gates.annotation_step` does."""
    i, f, g, o = gates[:, at : at + size].unbind(2)
    cell = cells[:, :size]
    new = i.sigmoid() * g.tanh()
    cell.copy_(new if first else new.addcmul_(f.sigmoid(), cell))
    torch.mul(o.sigmoid(), cell.tanh(), out=out[:, start : start + size])


def backward_step(
    gates: Tensor,
    cells: Tensor,
    squashed: Tensor,
    d_hidden: Tensor,
    d_cell: Tensor,
    d_gates: Tensor,
    start: int,
    size: int,
    before: int,
) -> None:
    """Go back through one step, as `kernels.gates.backward_step` does."""
    now, earlier = slice(start, start + size), slice(before, before + size)
    i, f, g, o = gates[:, now].unbind(2)
    tanh, hidden, cell = squashed[:, now], d_hidden[:, now], d_cell[:, now]
    cell.addcmul_(hidden, o * (1 - tanh * tanh))
    d_gates[:, now, 0] = cell * g * i * (1 - i)
    d_gates[:, now, 1] = cell * cells[:, earlier] * f * (1 - f) if before >= 0 else 0.0
    d_gates[:, now, 2] = cell * i * (1 - g * g)
    d_gates[:, now, 3] = hidden * tanh * o * (1 - o)
    if before >= 0:
        d_cell[:, earlier] = cell * f
