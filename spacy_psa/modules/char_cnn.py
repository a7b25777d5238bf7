"""Word vectors from characters by convolution (Yan2019, Li2019; Xin et al. 2018)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacy_psa.errors import SettingError, check_sizes
from spacy_psa.modules.char_encoder import CharacterEncoder, max_over_characters, on_one_line
from spacy_psa.modules.initialization import glorot
from spacy_psa.ragged import positions

KINDS = 4  # kinds of characters: upper case, lower case, digit, punctuation


class CharCNN(CharacterEncoder):
    """Encodes words by a convolution over their characters: C characters -> (M, project).

    A linear layer follows the largest value of each filter over the characters, at least 0. The
    defaults are those of Yan2019 (section 6.1), which has no dropout here.

    Args:
        filters: number of filters.
        kernel_size: characters that a filter sees, an odd number. Beyond the ends of the word it
            sees zeros.
        project: width of the linear layer.

    Raises:
        InputError: as `CharacterEncoder`, and for an even `kernel_size`.

    Examples:
        >>> encoder = CharCNN(num_embeddings=50)
        >>> encoder(torch.tensor([3, 1, 20, 7, 7]), torch.tensor([3, 2])).shape  # two words
        torch.Size([2, 30])
    """

    def __init__(
        self,
        num_embeddings: int,
        width: int = 30,
        filters: int = 30,
        kernel_size: int = 3,
        project: int = 30,
        dropout: float = 0.0,
        output_dropout: float = 0.0,
    ):
        super().__init__(num_embeddings, width, dropout, output_dropout)
        check_sizes(filters=filters, kernel_size=kernel_size, project=project)
        if kernel_size % 2 == 0:
            raise SettingError("kernel_size", kernel_size, "it must be odd")
        self.convolve = glorot(nn.Conv1d(width, filters, kernel_size))
        self.project = glorot(nn.Linear(filters, project))
        self.output_width = project

    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        gap = self.convolve.kernel_size[0] // 2
        line, where = on_one_line(x, lengths, gap)
        seen = self.convolve(line)[0].t()
        return self.project(max_over_characters(seen[where - gap], lengths))


class CharNgramCNN(nn.Module):
    """Encodes words by filters over character n-grams: C characters -> (M, filters * max_ngram).

    Every word is padded to one size, and the word's vector has the largest value of each filter
    over the places (Li2019 section 3.1; Chiu & Nichols 2016). As in the authors' code, filters have
    no bias and no nonlinearity: a bias would only shift the maximum, which the bias of the next
    layer does too, and embeddings start from N(0, 0.1²). The defaults are those of Li2019.

    Args:
        num_embeddings: size of the character vocabulary. Row 0 is the unknown character.
        width: width of a character's embedding.
        filters: number of filters for each n.
        max_ngram: the largest n; the smallest is 1.
        max_characters: number of characters of every word after padding with a trained vector.

    Raises:
        InputError: for a size below 1, and if `max_ngram` is not from 1 to `max_characters`.

    Examples:
        >>> encoder = CharNgramCNN(num_embeddings=50)
        >>> characters, kinds = torch.tensor([3, 1, 20, 7, 7]), torch.tensor([1, 2, 2, 3, 3])
        >>> encoder(characters, kinds, torch.tensor([3, 2])).shape  # two words
        torch.Size([2, 60])
    """

    def __init__(
        self,
        num_embeddings: int,
        width: int = 25,
        filters: int = 20,
        max_ngram: int = 3,
        max_characters: int = 20,
    ):
        super().__init__()
        check_sizes(num_embeddings=num_embeddings, width=width, filters=filters)
        check_sizes(max_characters=max_characters)
        if not 1 <= max_ngram <= max_characters:
            advice = f"it must be from 1 to max_characters, {max_characters}"
            raise SettingError("max_ngram", max_ngram, advice)
        self.embed = nn.Embedding(num_embeddings, width)
        self.padding = nn.Parameter(torch.empty(width))
        for weights in (self.embed.weight, self.padding):
            nn.init.normal_(weights, std=0.1)
        self.convolve = nn.ModuleList(
            glorot(nn.Conv1d(width + KINDS, filters, n, bias=False))
            for n in range(1, max_ngram + 1)
        )
        self.max_characters = max_characters
        self.output_width = filters * max_ngram

    def forward(self, characters: Tensor, kinds: Tensor, lengths: Tensor) -> Tensor:
        """Encode words from their characters -> (M, filters * max_ngram), the smallest n first.

        Args:
            characters: (C,) int64, the embedding row of each character, one word after the other.
            kinds: (C,) int64, 1 to 4 for upper case, lower case, digit and punctuation, 0 for
                none of them.
            lengths: (M,) int64, the number of characters of each word, 1 to `max_characters`.
        """
        features = F.one_hot(kinds, KINDS + 1)[:, 1:].to(self.padding.dtype)
        x = torch.cat([self.embed(characters), features], 1)
        words = F.pad(self.padding, (0, KINDS)).repeat(len(lengths), self.max_characters, 1)
        words = words.index_put(positions(lengths, x.device), x).transpose(1, 2)
        return torch.cat([convolve(words).amax(2) for convolve in self.convolve], 1)


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
