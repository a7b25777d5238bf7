"""Trained vectors of words, added to pretrained vectors."""

from torch import Tensor, nn


class WordTable(nn.Module):
    """Adds a trained vector to the pretrained vector of each word.

    All trained vectors start at 0. `WordEmbed.v1` then draws those of the words without a
    pretrained vector. In a config of version 1, `rows` takes the place of `num_embeddings`.

    Args:
        num_embeddings: number of words with a trained vector, plus 1 for row 0, the unknown word.
        width: width of a vector.

    Examples:
        >>> import torch
        >>> table = WordTable(num_embeddings=10, width=3)
        >>> table(torch.tensor([4, 0]), torch.ones(2, 3))
        tensor([[1., 1., 1.],
                [1., 1., 1.]], grad_fn=<AddBackward0>)
    """

    def __init__(self, num_embeddings: int, width: int):
        super().__init__()
        self.table = nn.Embedding(num_embeddings, width)
        nn.init.zeros_(self.table.weight)
        self.output_width = width

    def forward(self, rows: Tensor, pretrained: Tensor) -> Tensor:
        """Add the vectors of `rows` (M,) int64 to `pretrained` (M, width) -> (M, width)."""
        return self.table(rows) + pretrained
