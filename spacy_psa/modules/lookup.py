"""Trained vectors of words, of letters (Kitaev2018 section 5) and of tags (section 2.1)."""

from collections import OrderedDict

from torch import Tensor, nn

from spacy_psa.errors import check_rates, check_sizes
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.initialization import embedding


class WordTable(nn.Sequential):
    """A table of trained vectors that all start at 0: the rows (M,) int64 -> (M, width).

    `WordEmbed.v1` draws the vectors of words without a pretrained vector later.

    Args:
        num_embeddings: number of words with a trained vector, plus 1 for row 0, the unknown word.

    Examples:
        >>> import torch
        >>> WordTable(num_embeddings=10, width=3)(torch.tensor([4, 0])).tolist()
        [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    def __init__(self, num_embeddings: int, width: int):
        table = nn.Embedding(num_embeddings, width)
        super().__init__(OrderedDict(table=table))
        nn.init.zeros_(table.weight)


class Lookup(nn.Module):
    """Looks up the vectors of some symbols of each word and joins them: (M, symbols · width).

    `CharConcat.v1` and `TagEmbed.v1` use this module.

    Args:
        width: width of a symbol's vector (Kitaev2018: 32 for a letter).
        symbols: number of symbols of each word (Kitaev2018: 2 · 8 letters, or 1 tag).

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
