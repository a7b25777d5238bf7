"""The Transformer (Vaswani et al. 2017), also with the bias of PSA, and what its variants share."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from spacy_psa.errors import SettingError, check_choice, check_rates, check_sizes
from spacy_psa.modules.additive_attention import look_up
from spacy_psa.modules.dropout import Dropout, drop
from spacy_psa.modules.initialization import glorot_all
from spacy_psa.modules.position_bias import PositionBias, Version
from spacy_psa.modules.products import Precision, products
from spacy_psa.modules.self_attentive import AttentionHeads
from spacy_psa.modules.sinusoids import SinusoidalPositions
from spacy_psa.ragged import mask, pad, to_device, unpad

# Size of the scores of a chunk of `attend`. About six tensors of this size exist at once. It must
# be at least 32 MiB: glibc puts smaller tensors on its heap, where the few that stay separate the
# many that are freed, and the memory of the process would grow with n² again.
CHUNK_BYTES = 36 << 20

Bias = Callable[[int, int], Tensor]
Position = Literal["psa", "absolute"]


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
    """Compute attention with a bias on the scores, softmax_j(scale · q_i·k_j + bias_ij) v_j.

    The sum is over the tokens j of a sentence. The function works on some rows i at a time, so that
    its memory stays near 6 · CHUNK_BYTES. In training it computes the weights of each chunk once
    more in the backward pass, for the same reason. On a CPU it never multiplies in bfloat16,
    because products as small as these are slower in it.

    Args:
        q: (B, H, n, dk), padded, n = max(lengths); so are k and v.
        dropout: dropout rate on the attention weights.
        bias: a function of a range of rows i, its start and its stop, that returns numbers to add
            to their scores, (B, H or 1, rows, n).
        masked: whether to leave out j = i. A sentence of one token then gets 0.

    Returns:
        (B, H, n, dk). Padded rows have no meaning.
    """
    whole = torch.promote_types(torch.promote_types(q.dtype, k.dtype), v.dtype)
    if whole == torch.bfloat16 and q.device.type == "cpu":
        whole = torch.float32
    q, k, v = q.to(whole), k.to(whole), v.to(whole)
    batch, heads, n, _ = q.shape
    places = torch.arange(n, device=q.device)
    padding = ~mask(lengths, q.device)[:, None, None]
    zero = q.new_zeros(1)
    # Not -inf but the least number: a row without allowed pairs gets the gradient 0, not NaN.
    least = torch.finfo(q.dtype).min

    def chunk(start: int, stop: int) -> Tensor:
        scores = zero if bias is None else bias(start, stop).to(whole)
        forbidden = padding
        if masked:
            forbidden = padding | (places[start:stop, None] == places)
        scores = scores.masked_fill(forbidden, least)
        if not dropout or q.device.type != "cpu":  # torch's own dropout is slow on a CPU
            return F.scaled_dot_product_attention(
                q[:, :, start:stop], k, v, attn_mask=scores, dropout_p=dropout, scale=scale
            )
        weights = scores + (q[:, :, start:stop] * scale) @ k.transpose(-1, -2)
        return drop(weights.softmax(-1), dropout) @ v

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
        out = out.masked_fill(to_device(lengths == 1, q.device)[:, None, None, None], 0.0)
    return out


def split_heads(x: Tensor, lengths: Tensor, heads: int) -> Tensor:
    """Split flat vectors into padded heads, slice by slice: (N, d) -> (B, heads, n, d / heads)."""
    return pad(x.view(len(x), heads, -1), lengths).transpose(1, 2)


def join_heads(x: Tensor, lengths: Tensor) -> Tensor:
    """Join padded heads to flat vectors, as the inverse of `split_heads`."""
    return unpad(x.transpose(1, 2), lengths).flatten(1)


def head_width(width: int, heads: int) -> int:
    """Compute the width of a head, width / heads; InputError if `heads` does not divide `width`."""
    if heads < 1 or width < 1 or width % heads:
        raise SettingError("heads", heads, f"it must divide the width, {width}")
    return width // heads


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention with several heads: (N, d) -> (N, d) (Yan2019 Eq. 1-6).

    All four projections have biases.

    Args:
        width: d, a multiple of the number of heads.
        heads: number of heads, each d / heads wide.
        dropout: dropout rate on the attention weights.
        psi: a position bias that is added to the scaled scores, the same for all heads.

    Examples:
        >>> attention = MultiHeadAttention(width=16, heads=4)
        >>> attention(torch.randn(7, 16), torch.tensor([4, 3])).shape
        torch.Size([7, 16])
    """

    def __init__(
        self, width: int, heads: int, *, dropout: float = 0.0, psi: PositionBias | None = None
    ) -> None:
        super().__init__()
        check_rates(dropout=dropout)
        self.heads = heads
        self.scale = head_width(width, heads) ** -0.5
        self.dropout = dropout
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.psi = psi

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Attend within sentences of `lengths` (B,): x (N, d) -> (N, d)."""
        values = split_heads(self.value(x), lengths, self.heads)
        return self.output(join_heads(self._mean(x, lengths, values), lengths))

    def weights(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Compute the attention weights (B, heads, n, n); rows of padding have no meaning."""
        return self._mean(x, lengths, one_hot_places(x, lengths, self.heads))

    def _mean(self, x: Tensor, lengths: Tensor, values: Tensor) -> Tensor:
        """Compute means of values (B, heads, n, w) by the attention weights -> (B, heads, n, w)."""
        q, k = (split_heads(part, lengths, self.heads) for part in (self.query(x), self.key(x)))
        return attend(
            q, k, values, lengths,
            scale=self.scale,
            dropout=self.dropout if self.training else 0.0,
            bias=None if self.psi is None else _rows_of(self.psi, x, lengths),
            masked=self.psi is not None and self.psi.masked,
        )  # fmt: skip


def one_hot_places(x: Tensor, lengths: Tensor, heads: int) -> Tensor:
    """Return the place of each token as a one-hot vector (B, heads, n, n).

    The mean of these vectors by attention weights is the weights themselves.
    """
    n = int(lengths.max())
    return torch.eye(n, dtype=x.dtype, device=x.device).expand(len(lengths), heads, n, n)


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
    """One layer of a Transformer around any attention: (N, d) -> (N, d) (Yan2019 Eq. 7).

        y = LN(x + attention(x))
        LN(y + W2 relu(W1 y + b1) + b2)

    Args:
        attention: a module that maps (N, d) and lengths (B,) to (N, d).
        dropout: dropout rate after the relu and after W2, as in Yan2019's code. The attention has
            its own.

    Examples:
        >>> layer = EncoderLayer(MultiHeadAttention(width=16, heads=4), width=16, ffn_dim=32)
        >>> layer(torch.randn(7, 16), torch.tensor([4, 3])).shape
        torch.Size([7, 16])
    """

    def __init__(
        self, attention: nn.Module, width: int, ffn_dim: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        check_rates(dropout=dropout)
        self.attention = attention
        self.attention_norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, ffn_dim)
        self.outer = nn.Linear(ffn_dim, width)
        self.feedforward_norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Transform x (N, d) of sentences of `lengths` (B,) -> (N, d)."""
        x = self.attention_norm(x + self.attention(x, lengths))
        hidden = self.dropout(torch.relu(self.inner(x)))
        return self.feedforward_norm(x + self.dropout(self.outer(hidden)))


class Encoder(nn.Module):
    """Projects the input to the width of the layers, and applies the layers: (N, nI) -> (N, d).

    Args:
        width: d, the width of the layers and of the output.
        attentions: the attention of each layer.
        ffn_dim: width inside the feed-forward part.
        dropout: dropout rate on the attention weights and in the feed-forward part.
        absolute: whether to add sinusoids of the place in the sentence to the projected input
            (Yan2019 Eq. 8-9).
        input_dropout: dropout rate on the input.
        output_dropout: dropout rate after the last layer.

    Examples:
        >>> attention = MultiHeadAttention(width=16, heads=4)
        >>> encoder = Encoder(100, 16, [attention], ffn_dim=32, dropout=0.0, absolute=True)
        >>> encoder(torch.randn(7, 100), torch.tensor([4, 3])).shape
        torch.Size([7, 16])
    """

    def __init__(
        self,
        input_width: int,
        width: int,
        attentions: Iterable[nn.Module],
        ffn_dim: int,
        dropout: float,
        *,
        absolute: bool,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        precision: Precision = "float32",
    ) -> None:
        layers = [EncoderLayer(attention, width, ffn_dim, dropout) for attention in attentions]
        super().__init__()
        check_choice("precision", precision, Precision)
        check_rates(input_dropout=input_dropout, output_dropout=output_dropout)
        self.precision = precision
        self.output_width = width
        self.input_dropout = Dropout(input_dropout)
        self.project = nn.Linear(input_width, width)
        self.positions = SinusoidalPositions(width) if absolute else None
        self.layers = nn.ModuleList(layers)
        self.output_dropout = Dropout(output_dropout)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Encode x (N, nI) of sentences of `lengths` (B,) -> (N, d)."""
        with products(self.precision, x):
            y = self._enter(x, lengths)
            for layer in self.layers:
                y = layer(y, lengths)
        return self.output_dropout(y)

    def inspect(self, x: Tensor, lengths: Tensor) -> list[AttentionHeads]:
        """Compute the attention weights of the heads of each layer, the lowest first.

        Row j of a matrix holds the weights with which token j reads the others. Rows of padding
        have no meaning.
        """
        heads = []
        with products(self.precision, x):
            y = self._enter(x, lengths)
            for layer in self.layers:
                attention: Any = layer.attention
                heads.append(AttentionHeads(attention.weights(y, lengths)))
                y = layer(y, lengths)
        return heads

    def _enter(self, x: Tensor, lengths: Tensor) -> Tensor:
        y = self.project(self.input_dropout(x)).to(x.dtype)
        return y if self.positions is None else self.positions(y, lengths)


class Transformer(Encoder):
    """Encodes tokens by a Transformer with absolute sinusoids: (N, nI) -> (N, heads · head_width).

    This is the system "Transformer" in Yan2019 Tables 2, 3 and 5. A trained linear layer projects
    the input to the width d = heads · head_width. The authors' code has it; the paper does not.
    The dropout rates are those of Yan2019, whose "fc dropout" is `output_dropout`.

    Args:
        heads: number of heads (Yan2019 Table 8: 8 to 14 for English, 4 to 10 for Chinese).
        head_width: width of a head (Yan2019 Table 8: 64 to 128 for English, 32 to 96 for Chinese).
        layers: number of layers (Yan2019 Table 8: 1 or 2).
        ffn_dim: width inside the feed-forward part; by default 2 d, as in Yan2019's code.

    Raises:
        InputError: for a size below 1, a dropout rate that is not from 0 to 1, and an unknown
            precision.

    Examples:
        >>> encoder = Transformer(input_width=100, heads=2, head_width=16)
        >>> x, lengths = torch.randn(7, 100), torch.tensor([4, 3])
        >>> encoder(x, lengths).shape
        torch.Size([7, 32])
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
            (MultiHeadAttention(d, heads, dropout=dropout) for _ in range(layers)),
            ffn_dim or 2 * d,
            dropout,
            absolute=True,
            input_dropout=input_dropout,
            output_dropout=output_dropout,
            precision=precision,
        )


class PSATransformer(Encoder):
    """Encodes tokens by a Transformer with PSA's position bias: (N, nI) -> (N, heads · head_width).

    Each head of each layer attends with the weights

        softmax_j(q_i·k_j / sqrt(dk) + Ψ_ij(x_i))

    where Ψ is the `PositionBias`.

    Wei2020 leaves some points open. Here each layer has a Ψ of its own, which reads the input of
    that layer and is the same for all its heads. A trained linear layer projects the input to
    the width d. All matrices start by Glorot's rule (Wei2020 section 5.2). The paper names no
    dropout rates: here the default of `dropout` is that of its attention, and those of the input
    and the output are those of its BiLSTM, which the Transformer replaces.

    The settings `version`, `window`, `use_mask`, `use_token_bias` and `use_gaussian` are those of
    `PositionBias`.

    Args:
        heads: number of heads (Wei2020: 8). The layers have the width d = heads · head_width.
        head_width: dk, the width of the queries, keys and values of a head (Wei2020: 64).
        layers: number of layers (Wei2020: 1 to 3).
        position: "psa" adds Ψ to the scores; "absolute" adds sinusoids to the projected input
            instead (the two columns of Wei2020 Table 10).

    Raises:
        InputError: for a size below 1, a dropout rate that is not from 0 to 1, and an unknown
            position, version or precision.

    Examples:
        >>> encoder = PSATransformer(input_width=100, heads=2, head_width=16, ffn_dim=64)
        >>> x, lengths = torch.randn(7, 100), torch.tensor([4, 3])
        >>> encoder(x, lengths).shape
        torch.Size([7, 32])
    """

    def __init__(
        self,
        input_width: int,
        heads: int = 8,
        head_width: int = 64,
        layers: int = 2,
        ffn_dim: int = 1024,
        position: Position = "psa",
        version: Version = "journal",
        window: int = 10,
        use_mask: bool = True,
        use_token_bias: bool = True,
        use_gaussian: bool = True,
        dropout: float = 0.2,
        input_dropout: float = 0.55,
        output_dropout: float = 0.55,
        precision: Precision = "float32",
    ) -> None:
        check_sizes(heads=heads, head_width=head_width, layers=layers, ffn_dim=ffn_dim)
        check_sizes(window=window)
        check_choice("position", position, Position)
        check_choice("version", version, Version)
        d = heads * head_width
        make_psi = partial(
            PositionBias,
            d,
            version=version,
            window=window,
            use_mask=use_mask,
            use_token_bias=use_token_bias,
            use_gaussian=use_gaussian,
        )
        attentions = [
            MultiHeadAttention(
                d, heads, dropout=dropout, psi=make_psi() if position == "psa" else None
            )
            for _ in range(layers)
        ]
        super().__init__(
            input_width,
            d,
            attentions,
            ffn_dim,
            dropout,
            absolute=position == "absolute",
            input_dropout=input_dropout,
            output_dropout=output_dropout,
            precision=precision,
        )
        for module in self.modules():
            if isinstance(module, nn.Linear):
                glorot_all(module)
