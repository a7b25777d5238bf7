"""Iterated dilated convolutions (Strubell et al. 2017), the ID-CNN of Yan2019 Tables 3, 5, 7."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from spacy_psa.errors import SettingError, check_choice, check_rates, check_sizes
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.products import Precision, affine
from spacy_psa.ragged import positions, to_device


class IDCNN(nn.Module):
    """Encodes tokens by iterated dilated convolutions: (N, nI) -> (N, filters).

    The first convolution reads the input. A block of dilated convolutions follows, which is
    applied `iterations` times with the same weights. Each convolution ends with a relu. Tokens
    beyond the ends of a sentence count as zeros.

    Yan2019 (Table 7) has the number of layers (2 to 6), of filters (200 to 800), the kernel
    size (3) and the dropout. It leaves open what a layer is, which dilations it has, and which
    weights are shared. Here a layer is one application of Strubell's block, whose public
    configuration for CoNLL-2003 has the dilations 1, 2, 1. As in that code, the filters of the
    block start as the identity with biases of 0, and the first convolution by Glorot's rule
    with biases of 0.01. Strubell's training objective (a loss after each application and a
    penalty on the effect of dropout) belongs to another paper and is not implemented.

    Args:
        filters: number of filters of each convolution, and width of the output (Yan2019: 200 to
            800).
        kernel_size: tokens that a filter sees; an odd number (Yan2019: 3).
        dilations: distances between these tokens, one for each convolution of the block
            (Strubell et al.: 1, 2, 1).
        iterations: how often the block is applied (the layers of Yan2019: 2 to 6).
        input_dropout: dropout rate before the first convolution (none in Yan2019).
        block_dropout: dropout rate between two applications of the block (none in Yan2019).
        output_dropout: dropout rate after the last one (Yan2019's "fc dropout": 0.4).

    Raises:
        InputError: for a size or dilation below 1, a dropout rate that is not from 0 to 1, an even
            `kernel_size`, and an unknown precision.

    Examples:
        >>> encoder = IDCNN(input_width=100, filters=200)
        >>> x, lengths = torch.randn(7, 100), torch.tensor([4, 3])
        >>> encoder(x, lengths).shape
        torch.Size([7, 200])
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
        precision: Precision = "float32",
    ) -> None:
        super().__init__()
        check_choice("precision", precision, Precision)
        check_sizes(filters=filters, kernel_size=kernel_size, iterations=iterations)
        check_rates(
            input_dropout=input_dropout, block_dropout=block_dropout, output_dropout=output_dropout
        )
        if kernel_size % 2 == 0:
            raise SettingError("kernel_size", kernel_size, "it must be odd")
        if min(dilations, default=1) < 1:
            raise SettingError("dilations", list(dilations), "they must be 1 or more")
        self.output_width = filters
        self.iterations = iterations
        self.input = DilatedConvolution(input_width, filters, kernel_size, 1, precision)
        nn.init.xavier_uniform_(self.input.weight, nn.init.calculate_gain("relu"))
        nn.init.constant_(self.input.bias, 0.01)
        sizes = filters, filters, kernel_size
        block = [DilatedConvolution(*sizes, dilation, precision) for dilation in dilations]
        for convolution in block:
            nn.init.dirac_(convolution.weight)
            nn.init.zeros_(convolution.bias)
        self.block = nn.ModuleList(block)
        self.input_dropout = Dropout(input_dropout)
        self.block_dropout = Dropout(block_dropout)
        self.output_dropout = Dropout(output_dropout)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Encode x (N, nI) of sentences of `lengths` (B,) -> (N, filters)."""
        layers = [self.input, *self.block]
        near = {
            c.dilation: to_device(neighbours(lengths, c.kernel_size, c.dilation), x.device)
            for c in layers
        }
        h = torch.relu(self.input(self.input_dropout(x), near[1]))
        for iteration in range(self.iterations):
            if iteration:
                h = self.block_dropout(h)
            for convolution in self.block:
                h = torch.relu(convolution(h, near[convolution.dilation]))
        return self.output_dropout(h)


class DilatedConvolution(nn.Module):
    """One dilated convolution over a flat ragged batch, computed as one matrix product.

    Its parameters have the shapes of those of torch.nn.Conv1d: weight (filters, nI, kernel_size)
    and bias (filters,). They are created without values. `dilation` is the distance between the
    `kernel_size` tokens that a filter sees.

    Examples:
        >>> convolution = DilatedConvolution(input_width=8, filters=4, kernel_size=3, dilation=2)
        >>> near = neighbours(torch.tensor([4, 3]), kernel_size=3, dilation=2)
        >>> convolution(torch.randn(7, 8), near).shape
        torch.Size([7, 4])
    """

    def __init__(
        self,
        input_width: int,
        filters: int,
        kernel_size: int,
        dilation: int,
        precision: Precision = "float32",
    ) -> None:
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.precision: Precision = precision
        self.weight = nn.Parameter(torch.empty(filters, input_width, kernel_size))
        self.bias = nn.Parameter(torch.empty(filters))

    def forward(self, x: Tensor, near: Tensor) -> Tensor:
        """Convolve x (N, nI), with the result of `neighbours` as `near` -> (N, filters)."""
        outside = x.new_zeros(1, x.shape[1])
        columns = torch.cat([x, outside]).index_select(0, near.flatten()).view(len(x), -1)
        return affine(columns, self.matrix(), self.bias, self.precision)

    def matrix(self) -> Tensor:
        """Return the weights as the matrix of that product, (filters, kernel_size * nI)."""
        return self.weight.transpose(1, 2).flatten(1)


def neighbours(lengths: Tensor, kernel_size: int, dilation: int) -> Tensor:
    """List the tokens that a filter sees from each token of sentences of `lengths` (B,) int64.

    Returns:
        (N, kernel_size) int64, the rows of these tokens in order. N stands for a place outside of
        the sentence.
    """
    sentence, place = positions(lengths)
    reach = kernel_size // 2 * dilation
    steps = torch.arange(-reach, reach + 1, dilation)
    inside = (place[:, None] + steps >= 0) & (place[:, None] + steps < lengths[sentence, None])
    return torch.where(inside, torch.arange(len(place))[:, None] + steps, len(place))
