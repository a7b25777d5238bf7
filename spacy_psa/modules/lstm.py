"""Bidirectional LSTMs over ragged batches (J section 3; X sections 3.2 and 6.2;
Hochreiter & Schmidhuber 1997).

On a CPU the recurrence is our own: both directions advance in lockstep over
the sentences that still run, and the backward pass gathers the weight
gradients of all steps in one matrix product, where torch's adds them up step
by step. On a GPU cuDNN does the work. The parameters are those of torch.nn.LSTM.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence


class Packing:
    """The time-major order of a ragged batch, for both directions.

    lengths: (B,) int64, each at least 1.

    sizes: sentences that still run at each step, descending, `max(lengths)` of them.
    forward, backward: (N,) int64, the flat token that each packed place reads.
    last: (B,) int64, the packed place of each sentence's last step.
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
    """One bidirectional LSTM layer on packed inputs, on a CPU.

    x: (2, N, I), the inputs as each direction reads them; w_ih: two (4H, I);
    w_hh: two (4H, H); bias: two (4H,), in torch's gate order (input, forget,
    cell, output). Returns (2, N, H).
    """

    @staticmethod
    def forward(ctx, x, w_ih0, w_ih1, w_hh0, w_hh1, bias0, bias1, sizes):  # type: ignore[no-untyped-def]
        w_ih, w_hh, bias = (w_ih0, w_ih1), (w_hh0, w_hh1), (bias0, bias1)
        total, hidden = x.shape[1], w_hh0.shape[1]
        gates = x.new_empty(2, total, 4, hidden)
        flat = gates.view(2, total, 4 * hidden)
        for d in (0, 1):
            torch.addmm(bias[d], x[d], w_ih[d].t(), out=flat[d])
        cells, squashed, out = (x.new_empty(2, total, hidden) for _ in range(3))
        transposed = [w.t() for w in w_hh]
        start = before = 0
        for size in sizes:
            end = start + size
            if start:
                for d in (0, 1):
                    flat[d, start:end].addmm_(out[d, before : before + size], transposed[d])
            step = gates[:, start:end]
            step[:, :, :2].sigmoid_()
            step[:, :, 2].tanh_()
            step[:, :, 3].sigmoid_()
            cell = cells[:, start:end]
            torch.mul(step[:, :, 0], step[:, :, 2], out=cell)
            if start:
                cell.addcmul_(step[:, :, 1], cells[:, before : before + size])
            torch.tanh(cell, out=squashed[:, start:end])
            torch.mul(step[:, :, 3], squashed[:, start:end], out=out[:, start:end])
            before, start = start, end
        ctx.save_for_backward(x, *w_ih, *w_hh, gates, cells, squashed, out)
        ctx.sizes = sizes
        return out

    @staticmethod
    def backward(ctx, d_out):  # type: ignore[no-untyped-def]
        x, w_ih0, w_ih1, w_hh0, w_hh1, gates, cells, squashed, out = ctx.saved_tensors
        w_ih, w_hh, sizes = (w_ih0, w_ih1), (w_hh0, w_hh1), ctx.sizes
        total, hidden = out.shape[1:]
        i, f, g, o = gates.unbind(2)
        first = sizes[0]
        previous = torch.cat(
            [torch.arange(b - a, b - a + size) for a, b, size in _steps(sizes)]
            or [torch.empty(0, dtype=torch.int64)]
        )
        cell_before = torch.cat([cells.new_zeros(2, first, hidden), cells[:, previous]], 1)
        # What does not depend on the recurrence is done for all steps at once.
        factor = torch.empty_like(gates)
        torch.mul(g, i * (1 - i), out=factor[:, :, 0])
        torch.mul(cell_before, f * (1 - f), out=factor[:, :, 1])
        torch.mul(i, 1 - g * g, out=factor[:, :, 2])
        torch.mul(squashed, o * (1 - o), out=factor[:, :, 3])
        through = o * (1 - squashed * squashed)
        flat = factor.view(2, total, 4 * hidden)  # becomes the gradient of the gates
        d_hidden, d_cell = d_out.clone(), torch.zeros_like(d_out)
        end, after = total, 0
        for step in range(len(sizes) - 1, -1, -1):
            start = end - sizes[step]
            if after:
                d_next, c_next = flat[:, end : end + after], d_cell[:, end : end + after]
                for d in (0, 1):
                    d_hidden[d, start : start + after].addmm_(d_next[d], w_hh[d])
                torch.mul(c_next, f[:, end : end + after], out=d_cell[:, start : start + after])
            dh, dc = d_hidden[:, start:end], d_cell[:, start:end]
            dc.addcmul_(dh, through[:, start:end])
            factor[:, start:end, :3].mul_(dc.unsqueeze(2))
            factor[:, start:end, 3].mul_(dh)
            end, after = start, sizes[step]
        hidden_before = torch.cat([out.new_zeros(2, first, hidden), out[:, previous]], 1)
        d_x = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        if d_x is not None:
            for d in (0, 1):
                torch.mm(flat[d], w_ih[d], out=d_x[d])
        d_ih = [flat[d].t() @ x[d] for d in (0, 1)]
        d_hh = [flat[d].t() @ hidden_before[d] for d in (0, 1)]
        d_bias = flat.sum(1)
        return d_x, *d_ih, *d_hh, d_bias[0], d_bias[1], None


def _steps(sizes: list[int]) -> list[tuple[int, int, int]]:
    """(size of the step before, start of the step, its size) for each step but the first."""
    starts = np.cumsum(sizes).tolist()
    return [(sizes[t - 1], starts[t - 1], sizes[t]) for t in range(1, len(sizes))]


class BiLSTM(nn.Module):
    """Bidirectional LSTM: (N, nI) -> (N, 2 * hidden).

    width: input width nI. hidden: units of each direction. layers: how many are
    stacked, each reading both directions of the one below (X section 6.2, "cross").
    separate: a direction reads only its own direction of the layer below, so that
    the two are two stacks that never meet (X section 3.2).
    input_dropout: before the first layer; output_dropout: after each layer.
    Every gate's weight matrix is Glorot-initialised, biases are 0 (J section 5.2).
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        *,
        layers: int = 1,
        separate: bool = False,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
    ):
        super().__init__()
        self.out_width = 2 * hidden
        self.separate = separate
        widths = [width] + [hidden if separate else 2 * hidden] * (layers - 1)
        self.layers = nn.ModuleList(nn.LSTM(w, hidden, bidirectional=True) for w in widths)
        self.input_dropout = nn.Dropout(input_dropout)
        self.output_dropout = nn.Dropout(output_dropout)
        for layer in self.layers:
            for name, parameter in layer.named_parameters():
                if name.startswith("bias"):
                    nn.init.zeros_(parameter)
                else:
                    for gate in parameter.data.chunk(4):
                        nn.init.xavier_uniform_(gate)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packing = Packing(lengths)
        x = self.input_dropout(x)
        for depth, layer in enumerate(self.layers):
            if depth and self.separate:
                x = x.unflatten(-1, (2, -1)).transpose(0, 1)
            x = self.output_dropout(_run(layer, x, packing))
        return x

    def final(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(N, nI) -> (B, 2 * hidden): each direction's state after its last step.

        For one layer, as a character encoder reads a word.
        """
        packing = Packing(lengths)
        forward, backward = _packed(self.layers[0], x, packing)
        last = packing.last.to(x.device)
        return torch.cat([forward[last], backward[last]], -1)


def _run(layer: nn.Module, x: Tensor, packing: Packing) -> Tensor:
    forward, backward = _packed(layer, x, packing)
    unpack = [torch.argsort(index).to(x.device) for index in (packing.forward, packing.backward)]
    return torch.cat([forward[unpack[0]], backward[unpack[1]]], -1)


def _packed(layer: nn.Module, x: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
    """Both directions' states in packed order: (N, H) each; step t of the backward
    one has read the last t + 1 tokens.

    x: (N, I), or (2, N, I) where each direction reads an input of its own."""
    assert isinstance(layer, nn.LSTM)
    index = torch.stack([packing.forward, packing.backward]).to(x.device)
    if x.device.type == "cpu":
        out = Recurrence.apply(
            x[index] if x.dim() == 2 else torch.stack([x[0, index[0]], x[1, index[1]]]),
            layer.weight_ih_l0,
            layer.weight_ih_l0_reverse,
            layer.weight_hh_l0,
            layer.weight_hh_l0_reverse,
            torch.add(layer.bias_ih_l0, layer.bias_hh_l0),  # type: ignore[arg-type]
            torch.add(layer.bias_ih_l0_reverse, layer.bias_hh_l0_reverse),  # type: ignore[arg-type]
            packing.sizes,
        )
        return out[0], out[1]
    # cuDNN hands both directions one input: for two, it runs once for each.
    sizes, hidden = torch.tensor(packing.sizes), layer.hidden_size
    inputs = [x] if x.dim() == 2 else [*x]
    states = [layer(PackedSequence(own[index[0]], sizes))[0].data for own in inputs]
    # cuDNN's backward states lie where their token does; turn them into reading order.
    where = torch.empty_like(index[0])
    where[index[0]] = torch.arange(len(where), device=x.device)
    return states[0][:, :hidden], states[-1][where[index[1]], hidden:]
