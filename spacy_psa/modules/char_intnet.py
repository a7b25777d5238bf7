"""Word vectors from characters by dense convolutions without down-sampling (Xin et al. 2018)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacy_psa.errors import SettingError, check_rates, check_sizes
from spacy_psa.modules.char_bilstm import max_over_characters
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.initialization import embedding, glorot
from spacy_psa.ragged import positions


class CharIntNet(nn.Module):
    """Encodes words by a deep stack of convolutions over characters: C characters -> (M, width).

    It is IntNet (Xin et al. 2018): the characters of a word keep their places through all layers,
    and each block reads the output of all before it. The first layer has filters of several sizes
    over the embeddings. Each block then narrows what it reads to `growth` numbers for each
    character, by filters of size 1, and widens it again by filters of several sizes, whose output
    is put beside what the block has read. ReLU follows each convolution. The word's vector has the
    largest value of each number over the characters.

    The sizes below are choices of this package. There is no batch normalisation, so that a word has
    the same vector whatever stands beside it in a batch, in training too.

    In a config of version 1, `rows` (the number of distinct characters, without the unknown one)
    takes the place of `num_embeddings`, and `filters` is called `kernels` and `kernel_sizes`
    `kernel_widths`; `spacy_psa.architectures.chars` describes the settings that only the config
    has.

    Args:
        num_embeddings: size of the character vocabulary. Row 0 is the unknown character.
        width: width of a character's embedding.
        filters: number of filters of each size in the first layer.
        growth: number of filters of each size in a block, and of filters of size 1 before them.
        blocks: number of blocks, of two convolutions each; with 3 there are 7 convolutions, one
            upon the other. 0 leaves the first layer.
        kernel_sizes: characters that the filters see, as a list. Beyond the ends of the word they
            see zeros; a filter of an even size sees one character more to the right.
        dropout: dropout rate on the embeddings.
        output_dropout: dropout rate on the word's vector.

    Raises:
        InputError: for a size below 1, or `blocks` below 0; a dropout rate that is not from 0 to 1;
            and without a kernel size.

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
        super().__init__()
        check_sizes(num_embeddings=num_embeddings, width=width, filters=filters, growth=growth)
        check_sizes(least=0, blocks=blocks)
        check_rates(dropout=dropout, output_dropout=output_dropout)
        if not kernel_sizes:
            raise SettingError("kernel_sizes", [], "it needs at least one size")
        for size in kernel_sizes:
            check_sizes(kernel_sizes=size)
        self.embed = embedding(num_embeddings, width)
        self.dropout = Dropout(dropout)
        self.first = _Convolutions(width, filters, kernel_sizes)
        wide = self.first.output_width
        self.narrow, self.widen = nn.ModuleList(), nn.ModuleList()
        for _ in range(blocks):
            self.narrow.append(_Convolutions(wide, growth, [1]))
            self.widen.append(_Convolutions(growth, growth, kernel_sizes))
            wide += growth * len(kernel_sizes)
        self.output_dropout = Dropout(output_dropout)
        self.output_width = wide

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Encode words from their characters -> (M, output_width).

        Args:
            characters: (C,) int64, the embedding row of each character, one word after the other.
            lengths: (M,) int64, the number of characters of each word, at least 1.
        """
        x = self.dropout(self.embed(characters))
        # All words stand on one line, with zeros between them. So one convolution does for words
        # of all lengths, and no filter sees two words.
        gap = self.first.reach
        word, _ = positions(lengths, x.device)
        where = torch.arange(len(x), device=x.device) + gap * (word + 1)
        line = x.new_zeros(len(x) + gap * (len(lengths) + 1), x.shape[1])
        is_character = x.new_zeros(len(line)).index_fill(0, where, 1.0)
        found = self.first(line.index_put((where,), x).t()[None]) * is_character
        for narrow, widen in zip(self.narrow, self.widen):
            # A bias fills the gaps, and each layer must find zeros in them.
            new = widen(narrow(found) * is_character) * is_character
            found = torch.cat([found, new], 1)
        return self.output_dropout(max_over_characters(found[0].t()[where], lengths))


class _Convolutions(nn.Module):
    """Filters of several sizes side by side, and ReLU: (1, width, L) -> (1, filters · sizes, L)."""

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
