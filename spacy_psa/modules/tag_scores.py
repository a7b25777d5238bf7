"""Scores of the tags of single tokens, beside those of spans (Kitaev2018, later code)."""

import torch
from torch import Tensor, nn


class TagScores(nn.Module):
    """t(i, ·) = W2 relu(LayerNorm(W1 y_i + b1)) + b2, the tag head of Kitaev2018's later code.

    input_width: of the token vectors. labels: T, the tags. hidden: rows of W1 (that code: 256).
    boundaries: the first and the last row of each sentence are those of START and STOP,
    which have no tags.
    """

    def __init__(self, input_width: int, labels: int, hidden: int = 256, boundaries: bool = False):
        super().__init__()
        self.boundaries = boundaries
        self.inner = nn.Linear(input_width, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.label = nn.Linear(hidden, labels)

    def out_lengths(self, lengths: Tensor) -> Tensor:
        """The tokens of sentences of these many rows."""
        return lengths - 2 if self.boundaries else lengths

    def forward(self, y: Tensor, lengths: Tensor) -> Tensor:
        """y (N, d), lengths (B,) of its rows -> (tokens, T)."""
        if self.boundaries:
            last = torch.cumsum(lengths, 0) - 1
            keep = torch.ones(len(y), dtype=torch.bool)
            keep[last] = keep[last - lengths + 1] = False
            y = y[keep.to(y.device)]
        return self.label(torch.relu(self.norm(self.inner(y))))
