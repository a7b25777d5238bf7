"""Bidirectional LSTMs over ragged batches (Wei2020 section 3; Li2019 sections 3.2 and 6.2).

On a CPU, `spacy_psa.modules.recurrence` computes the recurrence; on a GPU, cuDNN does. The
parameters are those of torch.nn.LSTM.
"""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from spacy_psa.errors import check_choice, check_rates, check_sizes
from spacy_psa.modules.distinct import Distinct
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.int8 import Int8LSTM
from spacy_psa.modules.precision import Precision, Weight, add_product
from spacy_psa.modules.recurrence import Packing, Recurrence, direction_weights, states


class BiLSTM(nn.Module):
    """Encodes tokens by bidirectional LSTMs: (N, nI) -> (N, 2 * hidden).

    Wei2020 has one layer. Li2019 stacks two layers, in two ways: in section 3.2 the two directions
    never meet (`separate`); in section 6.2 ("cross") each direction of a layer reads both
    directions of the layer below.

    The weight matrix of each gate starts by Glorot's rule, and biases start at 0 (Wei2020 section
    5.2).

    The names of the settings are the same in a config. `CrossBiLSTM.v1` is this module without
    `separate` and with the values of Li2019 as defaults.

    Args:
        input_width: nI, the width of the input.
        hidden: units of each direction (Wei2020: "300", read here as 300 for each direction;
            Li2019: 100).
        layers: number of stacked layers (Wei2020: 1; Li2019: 2).
        separate: whether each direction reads only its own direction of the layer below, so that
            the two directions are two separate stacks (Li2019 section 3.2).
        input_dropout: dropout rate before the first layer (Wei2020: 0.55; Li2019: 0.35).
        output_dropout: dropout rate after each layer (Wei2020: 0.55; Li2019: 0.35).
        precision: "float32", or "bfloat16" for products in it, see
            `spacy_psa.modules.precision.products`.

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
        x = self.input_dropout(x)
        for depth, layer in enumerate(self.layers):
            if depth and self.separate:
                x = x.unflatten(-1, (2, -1)).transpose(0, 1)
            x = self.output_dropout(_run(layer, x, packing, self.precision))
        return x

    def final(self, x: Tensor | Distinct, lengths: Tensor) -> Tensor:
        """Encode each sentence by the last state of each direction: x (N, nI) -> (B, 2 * hidden).

        It runs the first layer only, without dropout. A character encoder reads words this way.
        """
        packing = Packing(lengths)
        forward, backward = _packed(self.layers[0], x, packing, self.precision)
        last = packing.last.to(forward.device)
        return torch.cat([forward[last], backward[last]], -1)


def _run(layer: nn.Module, x: Tensor, packing: Packing, precision: Precision) -> Tensor:
    directions = _packed(layer, x, packing, precision)
    where = [torch.argsort(index).to(x.device) for index in (packing.forward, packing.backward)]
    if torch.is_grad_enabled():
        parts = [states.index_select(0, rows) for states, rows in zip(directions, where)]
        return torch.cat(parts, -1)
    out = x.new_empty(len(where[0]), 2, directions[0].shape[1])
    for d in (0, 1):
        torch.index_select(directions[d], 0, where[d], out=out[:, d])
    return out.flatten(1)


def _packed(
    layer: nn.Module, x: Tensor | Distinct, packing: Packing, precision: Precision
) -> tuple[Tensor, Tensor]:
    """Compute the states of both directions in packed order, (N, H) each.

    Step t of the backward direction has read the last t + 1 tokens. x is (N, I), or (2, N, I) if
    each direction reads an input of its own.
    """
    index = torch.stack([packing.forward, packing.backward])
    if isinstance(x, Distinct):
        if isinstance(layer, nn.LSTM) and x.rows.device.type == "cpu":
            out = _annotated(layer, [x, x], index, packing.sizes, precision)
            return out[0], out[1]
        x = x.spread(x.rows)
    index = index.to(x.device)
    if isinstance(layer, Int8LSTM):
        out = layer.packed(x, index, packing.sizes)
        return out[0], out[1]
    assert isinstance(layer, nn.LSTM)
    if x.device.type == "cpu":
        out = _on_cpu(layer, x, index, packing.sizes, precision)
        return out[0], out[1]
    # cuDNN gives both directions the same input: with two inputs, it runs once for each.
    sizes, hidden = torch.tensor(packing.sizes), layer.hidden_size
    inputs = [x] if x.dim() == 2 else [*x]
    found = [_by_torch(layer, own[index[0]], sizes, precision) for own in inputs]
    # cuDNN puts the backward states at the places of their tokens. Put them into reading order.
    where = torch.empty_like(index[0])
    where[index[0]] = torch.arange(len(where), device=x.device)
    return found[0][:, :hidden], found[-1][where[index[1]], hidden:]


def _by_torch(layer: nn.LSTM, x: Tensor, sizes: Tensor, precision: Precision) -> Tensor:
    """Let torch compute the states of both directions of packed inputs: (N, I) -> (N, 2H)."""
    if precision == "float32":
        packed: PackedSequence = layer(PackedSequence(x, sizes))[0]
        return packed.data
    weights = [weight.bfloat16() for weight in layer.all_weights[0] + layer.all_weights[1]]
    start = weights[0].new_zeros(2, int(sizes[0]), layer.hidden_size)
    options = True, 1, 0.0, layer.training, True  # biases, layers, dropout, training, directions
    out, _, _ = torch.lstm(x.bfloat16(), sizes, (start, start), weights, *options)
    return out.to(x.dtype)


def _on_cpu(
    layer: nn.LSTM, x: Tensor, index: Tensor, sizes: list[int], precision: Precision
) -> Tensor:
    if torch.is_grad_enabled():
        w_ih, w_hh, bias = direction_weights(layer)
        own = x if x.dim() == 3 else (x, x)
        inputs = torch.stack([own[d].index_select(0, index[d]) for d in (0, 1)])
        return Recurrence.apply(inputs, *w_ih, *w_hh, *bias, sizes, precision)
    both = [Distinct(x)] * 2 if x.dim() == 2 else [Distinct(own) for own in x]
    return _annotated(layer, both, index, sizes, precision)


def _annotated(
    layer: nn.LSTM,
    both: list[Distinct],
    index: Tensor,
    sizes: list[int],
    precision: Precision,
) -> Tensor:
    """Compute the states without training, from the inputs of both directions."""
    w_ih, w_hh, bias = direction_weights(layer)
    readers = [
        once.reader(partial(Weight(weight, precision).affine, bias=of_gates))
        for once, weight, of_gates in zip(both, w_ih, bias, strict=True)
    ]
    again_by = [Weight(weight, precision) for weight in w_hh]

    def enter(d: int, rows: slice, out: Tensor) -> None:
        readers[d](index[d, rows], out)

    def again(d: int, h: Tensor, out: Tensor) -> None:
        add_product(h, again_by[d].of(len(h)).t(), out)

    rows = both[0].rows.new_empty(index.shape[1], 0)
    return states(rows, layer.hidden_size, sizes, enter, again)
