"""Word vectors from characters by an LSTM (Wei2020 section 5.2, Yan2019 section 3.1)."""

from typing import Literal

import torch
from torch import Tensor, nn

from spacy_psa.errors import check_choice, check_rates, check_sizes
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.initialization import embedding, glorot
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.products import Distinct
from spacy_psa.ragged import pad

Pool = Literal["final", "max"]


class CharBiLSTM(nn.Module):
    """Encodes words by a bidirectional LSTM over characters: C characters -> (M, output_width).

    In a config of version 1, `rows` (the number of distinct characters, without the unknown one)
    takes the place of `num_embeddings`, and `init_std` is called `spread`;
    `spacy_psa.architectures.chars` describes the settings that only the config has.

    Args:
        num_embeddings: size of the character vocabulary. Row 0 is the unknown character.
        width: width of a character's embedding (Wei2020 and Yan2019: 30).
        hidden: units of each direction (Wei2020: "100", read here as 100 for each direction;
            Yan2019: 50).
        dropout: dropout rate on the embeddings (the papers give none).
        project: width of a linear layer after the LSTM (Yan2019: 30), or None for no such layer
            (Wei2020).
        pool: "final" takes the state of each direction after its last character (Wei2020). "max"
            takes the largest value over the characters, at least 0 (Yan2019's code).
        output_dropout: dropout rate on the word's vector (the papers give none).
        init_std: standard deviation of the uniform distribution from which embeddings are drawn
            at the start. By default it is 1 / sqrt(width), which is U(-sqrt(3 / width),
            sqrt(3 / width)), the range of Glorot's rule for one row.

    Raises:
        InputError: for a size below 1, a dropout rate that is not from 0 to 1, and an unknown
            `pool`.

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
        super().__init__()
        check_sizes(num_embeddings=num_embeddings, width=width, hidden=hidden, project=project)
        check_rates(dropout=dropout, output_dropout=output_dropout)
        check_choice("pool", pool, Pool)
        self.embed = embedding(num_embeddings, width, init_std)
        self.dropout = Dropout(dropout)
        self.lstm = BiLSTM(width, hidden, input_dropout=0.0, output_dropout=0.0)
        self.pool = pool
        states = self.lstm.output_width
        self.project = nn.Identity() if project is None else glorot(nn.Linear(states, project))
        self.output_dropout = Dropout(output_dropout)
        self.output_width = states if project is None else project

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Encode words from their characters -> (M, output_width).

        Args:
            characters: (C,) int64, the embedding row of each character, one word after the other.
            lengths: (M,) int64, the number of characters of each word, at least 1.
        """
        few = len(characters) >= self.embed.num_embeddings
        if self.pool == "final" and few and not (self.training or torch.is_grad_enabled()):
            # The products with the vector of a character are computed once.
            word = self.lstm.final(Distinct.of(self.embed.weight, characters), lengths)
        elif self.pool == "final":
            word = self.lstm.final(self.dropout(self.embed(characters)), lengths)
        else:
            word = max_over_characters(
                self.lstm(self.dropout(self.embed(characters)), lengths), lengths
            )
        return self.output_dropout(self.project(word))


def max_over_characters(x: Tensor, lengths: Tensor) -> Tensor:
    """Take the largest relu(x) over the characters of each word: (C, d) -> (M, d).

    Examples:
        >>> x = torch.tensor([[1.0, -2.0], [3.0, -1.0], [0.5, 4.0]])
        >>> max_over_characters(x, torch.tensor([2, 1]))
        tensor([[3.0000, 0.0000],
                [0.5000, 4.0000]])
    """
    return pad(torch.relu(x), lengths).amax(1)
