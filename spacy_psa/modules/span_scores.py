"""The heads of the chart parser: scores of labelled spans (Kitaev2018 section 2.3), and of tags."""

from typing import Literal

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacy_psa.kernels import available
from spacy_psa.ragged import to_device, with_boundaries

BLOCK = 2**17
"""The spans whose hidden layer is in memory at once in prediction; 500 tokens have as many."""
Sides = Literal["even_odd", "halves"]


def span_counts(lengths: Tensor) -> Tensor:
    """Count the spans of sentences of n tokens, n (n + 1) / 2: (B,) -> (B,)."""
    return lengths * (lengths + 1) // 2


def span_fenceposts(lengths: Tensor, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """List the first and the last fencepost of every span of sentences of `lengths` (B,) int64.

    Fenceposts are numbered over the whole batch: a sentence of n tokens has n + 1.

    Returns:
        Two (S,) int64 tensors, S = Σ n (n + 1) / 2: sentence after sentence, and in a sentence
        ordered by start and then by end.
    """
    starts, ends, offset = [], [], 0
    for n in lengths.tolist():
        start, end = numpy.triu_indices(n + 1, 1)
        starts.append(start + offset)
        ends.append(end + offset)
        offset += n + 1
    start, end = numpy.concatenate(starts), numpy.concatenate(ends)
    return to_device(torch.from_numpy(start), device), to_device(torch.from_numpy(end), device)


def span_hidden(
    fenceposts: Tensor, lengths: Tensor, bias: Tensor, weight: Tensor, shift: Tensor, eps: float
) -> Tensor:
    """Compute relu(LayerNorm(F_j - F_i + c)) of all spans (i, j); the twin is in `kernels`.

    Args:
        fenceposts: F, (N + B, h), the fenceposts of sentences of `lengths` tokens.
        bias: c, (h,); `weight`, `shift` and `eps` are those of the LayerNorm.

    Returns:
        (S, h), a row for each span, in the order of `span_fenceposts`.
    """
    start, end = span_fenceposts(lengths, fenceposts.device)
    hidden = fenceposts.index_select(0, end) - fenceposts.index_select(0, start)
    return torch.relu(F.layer_norm(hidden + bias, bias.shape, weight, shift, eps))


class SpanScores(nn.Module):
    """Scores each span and label of a sentence: token vectors (N, d) -> (S, L - 1).

        s(i, j, ·) = M2 relu(LayerNorm(M1 v_ij + c1)) + c2, v_ij = F_j - F_i   (section 2.3)

    F_k is the fencepost between the tokens k and k + 1, for k = 0 to n. It consists of one side
    (half of the coordinates) of y_k and the other side of y_{k+1}, where y_0 and y_{n+1} are the
    vectors of START and STOP. M1 is linear, so the module applies it to the n + 1 fenceposts of a
    sentence, and not to its n (n + 1) / 2 spans.

    With S spans in a batch, the module holds about 2 S · hidden floats in training and S · hidden
    in prediction on a CPU with numba, and twice as many elsewhere. In prediction it holds no more
    than those of `BLOCK` spans.

    Args:
        labels: L - 1, the number of labels without the null label, whose score is 0.
        hidden: number of rows of M1 (Kitaev2018's code: 250).
        boundaries: whether the first and the last row of each sentence are the vectors of START
            and STOP. Otherwise the module has trained vectors for them.
        sides: how a vector is divided: "even_odd" into the even and the odd coordinates (Kitaev2018
            footnote 2), or "halves" into its two halves, which are the directions of a BiLSTM.

    Examples:
        >>> scores = SpanScores(input_width=16, labels=5, hidden=8)
        >>> scores(torch.randn(7, 16), torch.tensor([4, 3])).shape  # 10 + 6 spans
        torch.Size([16, 5])
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
        for layer in (self.left, self.right):  # start like one layer of the whole width
            nn.init.uniform_(layer.weight, -(input_width**-0.5), input_width**-0.5)
        self.norm = nn.LayerNorm(hidden)
        self.label = nn.Linear(hidden, labels)
        self.ends = None if boundaries else nn.Parameter(torch.randn(2, input_width))

    def out_lengths(self, lengths: Tensor) -> Tensor:
        """Count the spans of sentences with `lengths` rows: (B,) -> (B,)."""
        return span_counts(lengths - 2 if self.boundaries else lengths)

    def forward(self, y: Tensor, lengths: Tensor) -> Tensor:
        """Score the spans of y (N, d), with `lengths` (B,) rows a sentence -> (S, L - 1).

        The spans are in the order of `span_fenceposts`.
        """
        if self.ends is not None:
            y = torch.cat([y, self.ends])[with_boundaries(lengths, y.device)]
        else:
            lengths = lengths - 2
        if y.device.type == "cpu" and available():
            from spacy_psa.kernels.span_hidden import span_hidden as hidden  # needs numba
        else:
            hidden = span_hidden
        norm = self.norm
        fenceposts = self._fenceposts(y, lengths)
        if not torch.is_grad_enabled() and int(span_counts(lengths).sum()) > BLOCK:
            return self._in_blocks(fenceposts, lengths)
        return self.label(hidden(fenceposts, lengths, self.bias, norm.weight, norm.bias, norm.eps))

    def _in_blocks(self, fenceposts: Tensor, lengths: Tensor) -> Tensor:
        """Score the spans of long sentences, without the hidden layer of all spans at once."""
        start, end = span_fenceposts(lengths, fenceposts.device)
        scores = fenceposts.new_empty(len(start), self.label.out_features)
        for rows in torch.arange(len(start), device=start.device).split(BLOCK // 4):
            first, last = int(rows[0]), int(rows[-1]) + 1
            vectors = fenceposts[end[first:last]] - fenceposts[start[first:last]] + self.bias
            scores[first:last] = self.label(torch.relu(self.norm(vectors)))
        return scores

    def _fenceposts(self, y: Tensor, lengths: Tensor) -> Tensor:
        """Compute M1 F, (N + B, hidden), from y (N + 2B, d)."""
        left, right = self.left(y[:, self.sides[0]]), self.right(y[:, self.sides[1]])
        last = torch.cumsum(lengths + 2, 0) - 1  # no fencepost is to the right of STOP
        keep = torch.ones(len(y), dtype=torch.bool)
        keep[last] = False
        rows = to_device(keep.nonzero()[:, 0], y.device)
        return left.index_select(0, rows) + right.index_select(0, rows + 1)


class TagScores(nn.Module):
    """Scores each tag of each token: token vectors (N, d) -> (tokens, T).

        t(i, ·) = W2 relu(LayerNorm(W1 y_i + b1)) + b2

    This is the tag head of Kitaev2018's later code.

    Args:
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
            y = y.index_select(0, to_device(keep.nonzero()[:, 0], y.device))
        return self.label(torch.relu(self.norm(self.inner(y))))
