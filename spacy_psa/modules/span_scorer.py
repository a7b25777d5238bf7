"""The head of `crf_spans`: scores of labelled spans by a biaffine classifier (Yu2020)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacy_psa.modules.dropout import Dropout
from spacy_psa.ragged import positions, to_device

ROWS = 64
"""The first tokens of spans that are multiplied together."""
WIDTHS = 32
"""The lengths of spans with scores of their own; longer spans share the last ones."""


class SpanScorer(nn.Module):
    """Scores each label of each span of tokens: token vectors (N, d) -> (S, L).

        s(i, j, l) = p_i^T U_l q_j + a_l·p_i + b_l·q_j                  (Yu2020 Eq. 1)
                     + mean(c_l·y_i … c_l·y_j) + w_l(j - i)
        p_i = relu(P y_i), q_j = relu(Q y_j)

    i and j are the first and the last token of a span. The first line is the biaffine classifier
    of Yu2020 after Dozat and Manning 2017; the second line adds the tokens of the span and its
    length, as in spaCy's `spancat`.

    Sentences are multiplied one by one and `ROWS` tokens at a time, so in prediction no more than
    `ROWS` · n · L numbers are in memory besides the result.

    Args:
        labels: L, the number of labels; that of no label always has the score 0.
        hidden: the width of p and q (Yu2020: 150).
        longest: the most tokens of a span; None for no limit.
        dropout: dropout rate of p and q (Yu2020: 0.2).

    Examples:
        >>> scorer = SpanScorer(input_width=16, labels=5, hidden=8, longest=3)
        >>> scorer(torch.randn(7, 16), torch.tensor([4, 3])).shape  # 9 + 6 spans
        torch.Size([15, 5])
    """

    def __init__(
        self,
        input_width: int,
        labels: int,
        hidden: int = 150,
        longest: int | None = None,
        dropout: float = 0.2,
    ):
        super().__init__()
        self.longest = longest
        self.first = nn.Linear(input_width, hidden)
        self.last = nn.Linear(input_width, hidden)
        self.both = nn.Parameter(torch.empty(labels, hidden, hidden))
        self.from_first = nn.Linear(hidden, labels)
        self.from_last = nn.Linear(hidden, labels, bias=False)
        self.inside = nn.Linear(input_width, labels, bias=False)
        self.width = nn.Parameter(torch.zeros(labels, WIDTHS))
        self.dropout = Dropout(dropout)
        for layer in (self.first, self.last):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        nn.init.normal_(self.both, std=1 / hidden)

    def out_lengths(self, lengths: Tensor) -> Tensor:
        """Count the spans of sentences with `lengths` tokens: (B,) -> (B,)."""
        return span_counts(lengths, self.longest)

    def forward(self, y: Tensor, lengths: Tensor) -> Tensor:
        """Score the spans of y (N, d), with `lengths` (B,) tokens a sentence -> (S, L).

        The spans are ordered by sentence, start and end.
        """
        labels, hidden, _ = self.both.shape
        first = self.dropout(torch.relu(self.first(y)))
        last = self.dropout(torch.relu(self.last(y)))
        left = (first @ self.both.permute(1, 0, 2).reshape(hidden, -1)).view(-1, labels, hidden)
        starts, ends = span_ends(lengths, self.longest)
        block_of, sizes, rows = _blocks(lengths, self.longest, starts, ends)
        products, place, used = [], 0, 0
        for (start, stop, end), size in zip(block_of, sizes, strict=True):
            block = torch.matmul(left[start:stop], last[start:end].T).transpose(1, 2)
            block = block.reshape(-1, labels)
            if not torch.is_grad_enabled():  # keep only the spans, not the whole square
                own = rows[used : used + size] - place
                block = block.index_select(0, to_device(own, y.device))
                used += size
            place += (stop - start) * (end - start)
            products.append(block)
        scores = torch.cat(products)
        if torch.is_grad_enabled():
            scores = scores.index_select(0, to_device(rows, y.device))
        starts, ends = to_device(starts, y.device), to_device(ends, y.device)
        scores = scores + self.from_first(first)[starts] + self.from_last(last)[ends]
        return scores + self._between(y, starts, ends)

    def _between(self, y: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
        sums = F.pad(torch.cumsum(self.inside(y).double(), 0), (0, 0, 1, 0))
        wide = ends - starts
        means = (sums[ends + 1] - sums[starts]) / (wide + 1)[:, None]
        own: Tensor = means.to(y.dtype) + self.width.T[wide.clamp(max=WIDTHS - 1)]
        return own


def span_ends(lengths: Tensor, longest: int | None) -> tuple[Tensor, Tensor]:
    """List the first and the last token of every span of at most `longest` tokens.

    Tokens are numbered over the whole batch, spans ordered by sentence, start and end.

    Examples:
        >>> span_ends(torch.tensor([2, 1]), None)
        (tensor([0, 0, 1, 2]), tensor([0, 1, 1, 2]))
    """
    sentence, place = positions(lengths)
    counts = lengths[sentence] - place
    start, more = positions(counts if longest is None else counts.clamp(max=longest))
    return start, start + more


def span_counts(lengths: Tensor, longest: int | None) -> Tensor:
    """Count the spans of at most `longest` tokens of sentences of n tokens: (B,) -> (B,).

    Examples:
        >>> span_counts(torch.tensor([4, 2]), 3)
        tensor([9, 3])
    """
    wide = lengths if longest is None else lengths.clamp(max=longest)
    return lengths * wide - wide * (wide - 1) // 2


def _blocks(
    lengths: Tensor, longest: int | None, starts: Tensor, ends: Tensor
) -> tuple[list[tuple[int, int, int]], list[int], Tensor]:
    """Divide the first tokens of spans into blocks of at most `ROWS` tokens of one sentence.

    Returns:
        For each block its first token, the one after its last, and the one after the last token of
        its spans; the number of its spans; and for each span its row, if the rectangles (first
        tokens, last tokens) of all blocks are listed one after the other.
    """
    blocks, offset = [], 0
    for n in lengths.tolist():
        for i in range(0, n, ROWS):
            stop = min(i + ROWS, n)
            end = n if longest is None else min(stop - 1 + longest, n)
            blocks.append((offset + i, offset + stop, offset + end))
        offset += n
    first, stop, end = torch.tensor(blocks).T
    areas = (stop - first) * (end - first)
    begins = torch.cumsum(areas, 0) - areas
    block = torch.repeat_interleave(torch.arange(len(blocks)), stop - first)[starts]
    rows = begins[block] + (starts - first[block]) * (end - first)[block] + ends - first[block]
    return blocks, torch.bincount(block, minlength=len(blocks)).tolist(), rows
