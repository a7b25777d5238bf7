"""Word vectors from characters by dense convolutions without down-sampling (Xin et al. 2018)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacy_psa.errors import SettingError, check_sizes
from spacy_psa.modules.char_encoder import CharacterEncoder, max_over_characters, on_one_line
from spacy_psa.modules.initialization import glorot


class CharIntNet(CharacterEncoder):
    """Encodes words by a deep stack of convolutions over characters: C characters -> (M, width).

    It is IntNet (Xin et al. 2018): the characters of a word keep their places through all layers,
    and each block reads the output of all before it. The first layer has filters of several sizes
    over the embeddings. Each block then narrows its input to `growth` numbers for each character,
    by filters of size 1, and widens it again by filters of several sizes, whose output is joined to
    the input of the block. ReLU follows each convolution. The word's vector has the largest value
    of each number over the characters.

    The default sizes are choices of this package. There is no batch normalisation, so that a word
    has the same vector whatever words are in its batch, in training too.

    Args:
        filters: number of filters of each size in the first layer.
        growth: number of filters of each size in a block, and of filters of size 1 before them.
        blocks: number of blocks, of two convolutions each; with 3 there are 7 convolutions, one
            upon the other. 0 leaves the first layer.
        kernel_sizes: characters that the filters see, as a list. Beyond the ends of the word they
            see zeros; a filter of an even size sees one character more to the right.

    Raises:
        InputError: as `CharacterEncoder`, for `blocks` below 0 and without a kernel size.

    Examples:
        >>> encoder = CharIntNet(num_embeddings=50)
        >>> encoder(torch.tensor([3, 1, 20, 7, 7]), torch.tensor([3, 2])).shape  # two words
        torch.Size([2, 160])
    """

    def __init__(
        self,
        num_embeddings: int,
        width: int = 32,
        filters: int = 32,
        growth: int = 16,
        blocks: int = 3,
        kernel_sizes: Sequence[int] = (3, 5),
        dropout: float = 0.0,
        output_dropout: float = 0.0,
    ):
        super().__init__(num_embeddings, width, dropout, output_dropout)
        check_sizes(filters=filters, growth=growth)
        check_sizes(least=0, blocks=blocks)
        if not kernel_sizes:
            raise SettingError("kernel_sizes", [], "it needs at least one size")
        for size in kernel_sizes:
            check_sizes(kernel_sizes=size)
        self.first = _Convolutions(width, filters, kernel_sizes)
        wide = self.first.output_width
        self.narrow, self.widen = nn.ModuleList(), nn.ModuleList()
        for _ in range(blocks):
            self.narrow.append(_Convolutions(wide, growth, [1]))
            self.widen.append(_Convolutions(growth, growth, kernel_sizes))
            wide += growth * len(kernel_sizes)
        self.output_width = wide

    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        line, where = on_one_line(x, lengths, self.first.reach)
        is_character = x.new_zeros(line.shape[2]).index_fill(0, where, 1.0)
        features = self.first(line) * is_character
        for narrow, widen in zip(self.narrow, self.widen):
            # A bias fills the gaps, but each layer needs zeros in them.
            new = widen(narrow(features) * is_character) * is_character
            features = torch.cat([features, new], 1)
        return max_over_characters(features[0].t()[where], lengths)


class _Convolutions(nn.Module):
    """Filters of several sizes, and ReLU: (1, width, L) -> (1, filters · sizes, L)."""

    def __init__(self, width: int, filters: int, sizes: Sequence[int]):
        super().__init__()
        self.filters = nn.ModuleList(glorot(nn.Conv1d(width, filters, size)) for size in sizes)
        self.sizes = list(sizes)
        self.reach = max(sizes) // 2
        self.output_width = filters * len(self.sizes)

    def forward(self, line: Tensor) -> Tensor:
        """Convolve a line of characters."""
        return torch.cat(
            [
                torch.relu(convolve(F.pad(line, ((size - 1) // 2, size // 2))))
                for convolve, size in zip(self.filters, self.sizes)
            ],
            1,
        )
