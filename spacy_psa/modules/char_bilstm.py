"""Words from their characters (Wei2020 section 5.2, Yan2019 section 3.1)."""

from typing import Literal

import torch
from torch import Tensor, nn

from spacy_psa.errors import check_choice, check_sizes
from spacy_psa.modules.initialization import embedding, glorot
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.ragged import pad

Pool = Literal["final", "max"]


class CharBiLSTM(nn.Module):
    """A bidirectional LSTM over a word's characters.

    num_embeddings: size of the character vocabulary, row 0 for unknown characters.
    width: width of a character's embedding (Wei2020: 30), drawn from
    U(-sqrt(3 / width), sqrt(3 / width)), the range of Glorot's rule for one row.
    init_std: another standard deviation of that draw.
    hidden: units of each direction (Wei2020: "hidden 100", read as 100 each; Yan2019: 50).
    dropout: on the character embeddings. output_dropout: on the word's vector.
    project: width of a linear layer on top (Yan2019: 30), or None for no layer.
    pool: "final", the state of each direction after its last character (Wei2020), or
    "max", the largest value over the characters, at least 0 (Yan2019's code).
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
        check_sizes(width=width, hidden=hidden, project=project)
        check_choice("pool", pool, Pool)
        self.embed = embedding(num_embeddings, width, init_std)
        self.dropout = nn.Dropout(dropout)
        self.lstm = BiLSTM(width, hidden, input_dropout=0.0, output_dropout=0.0)
        self.pool = pool
        states = self.lstm.output_width
        self.project = nn.Identity() if project is None else glorot(nn.Linear(states, project))
        self.output_dropout = nn.Dropout(output_dropout)
        self.output_width = states if project is None else project

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """characters: (C,) int64 rows, one word after the other; lengths: (M,)
        characters of each word, at least 1. Returns (M, output_width)."""
        x = self.dropout(self.embed(characters))
        if self.pool == "final":
            word = self.lstm.final(x, lengths)
        else:
            word = max_over_characters(self.lstm(x, lengths), lengths)
        return self.output_dropout(self.project(word))


def max_over_characters(x: Tensor, lengths: Tensor) -> Tensor:
    """(C, d) -> (M, d): the largest relu(x) over the characters of each word."""
    return pad(torch.relu(x), lengths).amax(1)
