"""Words from their characters (J section 5.2, T section 3.1)."""

from torch import Tensor, nn

from spacy_psa.modules.lstm import BiLSTM


class CharBiLSTM(nn.Module):
    """The final states of a bidirectional LSTM over a word's characters.

    rows: size of the character vocabulary, row 0 for unknown characters.
    width: width of a character's embedding (J: 30), drawn from
    U(-sqrt(3 / width), sqrt(3 / width)), the range of Glorot's rule for one row.
    hidden: units of each direction (J: "hidden 100", read as 100 each).
    dropout: on the character embeddings.
    """

    def __init__(self, rows: int, width: int = 30, hidden: int = 100, dropout: float = 0.0):
        super().__init__()
        self.embed = nn.Embedding(rows, width)
        bound = (3.0 / width) ** 0.5
        nn.init.uniform_(self.embed.weight, -bound, bound)
        self.dropout = nn.Dropout(dropout)
        self.lstm = BiLSTM(width, hidden)
        self.out_width = self.lstm.out_width

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """characters: (C,) int64 rows, one word after the other; lengths: (M,)
        characters of each word, at least 1. Returns (M, 2 * hidden)."""
        return self.lstm.final(self.dropout(self.embed(characters)), lengths)


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
