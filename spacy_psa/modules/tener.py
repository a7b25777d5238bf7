"""TENER: self-attention that tells directions and distances apart (Yan2019 section 3.2)."""

import math

import torch
from torch import Tensor, nn

from spacy_psa.errors import check_sizes
from spacy_psa.modules.precision import Precision
from spacy_psa.modules.sinusoids import sinusoids
from spacy_psa.modules.transformer import (
    Encoder,
    EncoderLayer,
    attend,
    head_width,
    join_heads,
    split_heads,
)


class RelativeAttention(nn.Module):
    """Attention with relative sinusoids, no key and no output projection.

        Q = H Wq, K = H, V = H Wv, each cut into heads of dk              (Yan2019 Eq. 16)
        R_o = [sin(o c_0), cos(o c_0), sin(o c_1), …], c_i = 10000^(-2i/dk)  (Eq. 17)
        A_tj = Q_t·K_j + Q_t·R_{t-j} + u·K_j + v·R_{t-j}                  (Eq. 18)
        softmax_j(A) V                                                    (Eq. 19)
    with u and v for each head.

    The authors' code differs from the paper: its R has all sines before all
    cosines, c_i = 10000^(-i/(dk/2-1)), and stands for R_{j-t}; a sign of the sines. Its
    later versions also have the two switches below, which the paper argues against
    or does not know. Weights of the one are no weights of the other.

    width: d. heads: each dk = d / heads wide. dropout: on the attention weights.
    scale: divide all of A by sqrt(dk), "w/ scale" in Yan2019 Tables 2 and 3.
    key_projection: K = H Wk. key_relative_bias: add K_j·R_{t-j} to A.

    Wq, Wv (and Wk) have no biases and start as torch's Linear does, u and v by
    Glorot's rule, both as in the code; the paper is silent.

    InputError where heads do not divide the width.
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
        """x (N, d), lengths (B,) -> (N, d)."""
        projected = (self.query(x), x if self.key is None else self.key(x), self.value(x))
        q, k, v = (split_heads(part, lengths, self.heads) for part in projected)
        n = q.shape[2]
        offsets = torch.arange(n - 1, -n - 1, -1)
        table = sinusoids(offsets, self.head_width).to(x)
        mirrored = sinusoids(-offsets, self.head_width).to(x)
        toward = (q + self.v[:, None]) * self.scale

        def bias(start: int, stop: int) -> Tensor:
            scores = relative_scores(toward[:, :, start:stop], table, start, 0, n)
            if self.key_relative_bias:
                rows = stop - start
                # Some keys at a time, which need as much memory as `scores`.
                tile = max(rows, math.isqrt(rows * n))
                by_key = [
                    # K_j·R_{t-j} with rows j and columns t, so the offset is j - t.
                    relative_scores(k[:, :, low : low + tile], mirrored, low, start, rows)
                    for low in range(0, n, tile)
                ]
                scores = scores + self.scale * torch.cat(by_key, 2).transpose(2, 3)
            return scores

        out = attend(
            q + self.u[:, None], k, v, lengths,
            scale=self.scale, dropout=self.dropout if self.training else 0.0, bias=bias,
        )  # fmt: skip
        return join_heads(out, lengths)


def relative_scores(x: Tensor, table: Tensor, row: int, column: int, columns: int) -> Tensor:
    """x_i·R_{i-j} for i = row, row + 1, … and j = column, …, column + columns - 1.

    x: (..., rows, dk). table: (2n, dk), R at the offsets n - 1, n - 2, …, -n.
    Returns (..., rows, columns).
    """
    first = len(table) // 2 - (row + x.shape[-2]) + column
    near = table[first : first + x.shape[-2] + columns]
    return relative_shift(x @ near.T)


def relative_shift(scores: Tensor) -> Tensor:
    """(..., m, m + n) -> (..., m, n): out[i, j] = scores[i, (m - 1) - i + j].

    Column c stands for the offset (m - 1) - c, and out[i, j] has that of i - j. Row i
    begins one column earlier than row i - 1, as it does in memory when read as rows
    that are one column shorter; so nothing is gathered.
    """
    m, width = scores.shape[-2:]
    flat = scores.flatten(-2)[..., m - 1 : m - 1 + m * (width - 1)]
    return flat.unflatten(-1, (m, width - 1))[..., : width - m]


class TENER(Encoder):
    """The adapted Transformer: (N, nI) -> (N, heads · head_width).

    input_width: nI. heads, head_width: d = heads · head_width; the defaults are those of the
    authors' script for CoNLL-2003. layers: how many.
    ffn_dim: the width inside the feed-forward part; 2 d where None, as in Yan2019's code.
    dropout: on attention weights and in the feed-forward part (Yan2019: 0.15).
    output_dropout: Yan2019's "fc dropout", 0.4. precision: see `products`.
    scale, key_projection, key_relative_bias: see `RelativeAttention`.

    The projection of the input is the code's; the paper has none. The code also
    normalises the scores of tags before its CRF (log_softmax), which is no matter of
    an encoder.
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
            [EncoderLayer(each, d, ffn_dim or 2 * d, dropout) for each in attentions],
            absolute=False,
            input_dropout=input_dropout,
            output_dropout=output_dropout,
            precision=precision,
        )
