"""Trainable vectors of words, added to pretrained ones."""

from torch import Tensor, nn


class WordTable(nn.Module):
    """A trainable vector for each of the first words that training meets.

    num_embeddings: the words' number and 1, for row 0, the unknown word's.
    width: of a vector.

    All rows start at 0; `WordEmbed.v1` draws those of words without a pretrained vector.
    """

    def __init__(self, num_embeddings: int, width: int):
        super().__init__()
        self.table = nn.Embedding(num_embeddings, width)
        nn.init.zeros_(self.table.weight)
        self.output_width = width

    def forward(self, rows: Tensor, pretrained: Tensor) -> Tensor:
        """rows: (M,) int64; pretrained: (M, width). Returns (M, width), their sum."""
        return self.table(rows) + pretrained
