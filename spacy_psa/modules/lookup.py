"""Trained vectors of symbols: letters of a word (Kitaev2018 section 5) or its tag (section 2.1)."""

from torch import Tensor, nn

from spacy_psa.errors import check_rates, check_sizes
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.initialization import embedding


class Lookup(nn.Module):
    """Looks up the vectors of some symbols of each word and puts them side by side.

    In a config, `CharConcat.v1` and `TagEmbed.v1` use this module; a config of version 1 calls
    `init_std` `spread`, and has `rows` in place of `num_embeddings`.

    Args:
        num_embeddings: size of the vocabulary of symbols.
        width: width of a symbol's vector (Kitaev2018: 32 for a letter).
        symbols: number of symbols of each word (Kitaev2018: 2 · 8 letters, or 1 tag).
        dropout: dropout rate on the vectors.
        init_std: standard deviation of the uniform distribution from which vectors are drawn at
            the start. By default it is 1 / sqrt(width), which is U(-sqrt(3 / width),
            sqrt(3 / width)).

    Raises:
        InputError: for a size below 1, and if `dropout` is not from 0 to 1.

    Examples:
        >>> import torch
        >>> lookup = Lookup(num_embeddings=30, width=4, symbols=2)
        >>> lookup(torch.tensor([[3, 1], [7, 7], [0, 2]])).shape
        torch.Size([3, 8])
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
        check_sizes(num_embeddings=num_embeddings, width=width, symbols=symbols)
        check_rates(dropout=dropout)
        self.embed = embedding(num_embeddings, width, init_std)
        self.dropout = Dropout(dropout)
        self.output_width = symbols * width

    def forward(self, rows: Tensor) -> Tensor:
        """Look up the symbols `rows` (M, symbols) int64 of M words -> (M, symbols * width)."""
        return self.dropout(self.embed(rows)).flatten(1)
