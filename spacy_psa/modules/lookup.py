"""Trained vectors of symbols: a word's letters (K section 5), its tag (K section 2.1)."""

from torch import Tensor, nn

from spacy_psa.modules.chars import embedding


class Lookup(nn.Module):
    """The vectors of some symbols of each word, side by side.

    rows: size of the vocabulary. width: of a symbol's vector, drawn from
    U(-sqrt(3 / width), sqrt(3 / width)), or with another standard deviation, `spread`.
    symbols: of each word. dropout: on the vectors.
    """

    def __init__(
        self,
        rows: int,
        width: int,
        symbols: int = 1,
        dropout: float = 0.0,
        spread: float | None = None,
    ):
        super().__init__()
        self.embed = embedding(rows, width, spread)
        self.dropout = nn.Dropout(dropout)
        self.out_width = symbols * width

    def forward(self, rows: Tensor) -> Tensor:
        """rows: (M, symbols) int64. Returns (M, symbols * width)."""
        return self.dropout(self.embed(rows)).flatten(1)
