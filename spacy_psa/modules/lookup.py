"""Trained vectors of symbols: a word's letters (Kitaev2018 section 5), its tag (Kitaev2018 section 2.1)."""

from torch import Tensor, nn

from spacy_psa.modules.initialization import embedding


class Lookup(nn.Module):
    """The vectors of some symbols of each word, side by side.

    num_embeddings: size of the vocabulary. width: of a symbol's vector, drawn from
    U(-sqrt(3 / width), sqrt(3 / width)), or with another standard deviation, `init_std`.
    symbols: of each word. dropout: on the vectors.
    """

    def __init__(
        self,
        num_embeddings: int,
        width: int,
        symbols: int = 1,
        dropout: float = 0.0,
        init_std: float | None = None,
    ):
        super().__init__()
        self.embed = embedding(num_embeddings, width, init_std)
        self.dropout = nn.Dropout(dropout)
        self.output_width = symbols * width

    def forward(self, rows: Tensor) -> Tensor:
        """rows: (M, symbols) int64. Returns (M, symbols * width)."""
        return self.dropout(self.embed(rows)).flatten(1)
