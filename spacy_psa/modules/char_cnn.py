"""Word vectors from characters by convolution (Yan2019 section 6.1; Li2019 section 3.1)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacy_psa.errors import SettingError, check_rates, check_sizes
from spacy_psa.modules.char_bilstm import max_over_characters
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.initialization import embedding, glorot
from spacy_psa.ragged import positions

KINDS = 4  # kinds of characters: upper case, lower case, digit, punctuation


class CharCNN(nn.Module):
    """Encodes words by a convolution over their characters: C characters -> (M, project).

    The module takes the largest value of each filter over the characters, at least 0; a linear
    layer follows (Yan2019 section 6.1).

    In a config of version 1, `rows` (the number of distinct characters, without the unknown one)
    takes the place of `num_embeddings`, and `filters` is called `kernels` and `kernel_size`
    `kernel_width`; `spacy_psa.architectures.chars` describes the settings that only the config has.

    Args:
        num_embeddings: size of the character vocabulary. Row 0 is the unknown character.
        width: width of a character's embedding (Yan2019: 30).
        filters: number of filters (Yan2019: 30).
        kernel_size: characters that a filter sees, an odd number (Yan2019: 3). Beyond the ends of
            the word it sees zeros.
        project: width of the linear layer (Yan2019: 30).
        dropout: dropout rate on the embeddings (Yan2019 gives none).
        output_dropout: dropout rate on the word's vector (Yan2019 gives none).

    Raises:
        InputError: for a size below 1, a dropout rate that is not from 0 to 1, and an even
            `kernel_size`.

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
        super().__init__()
        check_sizes(num_embeddings=num_embeddings, width=width, filters=filters)
        check_sizes(kernel_size=kernel_size, project=project)
        check_rates(dropout=dropout, output_dropout=output_dropout)
        if kernel_size % 2 == 0:
            raise SettingError("kernel_size", kernel_size, "it must be odd")
        self.embed = embedding(num_embeddings, width)
        self.dropout = Dropout(dropout)
        self.convolve = glorot(nn.Conv1d(width, filters, kernel_size))
        self.project = glorot(nn.Linear(filters, project))
        self.output_dropout = Dropout(output_dropout)
        self.output_width = project

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Encode words from their characters -> (M, project).

        Args:
            characters: (C,) int64, the embedding row of each character, one word after the other.
            lengths: (M,) int64, the number of characters of each word, at least 1.
        """
        x = self.dropout(self.embed(characters))
        # All words stand on one line, with zeros between them. So one convolution does for words
        # of all lengths, and no filter sees two words.
        gap = self.convolve.kernel_size[0] // 2
        word, _ = positions(lengths, x.device)
        where = torch.arange(len(x), device=x.device) + gap * (word + 1)
        line = x.new_zeros(len(x) + gap * (len(lengths) + 1), x.shape[1])
        seen = self.convolve(line.index_put((where,), x).t()[None])[0].t()
        return self.output_dropout(self.project(max_over_characters(seen[where - gap], lengths)))


class CharNgramCNN(nn.Module):
    """Encodes words by filters over character n-grams: C characters -> (M, filters * max_ngram).

    Every word is padded to one size, and the module takes the largest value of each filter over
    the places (Li2019 section 3.1; Chiu & Nichols 2016). As in the authors' code, filters have no
    bias and no nonlinearity: a bias would only shift the maximum, which the bias of the next
    layer does too.

    In a config of version 1, `filters` is called `kernels` and `max_ngram` `longest`. The
    architecture sets `num_embeddings` itself.

    Args:
        num_embeddings: size of the character vocabulary. Row 0 is the unknown character.
        width: width of a character's embedding (Li2019: 25). Embeddings start from N(0, 0.1²), as
            in the authors' code.
        filters: number of filters for each n (Li2019: 20).
        max_ngram: the largest n; the smallest is 1 (Li2019: 3).
        max_characters: number of characters of every word after padding with a trained vector
            (Li2019: 20).

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
