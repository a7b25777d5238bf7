"""The Transformer encoder (Vaswani et al. 2017; Yan2019 section 2.2), and what its variants share."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from spacy_psa.errors import SettingError, check_choice, check_sizes
from spacy_psa.modules.position_bias import PositionBias, look_up
from spacy_psa.modules.precision import Precision, products
from spacy_psa.modules.sinusoids import SinusoidalPositions
from spacy_psa.ragged import mask, pad, unpad

# Of the scores of a chunk of `attend`; about six of this size exist at once. Not less than
# 32 MiB, below which glibc puts tensors on its heap, where the few that stay lie between
# the many that go, and the memory of the process grows with n² again.
CHUNK_BYTES = 36 << 20

Bias = Callable[[int, int], Tensor]


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    lengths: Tensor,
    *,
    scale: float,
    dropout: float = 0.0,
    bias: Bias | None = None,
    masked: bool = False,
) -> Tensor:
    """softmax_j(scale · q_i·k_j + bias_ij) v_j over the tokens j of a sentence.

    q, k, v: (B, H, n, dk), padded, n = max(lengths). dropout: on the attention weights.
    bias: from a range of rows i, start and stop, to what their scores are raised by,
        (B, H or 1, rows, n).
    masked: leave out j = i; a token that is then alone gets 0.

    Returns (B, H, n, dk), of which padded rows mean nothing. Does not multiply in bfloat16
    on a CPU, where products as small as these are slower in it. Works on a few rows i at a
    time, so that what it holds stays near 6 · CHUNK_BYTES, in training too, where a
    chunk's weights are made again for the backward pass.
    """
    whole = torch.promote_types(torch.promote_types(q.dtype, k.dtype), v.dtype)
    if whole == torch.bfloat16 and q.device.type == "cpu":
        whole = torch.float32
    q, k, v = q.to(whole), k.to(whole), v.to(whole)
    batch, heads, n, _ = q.shape
    places = torch.arange(n, device=q.device)
    padding = ~mask(lengths, q.device)[:, None, None]
    zero = q.new_zeros(1)
    # The least number and not -inf: a row with nothing allowed has a gradient of 0, not NaN.
    least = torch.finfo(q.dtype).min

    def chunk(start: int, stop: int) -> Tensor:
        scores = zero if bias is None else bias(start, stop).to(whole)
        forbidden = padding
        if masked:
            forbidden = padding | (places[start:stop, None] == places)
        scores = scores.masked_fill(forbidden, least)
        return F.scaled_dot_product_attention(
            q[:, :, start:stop], k, v, attn_mask=scores, dropout_p=dropout, scale=scale
        )

    step = max(1, CHUNK_BYTES // (batch * heads * n * q.element_size()))
    chunks = []
    with torch.autocast(q.device.type, enabled=False):
        for start in range(0, n, step):
            stop = min(n, start + step)
            if step < n and torch.is_grad_enabled():
                chunks.append(checkpoint(chunk, start, stop, use_reentrant=False))
            else:
                chunks.append(chunk(start, stop))
    out = chunks[0] if len(chunks) == 1 else torch.cat(chunks, 2)
    if masked:
        out = out.masked_fill((lengths == 1).to(q.device)[:, None, None, None], 0.0)
    return out


def split_heads(x: Tensor, lengths: Tensor, heads: int) -> Tensor:
    """(N, d) -> (B, heads, n, d / heads), padded; head h has the h-th slice of x."""
    return pad(x.view(len(x), heads, -1), lengths).transpose(1, 2)


def join_heads(x: Tensor, lengths: Tensor) -> Tensor:
    """(B, heads, n, d / heads) -> (N, d), the inverse of `split_heads`."""
    return unpad(x.transpose(1, 2), lengths).flatten(1)


def head_width(width: int, heads: int) -> int:
    """dk = width / heads. InputError where heads do not divide the width."""
    if heads < 1 or width < 1 or width % heads:
        raise SettingError("heads", heads, f"take a number that divides the width, {width}")
    return width // heads


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention (Yan2019 Eq. 1-6), with biases in all four projections.

    width: d, of the input and of the output. heads: each d / heads wide.
    dropout: on the attention weights.
    psi: a position bias that is added to the scaled scores, one for all heads.

    InputError where heads do not divide the width.
    """

    def __init__(
        self, width: int, heads: int, *, dropout: float = 0.0, psi: PositionBias | None = None
    ) -> None:
        super().__init__()
        self.heads = heads
        self.scale = head_width(width, heads) ** -0.5
        self.dropout = dropout
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.psi = psi

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (N, d), lengths (B,) -> (N, d)."""
        projected = (self.query(x), self.key(x), self.value(x))
        q, k, v = (split_heads(part, lengths, self.heads) for part in projected)
        out = attend(
            q, k, v, lengths,
            scale=self.scale,
            dropout=self.dropout if self.training else 0.0,
            bias=None if self.psi is None else _rows_of(self.psi, x, lengths),
            masked=self.psi is not None and self.psi.masked,
        )  # fmt: skip
        return self.output(join_heads(out, lengths))


def _rows_of(psi: PositionBias, x: Tensor, lengths: Tensor) -> Bias:
    n = int(lengths.max())
    table, distance = psi.tables(x, n)
    table = pad(table, lengths)
    places = torch.arange(n, device=x.device)

    def rows(start: int, stop: int) -> Tensor:
        offset = places[start:stop, None] - places
        return look_up(table[:, start:stop], distance, offset, psi.signed)[:, None]

    return rows


class EncoderLayer(nn.Module):
    """y = LN(x + attention(x)), LN(y + W2 relu(W1 y + b1) + b2) (Yan2019 Eq. 7).

    attention: a module (N, d), lengths -> (N, d). ffn_dim: the width inside the feed-forward part.
    dropout: after relu and after W2, as in Yan2019's code; the attention has its own.
    """

    def __init__(
        self, attention: nn.Module, width: int, ffn_dim: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, ffn_dim)
        self.outer = nn.Linear(ffn_dim, width)
        self.feedforward_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (N, d), lengths (B,) -> (N, d)."""
        x = self.attention_norm(x + self.attention(x, lengths))
        hidden = self.dropout(torch.relu(self.inner(x)))
        return self.feedforward_norm(x + self.dropout(self.outer(hidden)))


class Encoder(nn.Module):
    """A projection of the input to the layers' width, then layers: (N, nI) -> (N, d).

    input_width: nI. width: d. layers: of width d. absolute: add sinusoids of the place
    in the sentence to the projected input (Yan2019 Eq. 8-9).
    input_dropout, output_dropout: before the projection and after the last layer.
    precision: see `products`.
    """

    def __init__(
        self,
        input_width: int,
        width: int,
        layers: Iterable[EncoderLayer],
        *,
        absolute: bool,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        precision: Precision = "float32",
    ) -> None:
        super().__init__()
        check_choice("precision", precision, Precision)
        self.precision = precision
        self.output_width = width
        self.input_dropout = nn.Dropout(input_dropout)
        self.project = nn.Linear(input_width, width)
        self.positions = SinusoidalPositions(width) if absolute else None
        self.layers = nn.ModuleList(layers)
        self.output_dropout = nn.Dropout(output_dropout)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (N, nI), lengths (B,) -> (N, d)."""
        with products(self.precision, x):
            y = self.project(self.input_dropout(x)).to(x.dtype)
            if self.positions is not None:
                y = self.positions(y, lengths)
            for layer in self.layers:
                y = layer(y, lengths)
        return self.output_dropout(y)


class Transformer(Encoder):
    """The vanilla encoder with absolute sinusoids, "Transformer" in Yan2019 Tables 2, 3 and 5.

    input_width: nI. heads, head_width: d = heads · head_width. layers: how many.
    ffn_dim: the width inside the feed-forward part; 2 d where None, as in Yan2019's code.
    dropout: on attention weights and in the feed-forward part. precision: see `products`.

    The projection of the input is Yan2019's code's; the paper has none.
    """

    def __init__(
        self,
        input_width: int,
        heads: int = 8,
        head_width: int = 64,
        layers: int = 2,
        ffn_dim: int | None = None,
        dropout: float = 0.15,
        input_dropout: float = 0.0,
        output_dropout: float = 0.4,
        precision: Precision = "float32",
    ) -> None:
        check_sizes(heads=heads, head_width=head_width, layers=layers, ffn_dim=ffn_dim)
        d = heads * head_width
        super().__init__(
            input_width,
            d,
            [
                EncoderLayer(
                    MultiHeadAttention(d, heads, dropout=dropout), d, ffn_dim or 2 * d, dropout
                )
                for _ in range(layers)
            ],
            absolute=True,
            input_dropout=input_dropout,
            output_dropout=output_dropout,
            precision=precision,
        )
