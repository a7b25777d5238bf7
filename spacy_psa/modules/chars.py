"""Words from their characters (J section 5.2, T section 3.1)."""

from typing import Literal, TypeVar

import torch
from torch import Tensor, nn

from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.ragged import pad

Pool = Literal["final", "max"]
Layer = TypeVar("Layer", nn.Linear, nn.Conv1d)


class CharBiLSTM(nn.Module):
    """A bidirectional LSTM over a word's characters.

    rows: size of the character vocabulary, row 0 for unknown characters.
    width: width of a character's embedding (J: 30), drawn from
    U(-sqrt(3 / width), sqrt(3 / width)), the range of Glorot's rule for one row.
    spread: another standard deviation of that draw.
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
        spread: float | None = None,
    ):
        super().__init__()
        self.embed = embedding(rows, width, spread)
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


def embedding(rows: int, width: int, spread: float | None = None) -> nn.Embedding:
    """A table of start values, see `uniform`."""
    table = nn.Embedding(rows, width)
    uniform(table.weight, spread)
    return table


def uniform(vectors: Tensor, spread: float | None = None) -> Tensor:
    """Draw vectors, (M, width), from the uniform distribution around 0 of standard
    deviation `spread`, by default 1 / sqrt(width): U(-sqrt(3 / width), sqrt(3 / width))."""
    spread = vectors.shape[1] ** -0.5 if spread is None else spread
    return nn.init.uniform_(vectors, -(3.0**0.5) * spread, 3.0**0.5 * spread)


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
