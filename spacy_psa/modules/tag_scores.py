"""Scores of the tags of single tokens, next to the scores of spans (Kitaev2018's later code)."""

import torch
from torch import Tensor, nn


class TagScores(nn.Module):
    """Scores each tag of each token: token vectors (N, d) -> (tokens, T).

        t(i, ·) = W2 relu(LayerNorm(W1 y_i + b1)) + b2

    This is the tag head of Kitaev2018's later code.

    Args:
        input_width: d, the width of the token vectors.
        labels: T, the number of tags.
        hidden: number of rows of W1 (that code: 256).
        boundaries: whether the first and the last row of each sentence are the vectors of START
            and STOP. They have no tags and are left out.

    Examples:
        >>> scores = TagScores(input_width=16, labels=5, boundaries=True)
        >>> scores(torch.randn(7, 16), torch.tensor([4, 3])).shape  # 2 + 1 tokens
        torch.Size([3, 5])
    """

    def __init__(self, input_width: int, labels: int, hidden: int = 256, boundaries: bool = False):
        super().__init__()
        self.boundaries = boundaries
        self.inner = nn.Linear(input_width, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.label = nn.Linear(hidden, labels)

    def out_lengths(self, lengths: Tensor) -> Tensor:
        """Count the tokens of sentences with `lengths` rows: (B,) -> (B,)."""
        return lengths - 2 if self.boundaries else lengths

    def forward(self, y: Tensor, lengths: Tensor) -> Tensor:
        """Score the tags of y (N, d), with `lengths` (B,) rows a sentence -> (tokens, T)."""
        if self.boundaries:
            last = torch.cumsum(lengths, 0) - 1
            keep = torch.ones(len(y), dtype=torch.bool)
            keep[last] = keep[last - lengths + 1] = False
            y = y.index_select(0, keep.nonzero()[:, 0].to(y.device))
        return self.label(torch.relu(self.norm(self.inner(y))))
