"""The base of the modules that encode words from their characters, and functions for them."""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from spacy_psa.errors import check_rates, check_sizes
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.initialization import embedding
from spacy_psa.ragged import pad, positions


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
