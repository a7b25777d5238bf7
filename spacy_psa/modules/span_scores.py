"""Scores of labelled spans from token vectors (Kitaev2018 section 2.3)."""

from typing import Literal

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacy_psa.kernels import available
from spacy_psa.ragged import with_boundaries

Sides = Literal["even_odd", "halves"]


def span_counts(lengths: Tensor) -> Tensor:
    """(B,) -> (B,): the spans of a sentence of n tokens, n (n + 1) / 2."""
    return lengths * (lengths + 1) // 2


def span_fenceposts(lengths: Tensor, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """The first and last fencepost of every span, as rows of a ragged batch that has
    n + 1 fenceposts for a sentence of n tokens.

    lengths: (B,) int64. Returns two (S,) int64 tensors on `device`, S = Σ n (n + 1) / 2,
    sentence after sentence, in a sentence by start and then by end.
    """
    starts, ends, offset = [], [], 0
    for n in lengths.tolist():
        start, end = numpy.triu_indices(n + 1, 1)
        starts.append(start + offset)
        ends.append(end + offset)
        offset += n + 1
    start, end = numpy.concatenate(starts), numpy.concatenate(ends)
    return torch.from_numpy(start).to(device), torch.from_numpy(end).to(device)


def span_hidden(
    fenceposts: Tensor, lengths: Tensor, bias: Tensor, weight: Tensor, shift: Tensor, eps: float
) -> Tensor:
    """relu(LayerNorm(F_j - F_i + c)) of the spans (i, j), in the order of `span_fenceposts`.

    The plain torch form of `kernels.spans.span_hidden`.

    fenceposts: F (N + B, h), of sentences of lengths (B,). bias: c (h,). weight, shift, eps:
    of the LayerNorm. Returns (S, h).
    """
    start, end = span_fenceposts(lengths, fenceposts.device)
    hidden = fenceposts.index_select(0, end) - fenceposts.index_select(0, start)
    return torch.relu(F.layer_norm(hidden + bias, bias.shape, weight, shift, eps))


class SpanScores(nn.Module):
    """s(i, j, ·) = M2 relu(LayerNorm(M1 v_ij + c1)) + c2, v_ij = F_j - F_i (Kitaev2018 section 2.3).

    F_k, the fencepost between the tokens k and k + 1, is the one side of y_k beside the
    other of y_{k+1}, k = 0 … n, where y_0 and y_{n+1} are the vectors of START and STOP. M1
    is linear, so it is applied to the n + 1 fenceposts of a sentence and not to its
    n (n + 1) / 2 spans.

    input_width: of the token vectors. labels: L - 1, the null label left out, whose score is 0.
    hidden: rows of M1 (Kitaev2018's code: 250).
    sides: of a vector: "even_odd" coordinates (Kitaev2018 footnote 2), or "halves", which are the
    directions where the encoder is a BiLSTM.
    boundaries: the first and the last row of each sentence are those of START and STOP.
    Otherwise the module has trained ones of its own.

    On a CPU with numba it holds about 2 S · hidden floats in training and 1 in prediction, S
    the batch's spans; else twice that.
    """

    def __init__(
        self,
        input_width: int,
        labels: int,
        hidden: int = 250,
        boundaries: bool = False,
        sides: Sides = "even_odd",
    ):
        super().__init__()
        self.boundaries = boundaries
        half = (input_width + 1) // 2
        self.sides = (slice(0, None, 2), slice(1, None, 2))
        if sides == "halves":
            self.sides = (slice(0, half), slice(half, None))
        self.left = nn.Linear(half, hidden, bias=False)
        self.right = nn.Linear(input_width - half, hidden, bias=False)
        self.bias = nn.Parameter(torch.zeros(hidden))
        for layer in (self.left, self.right):  # as one layer of the whole width
            nn.init.uniform_(layer.weight, -(input_width**-0.5), input_width**-0.5)
        self.norm = nn.LayerNorm(hidden)
        self.label = nn.Linear(hidden, labels)
        self.ends = None if boundaries else nn.Parameter(torch.randn(2, input_width))

    def out_lengths(self, lengths: Tensor) -> Tensor:
        """The spans of sentences of these many rows."""
        return span_counts(lengths - 2 if self.boundaries else lengths)

    def forward(self, y: Tensor, lengths: Tensor) -> Tensor:
        """y (N, d), lengths (B,) of its rows -> (S, L - 1), in the order of
        `span_fenceposts`."""
        if self.ends is not None:
            y = torch.cat([y, self.ends])[with_boundaries(lengths, y.device)]
        else:
            lengths = lengths - 2
        if y.device.type == "cpu" and available():
            from spacy_psa.kernels.span_hidden import span_hidden as hidden  # numba, where it works
        else:
            hidden = span_hidden
        norm = self.norm
        fenceposts = self._fenceposts(y, lengths)
        return self.label(hidden(fenceposts, lengths, self.bias, norm.weight, norm.bias, norm.eps))

    def _fenceposts(self, y: Tensor, lengths: Tensor) -> Tensor:
        """M1 F, (N + B, hidden), of y: (N + 2B, d)."""
        left, right = self.left(y[:, self.sides[0]]), self.right(y[:, self.sides[1]])
        last = torch.cumsum(lengths + 2, 0) - 1  # STOP stands left of no fencepost
        keep = torch.ones(len(y), dtype=torch.bool)
        keep[last] = False
        rows = keep.nonzero()[:, 0].to(y.device)
        return left.index_select(0, rows) + right.index_select(0, rows + 1)
