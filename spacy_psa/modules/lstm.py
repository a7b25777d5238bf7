"""Bidirectional LSTMs over ragged batches (Wei2020 section 3; Li2019 sections 3.2 and 6.2).

The parameters are those of torch.nn.LSTM. On a GPU, cuDNN computes the recurrence (Hochreiter &
Schmidhuber 1997); on a CPU, `Recurrence` and, without gradients, `states` do. Both directions
advance together over the sentences that have not ended, and the backward pass computes the weight
gradients of all steps by one matrix product; torch's own LSTM adds them up step by step.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils.rnn import PackedSequence

from spacy_psa import kernels
from spacy_psa.errors import check_choice, check_rates, check_sizes
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.products import (
    Distinct,
    Multiplier,
    Precision,
    Rounded,
    adders,
    filled,
    in_float32,
    linears,
)
from spacy_psa.ragged import to_device

BLOCK_ROWS = 2048


class BiLSTM(nn.Module):
    """Encodes tokens by bidirectional LSTMs: (N, nI) -> (N, 2 * hidden).

    Wei2020 has one layer. Li2019 stacks two layers, in two ways: in section 3.2 the two directions
    never meet (`separate`); in section 6.2 ("cross") each direction of a layer reads both
    directions of the layer below.

    The weight matrix of each gate starts by Glorot's rule, and biases start at 0 (Wei2020 section
    5.2). `CrossBiLSTM.v1` is this module without `separate` and with the values of Li2019 as
    defaults.

    Args:
        input_width: nI, the width of the input.
        hidden: units of each direction (Wei2020: "300", read here as 300 for each direction;
            Li2019: 100).
        layers: number of stacked layers (Wei2020: 1; Li2019: 2).
        separate: whether each direction reads only its own direction of the layer below, so that
            the two directions are two separate stacks (Li2019 section 3.2).
        input_dropout: dropout rate before the first layer (Wei2020: 0.55; Li2019: 0.35).
        output_dropout: dropout rate after each layer (Wei2020: 0.55; Li2019: 0.35).

    Raises:
        InputError: if `hidden` or `layers` is below 1, for a dropout rate that is not from 0 to 1,
            and for an unknown precision.

    Examples:
        >>> encoder = BiLSTM(input_width=100, hidden=50, layers=2)
        >>> x, lengths = torch.randn(7, 100), torch.tensor([4, 3])
        >>> encoder(x, lengths).shape
        torch.Size([7, 100])
    """

    def __init__(
        self,
        input_width: int,
        hidden: int = 300,
        layers: int = 1,
        separate: bool = False,
        input_dropout: float = 0.55,
        output_dropout: float = 0.55,
        precision: Precision = "float32",
    ):
        super().__init__()
        check_choice("precision", precision, Precision)
        check_sizes(hidden=hidden, layers=layers)
        check_rates(input_dropout=input_dropout, output_dropout=output_dropout)
        self.output_width = 2 * hidden
        self.separate = separate
        self.precision: Precision = precision
        widths = [input_width] + [hidden if separate else 2 * hidden] * (layers - 1)
        self.layers = nn.ModuleList(nn.LSTM(w, hidden, bidirectional=True) for w in widths)
        self.input_dropout = Dropout(input_dropout)
        self.output_dropout = Dropout(output_dropout)
        for layer in self.layers:
            for name, parameter in layer.named_parameters():
                if name.startswith("bias"):
                    nn.init.zeros_(parameter)
                else:
                    for gate in parameter.data.chunk(4):
                        nn.init.xavier_uniform_(gate)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Encode x (N, nI) of sentences of `lengths` (B,) -> (N, 2 * hidden)."""
        packing = Packing(lengths)
        places = packing.places
        if x.device.type != "cpu":
            places = to_device(places[0], x.device), to_device(places[1], x.device)
        if self.training:
            x = self.input_dropout(x)
        for depth, layer in enumerate(self.layers):
            if depth and self.separate:
                x = x.unflatten(-1, (2, -1)).transpose(0, 1)
            packed = _packed(layer, x, packing, self.precision)
            if torch.is_grad_enabled():
                x = torch.cat([packed[d].index_select(0, places[d]) for d in (0, 1)], -1)
            else:
                out = packed[0].new_empty(len(places[0]), 2, packed[0].shape[1])
                for d in (0, 1):
                    torch.index_select(packed[d], 0, places[d], out=out[:, d])
                x = out.flatten(1)
            if self.training:
                x = self.output_dropout(x)
        return x

    def final(self, x: Tensor | Distinct, lengths: Tensor) -> Tensor:
        """Encode each sentence by the last state of each direction: x (N, nI) -> (B, 2 * hidden).

        It runs only the first layer, without dropout. Character encoders read words in this way.
        """
        packing = Packing(lengths)
        forward, backward = _packed(self.layers[0], x, packing, self.precision)
        last = to_device(packing.last, forward.device)
        return torch.cat([forward[last], backward[last]], -1)


class Packing:
    """The order in which both directions of an LSTM read a ragged batch, step by step.

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
        if len(lengths) == 1:
            self.sizes: list[int] = [1] * int(lengths)
            self.forward = torch.arange(len(self.sizes))
            self.backward = self.forward.flip(0)
            self.last = lengths - 1
            return
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
        self.sizes = counts.tolist()
        self.forward = torch.from_numpy((first + steps)[running])
        self.backward = torch.from_numpy((last - steps)[running])
        self.last = torch.from_numpy(starts[n - 1] + rank)

    @property
    def places(self) -> tuple[Tensor, Tensor]:
        """(N,) int64 each, the packed place of each flat token in each direction."""
        if self.sizes[0] == 1:  # one sentence: both orders are their own inverse
            return self.forward, self.backward
        return torch.argsort(self.forward), torch.argsort(self.backward)


def _packed(
    layer: nn.Module, x: Tensor | Distinct, packing: Packing, precision: Precision
) -> Tensor | tuple[Tensor, Tensor]:
    """Compute the states of both directions in packed order, (2, N, H) or two of (N, H).

    Step t of the backward direction has read the last t + 1 tokens. x is (N, I), or (2, N, I) if
    each direction reads an input of its own.
    """
    index = torch.stack([packing.forward, packing.backward])
    sizes = packing.sizes
    if isinstance(x, Distinct):
        if isinstance(layer, nn.LSTM) and x.rows.device.type == "cpu":
            return _annotated(layer, [x, x], index, sizes, precision)
        x = x.spread(x.rows)
    index = to_device(index, x.device)
    if not isinstance(layer, nn.LSTM):
        int8: Any = layer
        return int8.packed(x, index, sizes)
    if x.device.type != "cpu":
        return _by_cudnn(layer, x, index, sizes, precision)
    own = x if x.dim() == 3 else (x, x)
    if torch.is_grad_enabled():
        w_ih, w_hh, bias = direction_weights(layer)
        inputs = torch.stack([own[d].index_select(0, index[d]) for d in (0, 1)])
        return Recurrence.apply(inputs, *w_ih, *w_hh, *bias, sizes, precision)
    first = Distinct(own[0])
    both = [first, first if x.dim() == 2 else Distinct(own[1])]
    return _annotated(layer, both, index, sizes, precision)


def _by_cudnn(
    layer: nn.LSTM, x: Tensor, index: Tensor, sizes: list[int], precision: Precision
) -> tuple[Tensor, Tensor]:
    # cuDNN has the same input for both directions: with two inputs, it runs once for each.
    hidden = layer.hidden_size
    inputs = [x] if x.dim() == 2 else [*x]
    states = [_by_torch(layer, own[index[0]], torch.tensor(sizes), precision) for own in inputs]
    # cuDNN puts the backward states at the places of their tokens. Put them into reading order.
    where = torch.empty_like(index[0])
    where[index[0]] = torch.arange(len(where), device=x.device)
    return states[0][:, :hidden], states[-1][where[index[1]], hidden:]


def _by_torch(layer: nn.LSTM, x: Tensor, sizes: Tensor, precision: Precision) -> Tensor:
    """Let torch compute the states of both directions of packed inputs: (N, I) -> (N, 2H)."""
    if in_float32(precision, x.device):
        packed: PackedSequence = layer(PackedSequence(x, sizes))[0]
        return packed.data
    weights = [weight.bfloat16() for weight in layer.all_weights[0] + layer.all_weights[1]]
    start = weights[0].new_zeros(2, int(sizes[0]), layer.hidden_size)
    options = True, 1, 0.0, layer.training, True  # biases, layers, dropout, training, directions
    out, _, _ = torch.lstm(x.bfloat16(), sizes, (start, start), weights, *options)
    return out.to(x.dtype)


def _annotated(
    layer: nn.LSTM, both: list[Distinct], index: Tensor, sizes: list[int], precision: Precision
) -> Tensor:
    """Compute the states without gradients, from the inputs of both directions."""
    w_ih, w_hh, bias = direction_weights(layer)
    rows = both[0].rows
    enter = linears(precision, index[0], w_ih, bias)
    if sizes[0] == 1 and _compiled(rows):  # products of one row are in float32, see `Rounded`
        return _of_sentence(both, index, enter, w_hh)
    again = adders(precision, sizes[0], map(Tensor.t, w_hh))
    return states(both, index, layer.hidden_size, sizes, enter, again)


def direction_weights(
    layer: nn.LSTM,
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return w_ih, w_hh and bias of both directions of a bidirectional LSTM of one layer."""
    (w_ih0, w_hh0, *bias0), (w_ih1, w_hh1, *bias1) = layer.all_weights
    return (w_ih0, w_ih1), (w_hh0, w_hh1), (torch.add(*bias0), torch.add(*bias1))


def states(
    inputs: Sequence[Distinct],
    index: Tensor,
    hidden: int,
    sizes: list[int],
    enter: Sequence[Multiplier],
    again: Sequence[Callable[[Tensor, Tensor], Any]],
) -> Tensor:
    """Compute the states of both directions as `Recurrence` does, without gradients: (2, N, H).

    About BLOCK_ROWS rows are computed at a time. Of earlier steps, only the states are kept.

    Args:
        inputs: for each direction, the N rows of its input.
        index: (2, N) int64, the packed order of each direction.
        enter: for each direction, W x + b as a function of some rows x.
        again: for each direction, a function of `out`, (size, 4H), and of the states of the step
            before, (size, H). It adds the products of these states to `out`.
    """
    x = inputs[0].rows
    cells, out = x.new_zeros(2, sizes[0], hidden), x.new_empty(2, index.shape[1], hidden)
    starts = [0, *accumulate(sizes)]
    known = [out[0].split(sizes), out[1].split(sizes)]
    step: Callable[..., None] = annotation_step
    if compiled := _compiled(x):
        from spacy_psa.kernels.gates import annotation_step as step
    for first, after, flat in _gate_inputs(inputs, index, hidden, enter, starts):
        gates = flat.unflatten(2, (4, hidden))
        arrays: Any = gates, cells, out
        if compiled:
            arrays = gates.numpy(), cells.numpy(), out.numpy()
        # The views of all steps are made in one call, as one by one they take longer than `step`.
        rows = [flat[0].split(sizes[first:after]), flat[1].split(sizes[first:after])]
        for t in range(first, after):
            size = sizes[t]
            if t:
                for d in (0, 1):
                    before = known[d][t - 1]
                    again[d](rows[d][t - first], before if size == sizes[t - 1] else before[:size])
            step(*arrays, starts[t] - starts[first], starts[t], size)
    return out


def _of_sentence(
    inputs: Sequence[Distinct], index: Tensor, enter: Sequence[Multiplier], w_hh: Sequence[Tensor]
) -> Tensor:
    """Compute what `states` does for one sentence, by one compiled call for many steps."""
    from spacy_psa.kernels.gates import annotate_sentence

    x, hidden, total = inputs[0].rows, w_hh[0].shape[1], index.shape[1]
    cells, out = x.new_zeros(2, 1, hidden), x.new_empty(2, total, hidden)
    forward, backward = w_hh
    arrays = forward.detach().numpy(), backward.detach().numpy(), cells.numpy(), out.numpy()
    for first, _, gates in _gate_inputs(inputs, index, hidden, enter, range(total + 1)):
        annotate_sentence(gates.numpy(), *arrays, first)
    return out


def _gate_inputs(
    inputs: Sequence[Distinct],
    index: Tensor,
    hidden: int,
    enter: Sequence[Multiplier],
    starts: Sequence[int],
) -> Iterator[tuple[int, int, Tensor]]:
    """Compute the inputs of the gates, (2, rows, 4H), for the steps first … after of each block.

    Step t has the rows starts[t] … starts[t + 1] of the packed order. Yields (first, after, gates).
    """
    tables = [None if inputs[d].place is None else enter[d](inputs[d].rows) for d in (0, 1)]
    steps, first = len(starts) - 1, 0
    while first < steps:
        after = bisect_left(starts, starts[first] + BLOCK_ROWS, first, steps)
        begin, end = starts[first], starts[after]
        gates = inputs[0].rows.new_empty(2, end - begin, 4 * hidden)
        for d in (0, 1):
            order, table, place = index[d, begin:end], tables[d], inputs[d].place
            if table is None or place is None:
                gates[d] = enter[d](inputs[d].rows.index_select(0, order))
            else:
                torch.index_select(table, 0, place[order], out=gates[d])
        yield first, after, gates
        first = after


class Recurrence(torch.autograd.Function):
    """One bidirectional LSTM layer on packed inputs, on a CPU, with its gradients.

    `Recurrence.apply` has the arguments

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
        for d, add in enumerate(adders(precision, total, map(Tensor.t, w_ih))):
            flat[d] = bias[d]
            add(flat[d], x[d])
        again = adders(precision, sizes[0], map(Tensor.t, w_hh))
        cells = x.new_empty(2, total, hidden)
        squashed, out = torch.empty_like(cells), torch.empty_like(cells)
        step: Any = forward_step
        arrays: tuple[Any, ...] = (gates, cells, squashed, out)
        if _compiled(x):
            from spacy_psa.kernels.gates import forward_step as step

            arrays = tuple(map(Tensor.numpy, arrays))
        starts = [0, *accumulate(sizes)]
        for t, (start, size) in enumerate(zip(starts, sizes)):
            before = starts[t - 1] if t else -1
            if t:
                for d in (0, 1):
                    again[d](flat[d, start : start + size], out[d, before : before + size])
            step(*arrays, start, size, before)
        # The weights too, so that torch refuses to go back if they have been changed in between.
        ctx.save_for_backward(x, gates, cells, squashed, out, *w_ih, *w_hh)
        ctx.sizes, ctx.precision = sizes, precision
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, d_out):  # type: ignore[no-untyped-def]
        x, gates, cells, squashed, out, *weights = ctx.saved_tensors
        w_ih, w_hh = weights[:2], weights[2:]
        sizes, precision = ctx.sizes, ctx.precision
        exact = in_float32(precision, x.device, x.shape[1])
        d_hidden, d_cell = d_out.clone(), torch.zeros_like(d_out)
        d_gates = torch.empty_like(gates)
        flat = d_gates.flatten(2)
        again = adders(precision, sizes[0], w_hh)
        step, arrays = backward_step, (gates, cells, squashed, d_hidden, d_cell, d_gates)
        if _compiled(x):
            from spacy_psa.kernels.gates import backward_step as step

            arrays = tuple(map(Tensor.numpy, arrays))
        starts = [0, *accumulate(sizes)]
        previous = np.empty(len(x[0]) - sizes[0], dtype=np.int64)  # the row before each later row
        for t in reversed(range(len(sizes))):
            start, size, before = starts[t], sizes[t], starts[t - 1] if t else -1
            step(*arrays, start, size, before)
            if t:
                for d in (0, 1):
                    again[d](d_hidden[d, before : before + size], flat[d, start : start + size])
                at = start - sizes[0]
                previous[at : at + size] = np.arange(before, before + size)
        d_bias = flat.sum(1)
        d_x = None
        if ctx.needs_input_grad[0]:
            d_x = torch.stack([_product(flat[d], w_ih[d], exact) for d in (0, 1)])
        rows = torch.from_numpy(previous)
        d_ih = [_outer(flat[d], x[d], exact) for d in (0, 1)]
        d_hh = [_outer(flat[d, sizes[0] :], out[d, rows], exact) for d in (0, 1)]
        return d_x, *d_ih, *d_hh, d_bias[0], d_bias[1], None, None


def _product(a: Tensor, b: Tensor, exact: bool) -> Tensor:
    return a @ b if exact else Rounded(b).product(a).to(a.dtype)


def _outer(a: Tensor, b: Tensor, exact: bool) -> Tensor:
    """Compute aᵀ b, the gradient of weights: (N, k), (N, d) -> (k, d)."""
    return a.t() @ b if exact else (filled(a).t() @ filled(b)).to(a.dtype)


def _compiled(x: Tensor) -> bool:
    return x.dtype in (torch.float32, torch.float64) and kernels.available()


def forward_step(
    gates: Tensor, cells: Tensor, squashed: Tensor, out: Tensor, start: int, size: int, before: int
) -> None:
    """Compute one step forward, as `kernels.gates.forward_step` does."""
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
    gates: Tensor, cells: Tensor, out: Tensor, at: int, start: int, size: int
) -> None:
    """Compute one step forward without training, as `kernels.gates.annotation_step` does."""
    i, f, g, o = gates[:, at : at + size].unbind(2)
    cell = cells[:, :size]
    cell.mul_(f.sigmoid()).addcmul_(i.sigmoid(), g.tanh())
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
