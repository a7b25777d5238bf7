"""Words from their characters by convolution (Yan2019 section 6.1; Li2019 section 3.1)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacy_psa.errors import SettingError, check_sizes
from spacy_psa.modules.char_bilstm import max_over_characters
from spacy_psa.modules.initialization import embedding, glorot
from spacy_psa.ragged import positions

KINDS = 4  # of characters: upper case, lower case, digit, punctuation


class CharCNN(nn.Module):
    """A convolution over a word's characters, the largest value of each filter, and a
    linear layer (Yan2019 section 6.1).

    num_embeddings: size of the character vocabulary, row 0 for unknown characters.
    width: of a character's embedding (Yan2019: 30).
    filters: how many (Yan2019: 30). kernel_size: characters that a filter sees, odd (Yan2019: 3);
    beyond the ends of the word it sees zeros.
    project: width of the linear layer (Yan2019: 30).
    dropout: on the embeddings. output_dropout: on the word's vector.
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
        check_sizes(width=width, filters=filters, kernel_size=kernel_size, project=project)
        if kernel_size % 2 == 0:
            raise SettingError("kernel_size", kernel_size, "take an odd number")
        self.embed = embedding(num_embeddings, width)
        self.dropout = nn.Dropout(dropout)
        self.convolve = glorot(nn.Conv1d(width, filters, kernel_size))
        self.project = glorot(nn.Linear(filters, project))
        self.output_dropout = nn.Dropout(output_dropout)
        self.output_width = project

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """characters: (C,) int64 rows, one word after the other; lengths: (M,)
        characters of each word, at least 1. Returns (M, project)."""
        x = self.dropout(self.embed(characters))
        # One line of characters with zeros between the words, so that words of all
        # lengths are one convolution and no filter sees two of them.
        gap = self.convolve.kernel_size[0] // 2
        word, _ = positions(lengths, x.device)
        where = torch.arange(len(x), device=x.device) + gap * (word + 1)
        line = x.new_zeros(len(x) + gap * (len(lengths) + 1), x.shape[1])
        seen = self.convolve(line.index_put((where,), x).t()[None])[0].t()
        return self.output_dropout(self.project(max_over_characters(seen[where - gap], lengths)))


class CharNgramCNN(nn.Module):
    """Filters over each n characters of a word cut or padded to one size, and the largest
    value of each (Li2019 section 3.1; Chiu & Nichols 2016).

    Filters have no bias and no nonlinearity, as in the authors' code: a bias would only
    move the maximum, which the next layer's does.

    num_embeddings: size of the character vocabulary, row 0 for unknown characters.
    width: of a character's embedding (Li2019: 25); N(0, 0.1^2) at the start, as in their code.
    filters: for each n (Li2019: 20). max_ngram: n is 1 to this (Li2019: 3).
    max_characters: that every word has after padding with a trained vector (Li2019: 20).
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
        check_sizes(width=width, filters=filters)
        if not 1 <= max_ngram <= max_characters:
            advice = f"take 1 to max_characters, {max_characters}"
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
        """characters: (C,) int64 rows, one word after the other; kinds: (C,) int64, 1 to 4
        for upper case, lower case, digit, punctuation, 0 for none of them;
        lengths: (M,) characters of each word, 1 to `max_characters`.
        Returns (M, filters * max_ngram), the shortest n first."""
        features = F.one_hot(kinds, KINDS + 1)[:, 1:].to(self.padding.dtype)
        x = torch.cat([self.embed(characters), features], 1)
        words = F.pad(self.padding, (0, KINDS)).repeat(len(lengths), self.max_characters, 1)
        words = words.index_put(positions(lengths, x.device), x).transpose(1, 2)
        return torch.cat([convolve(words).amax(2) for convolve in self.convolve], 1)
