"""Iterated dilated convolutions (Strubell et al. 2017; "ID-CNN" in T Tables 3, 5 and 7)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacy_psa.errors import SettingError, check_sizes
from spacy_psa.ragged import positions


class IDCNN(nn.Module):
    """A convolution, then a block of dilated ones, again and again: (N, nI) -> (N, filters).

    h = relu(conv_1(x)), and then, `iterations` times with the same weights,
    h = relu(conv_d(h)) for each d of `dilations`; zeros stand outside of a sentence.

    input_width: nI. filters: of every convolution (T: 200 to 800). kernel_size: the tokens
    that a filter sees, odd (T: 3).
    dilations: of a block. iterations: how often the block is applied.
    input_dropout, block_dropout, output_dropout: before the first convolution, after
    each application of the block but the last, after the last.

    T gives "layers" (2 to 6), filters, their size and dropout, and not what a layer is, nor
    dilations, nor what is shared. A layer is here one application of Strubell's block,
    whose public configuration for CoNLL-2003 has the dilations 1, 2, 1; as there, the
    block's kernels start as the identity with zero biases, and the first convolution
    by Glorot's rule with biases of 0.01. Strubell's training objective (a loss after
    each application, and a penalty on what dropout changes) is not T's and not here.

    InputError for sizes below 1 and an even `kernel_size`.
    """

    def __init__(
        self,
        input_width: int,
        filters: int = 400,
        kernel_size: int = 3,
        dilations: Sequence[int] = (1, 2, 1),
        iterations: int = 2,
        input_dropout: float = 0.0,
        block_dropout: float = 0.0,
        output_dropout: float = 0.4,
    ) -> None:
        super().__init__()
        check_sizes(filters=filters, kernel_size=kernel_size, iterations=iterations)
        if kernel_size % 2 == 0:
            raise SettingError("kernel_size", kernel_size, "take an odd number")
        if min(dilations, default=1) < 1:
            raise SettingError("dilations", list(dilations), "take numbers of 1 or more")
        self.output_width = filters
        self.iterations = iterations
        self.input = DilatedConvolution(input_width, filters, kernel_size, 1)
        nn.init.xavier_uniform_(self.input.weight, nn.init.calculate_gain("relu"))
        nn.init.constant_(self.input.bias, 0.01)
        block = [DilatedConvolution(filters, filters, kernel_size, d) for d in dilations]
        for convolution in block:
            nn.init.dirac_(convolution.weight)
            nn.init.zeros_(convolution.bias)
        self.block = nn.ModuleList(block)
        self.input_dropout = nn.Dropout(input_dropout)
        self.block_dropout = nn.Dropout(block_dropout)
        self.output_dropout = nn.Dropout(output_dropout)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (N, nI), lengths (B,) -> (N, filters)."""
        layers = [self.input, *self.block]
        near = {
            c.dilation: neighbours(lengths, c.kernel_size, c.dilation).to(x.device) for c in layers
        }
        h = torch.relu(self.input(self.input_dropout(x), near[1]))
        for iteration in range(self.iterations):
            if iteration:
                h = self.block_dropout(h)
            for convolution in self.block:
                h = torch.relu(convolution(h, near[convolution.dilation]))
        return self.output_dropout(h)


class DilatedConvolution(nn.Module):
    """One dilated convolution over a flat ragged batch, as one matrix product.

    weight: (filters, nI, kernel_size) and bias: (filters,), as those of torch.nn.Conv1d.
    """

    def __init__(self, input_width: int, filters: int, kernel_size: int, dilation: int) -> None:
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.weight = nn.Parameter(torch.empty(filters, input_width, kernel_size))
        self.bias = nn.Parameter(torch.empty(filters))

    def forward(self, x: Tensor, near: Tensor) -> Tensor:
        """x (N, nI), near: `neighbours` -> (N, filters)."""
        outside = x.new_zeros(1, x.shape[1])
        columns = torch.cat([x, outside]).index_select(0, near.flatten()).view(len(x), -1)
        return F.linear(columns, self.weight.transpose(1, 2).flatten(1), self.bias)


def neighbours(lengths: Tensor, kernel_size: int, dilation: int) -> Tensor:
    """The `kernel_size` tokens that a kernel sees from each token, in order: (N, size) int64,
    N for places outside of the sentence."""
    sentence, place = positions(lengths)
    reach = kernel_size // 2 * dilation
    steps = torch.arange(-reach, reach + 1, dilation)
    inside = (place[:, None] + steps >= 0) & (place[:, None] + steps < lengths[sentence, None])
    return torch.where(inside, torch.arange(len(place))[:, None] + steps, len(place))
