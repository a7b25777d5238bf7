"""Position-aware self-attention (PSA) and the layer that fuses it with its input.

Wei2020 (the journal version), sections 4.1 and 4.2, and Wei2019 (the arXiv version).
`version` chooses between their two forms of the position bias.
"""

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from spacy_psa.errors import check_choice
from spacy_psa.kernels import available
from spacy_psa.modules.distinct import Distinct
from spacy_psa.modules.initialization import glorot_all
from spacy_psa.modules.position_bias import PositionBias, look_up
from spacy_psa.ragged import mask, pad, unpad

Activation = Literal["tanh", "relu", "sigmoid"]

ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid}

# Of the largest tensor in `additive_attention`; about four of its size exist at once.
CHUNK_BYTES = 1 << 26

# Of `ContextFusion` in annotation.
BLOCK_ROWS = 1024


class PositionAwareAttention(PositionBias):
    """Additive self-attention with a bias for positions; values are the inputs themselves.

    s_i = Σ_j softmax_j(w·σ(W1 x_i + W2 x_j + b) + Ψ_ij) x_j         (Wei2020 Eq. 5-8)

    The row of a token with nothing to look at (alone under the mask) is all 0.

    width: d, of the input and of the output.
    activation: σ. The papers do not name it; tanh is that of the additive
        attention they cite.
    bias: the arguments of Ψ, see `PositionBias`.

    InputError for an unknown activation, and as for `PositionBias`.
    """

    def __init__(self, width: int, *, activation: Activation = "tanh", **bias: Any) -> None:
        super().__init__(width, **bias)
        check_choice("activation", activation, Activation)
        self.activation = activation
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)
        self.score = nn.Parameter(torch.empty(width))
        glorot_all(self)

    def forward(self, x: Tensor, lengths: Tensor, once: Distinct | None = None) -> Tensor:
        """x (N, d), lengths (B,) -> s (N, d). once: the distinct rows of x, if known."""
        parts = self._parts(once or Distinct(x), int(lengths.max()))
        band = self._band(parts, int(lengths.max()))
        compiled = (
            x.device.type == "cpu"
            and x.dtype in (torch.float32, torch.float64)
            and self.activation != "relu"
            and available()
        )
        if compiled:
            from spacy_psa.kernels.attention import attend  # numba, only where it works
        else:
            attend = additive_attention
        return attend(
            *parts, x, lengths,
            activation=self.activation, signed=self.signed, masked=self.masked, band=band,
        )  # fmt: skip

    def weights(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (N, d) -> a_i(j) (B, n, n), n = max(lengths): rows sum to 1 over the tokens of
        their sentence; padding, and the row of a token alone under the mask, is 0."""
        parts = self._parts(Distinct(x), int(lengths.max()))
        chunks = _attention_chunks(
            *parts, lengths,
            activation=self.activation, signed=self.signed, masked=self.masked,
            band=int(lengths.max()),
        )  # fmt: skip
        return torch.cat([attention for _, attention in chunks], 1)

    def _parts(self, x: Distinct, longest: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """A, C (N, d), w (d,), weighted P by token and row (N, rows), weighted G by distance."""
        table, distance = self.tables(x.rows, longest)
        a, c, table = (x.spread(t) for t in (self.query(x.rows), self.key(x.rows), table))
        return a, c, self.score, table, distance

    def _band(self, parts: tuple[Tensor, ...], longest: int) -> int:
        # No band is narrower than 3.7 windows (see `reach`): most batches need no look at values.
        if not self.gaussian or self.activation == "relu" or longest <= 3 * self.window:
            return longest
        with torch.no_grad():
            _, _, w, table, _ = parts
            spread = 2 * w.abs().sum() + (table.amax(1) - table.amin(1)).max()
            share = float(self.shares()[0])
            return reach(share, float(spread), self.window, longest, w.dtype)


def reach(share: float, spread: float, window: int, longest: int, dtype: torch.dtype) -> int:
    """The distance up to which pairs must be visited when the Gaussian bias is on.

    share: the weight α of G; spread: a bound on how much one row's scores can
    differ without G, which is 2 Σ|w| for tanh plus the range of P; longest: n.

    A token's nearest neighbour stands at distance 1 or 0, so the weight of a
    pair at distance D is at most exp(α (G(D) - G(1)) + spread) of another's. D
    is the least for which n such weights together stay below 1e-12 (float32,
    whose own precision is 6e-8) or 1e-20 (float64): with G(D) - G(1) =
    (1 - D²) / (2 ε²) that is α (D² - 1) / (2 ε²) >= spread + ln(n / tolerance).
    Time and memory are then linear in n.
    """
    tolerance = 1e-20 if dtype == torch.float64 else 1e-12
    if not share > 0 or not math.isfinite(spread):
        return longest
    needed = (spread + math.log(longest / tolerance)) / share
    return min(longest, math.ceil(math.sqrt(1 + 2 * (window / 2) ** 2 * needed)))


def additive_attention(
    a: Tensor,
    c: Tensor,
    w: Tensor,
    table: Tensor,
    distance: Tensor,
    x: Tensor,
    lengths: Tensor,
    *,
    activation: str,
    signed: bool,
    masked: bool,
    band: int,
) -> Tensor:
    """s_i = Σ_j softmax_j(w·σ(A_i + C_j) + T[i, row(i-j)] + g[|i-j|]) x_j.

    The plain torch form of `kernels.attention.attend`, for GPUs and whatever
    else the kernel does not cover.

    a, c, x: A, C and the values, (N, d). w: (d,).
    table: T (N, rows); row(i-j) is min(|i-j|, rows-1), or, signed, i-j clipped
        to ±r and shifted by r, with rows = 2r+1.
    distance: g, (n,) or longer, n = max(lengths).
    masked: leave out j = i. band: leave out |i-j| > band (some farther pairs
        may still be counted).

    Returns s (N, d). Works on a few rows i at a time, so that what it holds
    stays near 4 · CHUNK_BYTES, in training too, where a chunk's activations are
    made again for the backward pass.
    """
    chunks = _attention_chunks(
        a, c, w, table, distance, lengths,
        activation=activation, signed=signed, masked=masked, band=band, values=pad(x, lengths),
    )  # fmt: skip
    return unpad(torch.cat([s for s, _ in chunks], 1), lengths)


def _attention_chunks(
    a: Tensor,
    c: Tensor,
    w: Tensor,
    table: Tensor,
    distance: Tensor,
    lengths: Tensor,
    *,
    activation: str,
    signed: bool,
    masked: bool,
    band: int,
    values: Tensor | None = None,
) -> Iterator[Any]:
    """For each range of rows i: (values weighted (B, rows, d) or None, weights (B, rows, cols))."""
    a, c, table = pad(a, lengths), pad(c, lengths), pad(table, lengths)
    valid = mask(lengths, a.device)
    n = a.shape[1]

    def chunk(start: int, stop: int, *tensors: Tensor) -> tuple[Tensor | None, Tensor]:
        a, c, w, table, distance, *values = tensors
        low, high = max(0, start - band), min(n, stop + band)
        i = torch.arange(start, stop, device=a.device)[:, None]
        j = torch.arange(low, high, device=a.device)
        z = a[:, start:stop, None] + c[:, None, low:high]
        scores = ACTIVATIONS[activation](z) @ w
        scores = scores + look_up(table[:, start:stop], distance, i - j, signed)
        allowed = valid[:, start:stop, None] & valid[:, None, low:high]
        if masked:
            allowed = allowed & (i != j)
        # The least number and not -inf: a row with nothing allowed has a gradient of 0, not NaN.
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
        attention = torch.softmax(scores, 2).masked_fill(~allowed, 0)
        return (attention @ values[0][:, low:high] if values else None), attention

    tensors = (a, c, w, table, distance) + (() if values is None else (values,))
    row_bytes = len(a) * min(n, 3 * band) * a.shape[2] * a.element_size()
    step = max(1, min(band, CHUNK_BYTES // row_bytes))
    for start in range(0, n, step):
        if step < n and torch.is_grad_enabled():
            yield checkpoint(
                chunk, start, min(n, start + step), *tensors,
                use_reentrant=False, preserve_rng_state=False,
            )  # fmt: skip
        else:
            yield chunk(start, min(n, start + step), *tensors)


class Fusion(NamedTuple):
    """What a `ContextFusion` does with a batch."""

    attention: Tensor  # a_i(j), (B, n, n)
    gate: Tensor  # λ, (N, d)


class ContextFusion(nn.Module):
    """Self-attention whose output is gated with its input, feature by feature.

        s~ = tanh(Wz2 tanh(Wz1 s + b))                   (Wei2020 Eq. 12)
        λ  = sigmoid(Wf3 tanh(Wf1 x + Wf2 s~))           (Wei2020 Eq. 13)
        x~ = λ x + (1-λ) s~                              (Wei2020 Eq. 14)

    width: d. dropout: on s, the "output of self-attention". attention: the
    arguments of `PositionAwareAttention`. With all parts on, the layer has
    7d² + 4d + (window+1) d + 2 parameters (journal) or
    7d² + 3d + (2 window+1) d + 3 (arxiv).
    """

    def __init__(self, width: int, *, dropout: float = 0.2, **attention: Any) -> None:
        super().__init__()
        self.attention = PositionAwareAttention(width, **attention)
        self.dropout = nn.Dropout(dropout)
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width, bias=False)
        self.gate_input = nn.Linear(width, width, bias=False)
        self.gate_context = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, width, bias=False)
        for layer in (self.inner, self.outer, self.gate_input, self.gate_context, self.gate):
            glorot_all(layer)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (N, d), lengths (B,) -> x~ (N, d)."""
        once = Distinct(x)
        s = self.dropout(self.attention(x, lengths, once))
        if torch.is_grad_enabled():
            gate, context = self._gate(s, self.gate_input(x))
            return torch.lerp(context, x, gate)
        # Some rows at a time, which stay in the processor's cache; x~ takes the place of s.
        entered = once.reader(self.gate_input)
        for rows in torch.arange(len(x), device=x.device).split(BLOCK_ROWS):
            block, of_input = s[rows[0] : rows[-1] + 1], x.new_empty(len(rows), x.shape[1])
            entered(rows, of_input)
            gate, context = self._gate(block, of_input)
            torch.lerp(context, x[rows[0] : rows[-1] + 1], gate, out=block)
        return s

    def inspect(self, x: Tensor, lengths: Tensor) -> Fusion:
        """The attention (Wei2020 Fig. 6) and the gate (Wei2020 Table 13) of a batch."""
        s = self.dropout(self.attention(x, lengths))
        gate, _ = self._gate(s, self.gate_input(x))
        return Fusion(self.attention.weights(x, lengths), gate)

    def _gate(self, s: Tensor, of_input: Tensor) -> tuple[Tensor, Tensor]:
        """The gate λ and s~ of the attention's output s (N, d) and Wf1 x (N, d)."""
        context = _tanh(self.outer(_tanh(self.inner(s))))
        hidden = _tanh(of_input + self.gate_context(context))
        return torch.sigmoid(self.gate(hidden)), context


def _tanh(x: Tensor) -> Tensor:
    """tanh, where x may be overwritten."""
    if x.device.type == "cpu" and x.dtype == torch.float32 and available():
        from spacy_psa.kernels.gates import Tanh

        result: Tensor = Tanh.apply(x)
        return result
    return torch.tanh(x)
