"""Words from their characters (J section 5.2, T section 3.1)."""

from typing import Literal, TypeVar

import torch
from torch import Tensor, nn

from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.ragged import pad

Pool = Literal["final", "max"]
Layer = TypeVar("Layer", nn.Linear, nn.Conv1d)


class CharBiLSTM(nn.Module):
    """A bidirectional LSTM over a word's characters.

    rows: size of the character vocabulary, row 0 for unknown characters.
    width: width of a character's embedding (J: 30), drawn from
    U(-sqrt(3 / width), sqrt(3 / width)), the range of Glorot's rule for one row.
    hidden: units of each direction (J: "hidden 100", read as 100 each; T: 50).
    dropout: on the character embeddings. output_dropout: on the word's vector.
    project: width of a linear layer on top (T: 30), or None for no layer.
    pool: "final", the state of each direction after its last character (J), or
    "max", the largest value over the characters, at least 0 (T's code).
    """

    def __init__(
        self,
        rows: int,
        width: int = 30,
        hidden: int = 100,
        dropout: float = 0.0,
        project: int | None = None,
        pool: Pool = "final",
        output_dropout: float = 0.0,
    ):
        super().__init__()
        self.embed = embedding(rows, width)
        self.dropout = nn.Dropout(dropout)
        self.lstm = BiLSTM(width, hidden)
        self.pool = pool
        states = self.lstm.out_width
        self.project = nn.Identity() if project is None else glorot(nn.Linear(states, project))
        self.output_dropout = nn.Dropout(output_dropout)
        self.out_width = states if project is None else project

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """characters: (C,) int64 rows, one word after the other; lengths: (M,)
        characters of each word, at least 1. Returns (M, out_width)."""
        x = self.dropout(self.embed(characters))
        if self.pool == "final":
            word = self.lstm.final(x, lengths)
        else:
            word = strongest(self.lstm(x, lengths), lengths)
        return self.output_dropout(self.project(word))


def embedding(rows: int, width: int) -> nn.Embedding:
    """A table drawn from U(-sqrt(3 / width), sqrt(3 / width))."""
    table = nn.Embedding(rows, width)
    bound = (3.0 / width) ** 0.5
    nn.init.uniform_(table.weight, -bound, bound)
    return table


def glorot(layer: Layer) -> Layer:
    """The layer, its weights drawn by Glorot's rule and its biases 0."""
    nn.init.xavier_uniform_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def strongest(x: Tensor, lengths: Tensor) -> Tensor:
    """(C, d) -> (M, d): the largest relu(x) over the characters of each word."""
    return pad(torch.relu(x), lengths).amax(1)


class WordTable(nn.Module):
    """A trainable vector for each of the first `rows` words that training meets.

    The rows start at `start`, U(-start, start), or at 0 where a pretrained vector
    lies beneath (see `spacy_psa.architectures.embed.WordEmbed`). Row 0, the
    unknown word's, is trained only where unknown words occur in training.
    """

    def __init__(self, rows: int, width: int):
        super().__init__()
        self.table = nn.Embedding(rows, width)
        nn.init.zeros_(self.table.weight)
        self.out_width = width

    def forward(self, rows: Tensor, pretrained: Tensor) -> Tensor:
        """rows: (M,) int64; pretrained: (M, width). Returns (M, width), their sum."""
        return self.table(rows) + pretrained
