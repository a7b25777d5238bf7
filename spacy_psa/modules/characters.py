"""Word vectors from characters: by LSTMs, by convolution and by self-attention."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacy_psa.errors import SettingError, check_choice, check_rates, check_sizes
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.initialization import embedding, glorot
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.products import Distinct
from spacy_psa.modules.sinusoids import SinusoidalPositions
from spacy_psa.modules.tener import RelativeAttention
from spacy_psa.modules.transformer import EncoderLayer, MultiHeadAttention
from spacy_psa.ragged import pad, positions

Pool = Literal["final", "max"]
KINDS = 4  # kinds of characters: upper case, lower case, digit, punctuation


class CharacterEncoder(nn.Module):
    """Base class of modules that encode words from their characters: (C,) -> (M, output_width).

    `spacy_psa.architectures.chars` describes the further settings of a config.

    Args:
        num_embeddings: size of the character vocabulary. Row 0 is the unknown character.
        width: width of a character's embedding.
        dropout: dropout rate on the embeddings.
        output_dropout: dropout rate on the word's vector.
        init_std: standard deviation of the uniform distribution from which embeddings are drawn
            at the start. By default it is 1 / sqrt(width), which is U(-sqrt(3 / width),
            sqrt(3 / width)), the range of Glorot's rule for one row.

    Raises:
        InputError: for a size below 1, and a dropout rate that is not from 0 to 1.
    """

    output_width: int

    def __init__(
        self,
        num_embeddings: int,
        width: int,
        dropout: float,
        output_dropout: float,
        init_std: float | None = None,
    ):
        super().__init__()
        check_sizes(num_embeddings=num_embeddings, width=width)
        check_rates(dropout=dropout, output_dropout=output_dropout)
        self.embed = embedding(num_embeddings, width, init_std)
        self.dropout = Dropout(dropout)
        self.output_dropout = Dropout(output_dropout)

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Encode words from their characters -> (M, output_width).

        Args:
            characters: (C,) int64, the embedding row of each character, one word after the other.
            lengths: (M,) int64, the number of characters of each word, at least 1.
        """
        x = self.dropout(self.embed(characters))
        return self.output_dropout(self.encode(x, lengths))

    @abstractmethod
    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Encode words from the vectors of their characters, (C, width) -> (M, output_width)."""


def max_over_characters(x: Tensor, lengths: Tensor) -> Tensor:
    """Compute the largest relu(x) over the characters of each word: (C, d) -> (M, d)."""
    return pad(torch.relu(x), lengths).amax(1)


def on_one_line(x: Tensor, lengths: Tensor, gap: int) -> tuple[Tensor, Tensor]:
    """Put all words on one line, with zeros between them, for convolutions.

    So one convolution does for words of all lengths, and no filter sees two words.

    Args:
        gap: the number of zeros before, between and after words.

    Returns:
        The line, (1, d, L), and the place of each character on it, (C,).
    """
    word, _ = positions(lengths, x.device)
    where = torch.arange(len(x), device=x.device) + gap * (word + 1)
    line = x.new_zeros(len(x) + gap * (len(lengths) + 1), x.shape[1])
    return line.index_put((where,), x).t()[None], where


class CharBiLSTM(CharacterEncoder):
    """Encodes words by a bidirectional LSTM over characters: C characters -> (M, output_width).

    The defaults are those of Wei2020 (section 5.2). Yan2019 (section 3.1) has 50 units, a linear
    layer of width 30, and the largest value over the characters. Neither has dropout here.

    Args:
        hidden: units of each direction (Wei2020: "100", read here as 100 for each direction).
        project: width of a linear layer after the LSTM, or None for no such layer.
        pool: "final" uses the state of each direction after its last character (Wei2020). "max"
            uses the largest value over the characters, at least 0 (Yan2019's code).

    Raises:
        InputError: as `CharacterEncoder`, and for an unknown `pool`.

    Examples:
        >>> encoder = CharBiLSTM(num_embeddings=50)
        >>> encoder(torch.tensor([3, 1, 20, 7, 7]), torch.tensor([3, 2])).shape  # two words
        torch.Size([2, 200])
    """

    def __init__(
        self,
        num_embeddings: int,
        width: int = 30,
        hidden: int = 100,
        dropout: float = 0.0,
        project: int | None = None,
        pool: Pool = "final",
        output_dropout: float = 0.0,
        init_std: float | None = None,
    ):
        super().__init__(num_embeddings, width, dropout, output_dropout, init_std)
        check_sizes(hidden=hidden, project=project)
        check_choice("pool", pool, Pool)
        self.lstm = BiLSTM(width, hidden, input_dropout=0.0, output_dropout=0.0)
        self.pool = pool
        states = self.lstm.output_width
        self.project = nn.Identity() if project is None else glorot(nn.Linear(states, project))
        self.output_width = states if project is None else project

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        many = len(characters) >= self.embed.num_embeddings
        if self.pool == "final" and many and not (self.training or torch.is_grad_enabled()):
            # The products with the vector of a character are computed once.
            table = Distinct.of(self.embed.weight, characters)
            return self.output_dropout(self.project(self.lstm.final(table, lengths)))
        return super().forward(characters, lengths)

    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        if self.pool == "final":
            return self.project(self.lstm.final(x, lengths))
        return self.project(max_over_characters(self.lstm(x, lengths), lengths))


class CharSentenceBiLSTM(nn.Module):
    """Encodes words by a BiLSTM over the characters of their sentence: (N, output_width).

    The characters of the sentence, with the spaces between its words, go through one bidirectional
    LSTM. The states of both directions at the first and at the last character of a word are joined
    to its vector (Bohnet et al. 2018, Meta-BiLSTM, section 3.1), which therefore depends on the
    words around it, unlike that of `CharBiLSTM`. The default sizes are choices of this package. The
    other settings are those of `CharacterEncoder`.

    Args:
        hidden: units of each direction.
        layers: number of stacked layers.
        project: width of a linear layer and ReLU after the LSTM, or None for no such layer.
        dropout: dropout rate on the embeddings, and after each layer of the LSTM.

    Raises:
        InputError: for a size below 1, and a dropout rate that is not from 0 to 1.

    Examples:
        >>> encoder = CharSentenceBiLSTM(num_embeddings=50, hidden=10)
        >>> characters = torch.tensor([3, 1, 20, 7, 7])  # the sentence "I go." as I, go and .
        >>> first, last = torch.tensor([0, 2, 4]), torch.tensor([0, 3, 4])
        >>> encoder(characters, torch.tensor([5]), first, last).shape
        torch.Size([3, 40])
    """

    def __init__(
        self,
        num_embeddings: int,
        width: int = 32,
        hidden: int = 100,
        layers: int = 1,
        project: int | None = None,
        dropout: float = 0.0,
        output_dropout: float = 0.0,
        init_std: float | None = None,
    ):
        super().__init__()
        check_sizes(num_embeddings=num_embeddings, width=width, hidden=hidden, project=project)
        check_sizes(layers=layers)
        check_rates(dropout=dropout, output_dropout=output_dropout)
        self.embed = embedding(num_embeddings, width, init_std)
        self.lstm = BiLSTM(width, hidden, layers, input_dropout=dropout, output_dropout=dropout)
        states = 2 * self.lstm.output_width
        self.project: nn.Module = nn.Identity()
        if project is not None:
            self.project = nn.Sequential(glorot(nn.Linear(states, project)), nn.ReLU())
        self.output_dropout = Dropout(output_dropout)
        self.output_width = states if project is None else project

    def forward(self, characters: Tensor, lengths: Tensor, first: Tensor, last: Tensor) -> Tensor:
        """Encode the words of B sentences -> (N, output_width).

        Args:
            characters: (C,) int64, the embedding row of each character, one sentence after the
                other.
            lengths: (B,) int64, the number of characters of each sentence, at least 1.
            first: (N,) int64, the place of each word's first character among all.
            last: (N,) int64, that of its last one.
        """
        states = self.lstm(self.embed(characters), lengths)
        word = torch.cat([states[first], states[last]], 1)
        return self.output_dropout(self.project(word))


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


class CharTransformer(CharacterEncoder):
    """Encodes words by one Transformer layer over their characters: C characters -> (M, project).

    Sinusoids of the places are added to the embeddings, and one Transformer layer reads them. A
    linear layer follows the largest value of each coordinate over the characters, at least 0. The
    defaults are those of Yan2019, which has no dropout on the embeddings and the word's vector.

    Args:
        heads: number of heads, which share the width.
        ffn_dim: width inside the feed-forward part.
        project: width of the last linear layer.
        attention_dropout: dropout rate on the attention weights and in the feed-forward part.

    Raises:
        InputError: as `CharacterEncoder`, and if `heads` does not divide `width`.

    Examples:
        >>> encoder = CharTransformer(num_embeddings=50)
        >>> encoder(torch.tensor([3, 1, 20, 7, 7]), torch.tensor([3, 2])).shape  # two words
        torch.Size([2, 30])
    """

    attention: ClassVar[type[nn.Module]] = MultiHeadAttention
    absolute: ClassVar[bool] = True

    def __init__(
        self,
        num_embeddings: int,
        width: int = 30,
        heads: int = 3,
        ffn_dim: int = 60,
        project: int = 30,
        attention_dropout: float = 0.15,
        dropout: float = 0.0,
        output_dropout: float = 0.0,
    ):
        super().__init__(num_embeddings, width, dropout, output_dropout)
        check_sizes(ffn_dim=ffn_dim, project=project)
        check_rates(attention_dropout=attention_dropout)
        self.positions = SinusoidalPositions(width) if self.absolute else None
        attention = self.attention(width, heads, dropout=attention_dropout)
        self.layer = EncoderLayer(attention, width, ffn_dim, attention_dropout)
        self.project = glorot(nn.Linear(width, project))
        self.output_width = project

    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        if self.positions is not None:
            x = self.positions(x, lengths)
        return self.project(max_over_characters(self.layer(x, lengths), lengths))


class CharAdaTrans(CharTransformer):
    """Encodes words like `CharTransformer`, but with the attention of TENER.

    `RelativeAttention` knows directions and distances, so no sinusoids are added to the
    embeddings. The settings and their values in Yan2019 are the same.

    Examples:
        >>> encoder = CharAdaTrans(num_embeddings=50)
        >>> encoder(torch.tensor([3, 1, 20, 7, 7]), torch.tensor([3, 2])).shape  # two words
        torch.Size([2, 30])
    """

    attention = RelativeAttention
    absolute = False
