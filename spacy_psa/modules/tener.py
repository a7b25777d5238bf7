"""TENER: self-attention that distinguishes directions and distances (Yan2019 section 3.2)."""

import math

import torch
from torch import Tensor, nn

from spacy_psa.errors import check_rates, check_sizes
from spacy_psa.modules.products import Precision
from spacy_psa.modules.sinusoids import sinusoids
from spacy_psa.modules.transformer import (
    Encoder,
    attend,
    head_width,
    join_heads,
    one_hot_places,
    split_heads,
)
from spacy_psa.ragged import to_device


class RelativeAttention(nn.Module):
    """Attention with relative sinusoids, without key or output projection: (N, d) -> (N, d).

        Q = H Wq, K = H, V = H Wv, each cut into heads of dk               (Yan2019 Eq. 16)
        R_o = [sin(o c_0), cos(o c_0), sin(o c_1), …], c_i = 10000^(-2i/dk)        (Eq. 17)
        A_tj = Q_t·K_j + Q_t·R_{t-j} + u·K_j + v·R_{t-j}                           (Eq. 18)
        softmax_j(A) V                                                             (Eq. 19)

    Each head has its own u and v.

    The authors' code differs from the paper. Its R has all sines before all cosines, has
    c_i = 10000^(-i/(dk/2-1)), and stands for R_{j-t}, which changes the sign of the sines. Later
    versions of the code also have `key_projection`, which the paper argues against, and
    `key_relative_bias`, which the paper does not mention and whose R is the mirror image of the
    other one: K_j·R_{t-j} in the code is K_j·R_{j-t} here. Weights trained with one variant
    cannot be used with the other.

    Wq, Wv (and Wk) have no biases and start as torch's Linear does; u and v start by Glorot's
    rule. Both are as in the code; the paper leaves it open.

    Args:
        width: d, a multiple of the number of heads.
        heads: number of heads, each dk = d / heads wide.
        dropout: dropout rate on the attention weights (Yan2019: 0.15).
        scale: whether to divide all of A by sqrt(dk), "w/ scale" in Yan2019 Tables 2 and 3.
        key_projection: whether K is H Wk and not H.
        key_relative_bias: whether to add K_j·R_{j-t} to A.

    Examples:
        >>> attention = RelativeAttention(width=16, heads=4)
        >>> attention(torch.randn(7, 16), torch.tensor([4, 3])).shape
        torch.Size([7, 16])
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        dropout: float = 0.0,
        scale: bool = False,
        key_projection: bool = False,
        key_relative_bias: bool = False,
    ) -> None:
        super().__init__()
        check_rates(dropout=dropout)
        self.heads = heads
        self.head_width = head_width(width, heads)
        self.dropout = dropout
        self.scale = self.head_width**-0.5 if scale else 1.0
        self.key_relative_bias = key_relative_bias
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False) if key_projection else None
        self.value = nn.Linear(width, width, bias=False)
        self.u = nn.Parameter(torch.empty(heads, self.head_width))
        self.v = nn.Parameter(torch.empty(heads, self.head_width))
        nn.init.xavier_normal_(self.u)
        nn.init.xavier_normal_(self.v)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Attend within sentences of `lengths` (B,): x (N, d) -> (N, d)."""
        values = split_heads(self.value(x), lengths, self.heads)
        return join_heads(self._mean(x, lengths, values), lengths)

    def weights(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Compute the attention weights (B, heads, n, n); rows of padding have no meaning."""
        return self._mean(x, lengths, one_hot_places(x, lengths, self.heads))

    def _mean(self, x: Tensor, lengths: Tensor, values: Tensor) -> Tensor:
        """Compute means of values (B, heads, n, w) by the attention weights -> (B, heads, n, w)."""
        projected = (self.query(x), x if self.key is None else self.key(x))
        q, k = (split_heads(part, lengths, self.heads) for part in projected)
        n = q.shape[2]
        table = sinusoids(torch.arange(n - 1, -n - 1, -1), self.head_width)
        table = to_device(table, x.device).to(x.dtype)
        toward = (q + self.v[:, None]) * self.scale

        def bias(start: int, stop: int) -> Tensor:
            scores = relative_scores(toward[:, :, start:stop], table, start, 0, n)
            if self.key_relative_bias:
                rows = stop - start
                # Some keys at a time, so that they need no more memory than `scores`.
                tile = max(rows, math.isqrt(rows * n))
                by_key = [
                    # K_j·R_{j-t} with rows j and columns t.
                    relative_scores(k[:, :, low : low + tile], table, low, start, rows)
                    for low in range(0, n, tile)
                ]
                scores = scores + self.scale * torch.cat(by_key, 2).transpose(2, 3)
            return scores

        return attend(
            q + self.u[:, None], k, values, lengths,
            scale=self.scale, dropout=self.dropout if self.training else 0.0, bias=bias,
        )  # fmt: skip


def relative_scores(x: Tensor, table: Tensor, row: int, column: int, columns: int) -> Tensor:
    """Compute x_i·R_{i-j} for some rows i and columns j.

    Args:
        x: (..., rows, dk), the vectors x_i from i = row on.
        table: (2n, dk), R at the offsets n - 1, n - 2, …, -n.
        row: the first i.
        column: the first j.
        columns: the number of columns.

    Returns:
        (..., rows, columns).
    """
    first = len(table) // 2 - (row + x.shape[-2]) + column
    near = table[first : first + x.shape[-2] + columns]
    return relative_shift(x @ near.T)


def relative_shift(scores: Tensor) -> Tensor:
    """Shift each row of scores, from offsets to columns: (..., m, m + n) -> (..., m, n).

        out[i, j] = scores[i, (m - 1) - i + j]

    Column c of the scores is for the offset (m - 1) - c, and out[i, j] is for the offset i - j. So
    row i begins one column earlier than row i - 1. It also does so in memory if the rows are read
    as one column shorter; the function therefore gathers nothing.
    """
    m, width = scores.shape[-2:]
    flat = scores.flatten(-2)[..., m - 1 : m - 1 + m * (width - 1)]
    return flat.unflatten(-1, (m, width - 1))[..., : width - m]


class TENER(Encoder):
    """Encodes tokens by TENER, the adapted Transformer: (N, nI) -> (N, heads · head_width).

    A trained linear layer projects the input to the width d = heads · head_width. The authors' code
    has it; the paper does not. The code also normalises the scores of tags before its CRF
    (log_softmax); this is not part of an encoder. The settings `scale`, `key_projection` and
    `key_relative_bias`, which Yan2019 does not use, are those of `RelativeAttention`. The dropout
    rates are those of Yan2019, whose "fc dropout" is `output_dropout`.

    Args:
        heads: number of heads (Yan2019 Table 8: 8 to 14 for English, 4 to 10 for Chinese). The
            default is the value of the authors' script for CoNLL-2003.
        head_width: dk, the width of a head (Yan2019 Table 8: 64 to 128 for English, 32 to 96 for
            Chinese). The default is the value of the same script.
        layers: number of layers (Yan2019 Table 8: 1 or 2).
        ffn_dim: width inside the feed-forward part; by default 2 d, as in Yan2019's code.

    Raises:
        InputError: for a size below 1, a dropout rate that is not from 0 to 1, and an unknown
            precision.

    Examples:
        >>> encoder = TENER(input_width=100, heads=2, head_width=16)
        >>> x, lengths = torch.randn(7, 100), torch.tensor([4, 3])
        >>> encoder(x, lengths).shape
        torch.Size([7, 32])
    """

    def __init__(
        self,
        input_width: int,
        heads: int = 14,
        head_width: int = 128,
        layers: int = 2,
        ffn_dim: int | None = None,
        scale: bool = False,
        key_projection: bool = False,
        key_relative_bias: bool = False,
        dropout: float = 0.15,
        input_dropout: float = 0.0,
        output_dropout: float = 0.4,
        precision: Precision = "float32",
    ) -> None:
        check_sizes(heads=heads, head_width=head_width, layers=layers, ffn_dim=ffn_dim)
        d = heads * head_width
        attentions = [
            RelativeAttention(
                d,
                heads,
                dropout=dropout,
                scale=scale,
                key_projection=key_projection,
                key_relative_bias=key_relative_bias,
            )
            for _ in range(layers)
        ]
        super().__init__(
            input_width,
            d,
            attentions,
            ffn_dim or 2 * d,
            dropout,
            absolute=False,
            input_dropout=input_dropout,
            output_dropout=output_dropout,
            precision=precision,
        )
