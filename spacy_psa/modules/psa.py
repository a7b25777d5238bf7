"""Position-aware self-attention (PSA), and the layer that fuses its output with its input.

The equations are Wei2020 sections 4.1 and 4.2. The setting `version` chooses between the position
bias of Wei2020 (the journal version) and of Wei2019 (the arXiv version).
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from spacy_psa.errors import check_choice, check_rates
from spacy_psa.kernels import available
from spacy_psa.modules.distinct import Distinct
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.initialization import glorot_all
from spacy_psa.modules.position_bias import PositionBias, look_up
from spacy_psa.modules.precision import Precision, multiplier
from spacy_psa.ragged import mask, pad, unpad

Activation = Literal["tanh", "relu", "sigmoid"]

ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid}

# Size of the largest tensor in `additive_attention`, on a CPU and on a GPU, which needs more work
# at a time. About four tensors of this size exist at once.
CHUNK_BYTES = {"cpu": 1 << 26, "cuda": 1 << 29}

# Rows that `ContextFusion` works on at a time in annotation.
BLOCK_ROWS = 1024


class PositionAwareAttention(PositionBias):
    """Additive self-attention with a bias for positions: (N, d) -> (N, d).

        s_i = Σ_j softmax_j(w·σ(W1 x_i + W2 x_j + b) + Ψ_ij) x_j        (Wei2020 Eq. 5-8)

    The values are the inputs themselves. A token that may attend to no token (the only token of
    a sentence, under the mask) gets a row of zeros.

    Args:
        width: d, the width of the input and of the output.
        activation: σ, "tanh", "relu" or "sigmoid". The papers do not name it; tanh is the function
            of the additive attention that they cite.
        precision: "float32", or "bfloat16" for the products W1 x and W2 x in it.
        bias: the settings of Ψ, see `PositionBias`.

    Raises:
        InputError: for an unknown activation, precision or version, and a width or window below 1.

    Examples:
        >>> attention = PositionAwareAttention(width=16, window=5)
        >>> x, lengths = torch.randn(7, 16), torch.tensor([4, 3])
        >>> attention(x, lengths).shape
        torch.Size([7, 16])
        >>> attention.weights(x, lengths).shape
        torch.Size([2, 4, 4])
    """

    def __init__(
        self,
        width: int,
        *,
        activation: Activation = "tanh",
        precision: Precision = "float32",
        **bias: Any,
    ) -> None:
        super().__init__(width, **bias)
        check_choice("activation", activation, Activation)
        check_choice("precision", precision, Precision)
        self.activation = activation
        self.precision: Precision = precision
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)
        self.score = nn.Parameter(torch.empty(width))
        glorot_all(self)

    def forward(self, x: Tensor, lengths: Tensor, once: Distinct | None = None) -> Tensor:
        """Attend within sentences -> s (N, d).

        Args:
            x: (N, d), the token vectors.
            lengths: (B,) int64, the tokens of each sentence.
            once: the distinct rows of x, if they are known.
        """
        parts = self._parts(once or Distinct(x), int(lengths.max()))
        band = self._band(parts, int(lengths.max()))
        compiled = (
            x.device.type == "cpu"
            and x.dtype in (torch.float32, torch.float64)
            and self.activation != "relu"
            and available()
        )
        attention = additive_attention
        if compiled:
            from spacy_psa.kernels.attention import attend, covers  # needs numba

            if covers(*parts[:2], self.activation):
                attention = attend
        return attention(
            *parts, x, lengths,
            activation=self.activation, signed=self.signed, masked=self.masked, band=band,
        )  # fmt: skip

    def weights(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Compute the attention weights of all pairs: x (N, d) -> a_i(j), (B, n, n).

        n is max(lengths). A row sums to 1 over the tokens of its sentence. Rows and columns of
        padding are 0, and so is the row of a token that is alone under the mask.
        """
        parts = self._parts(Distinct(x), int(lengths.max()))
        chunks = _attention_chunks(
            *parts, lengths,
            activation=self.activation, signed=self.signed, masked=self.masked,
            band=int(lengths.max()),
        )  # fmt: skip
        return torch.cat([attention for _, attention in chunks], 1)

    def _parts(self, x: Distinct, longest: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Compute A and C (N, d), w (d,), and the `tables` of Ψ for all rows."""
        table, distance = self.tables(x.rows, longest)
        query, key = (multiplier(layer, self.precision) for layer in (self.query, self.key))
        a, c, table = (x.spread(t) for t in (query(x.rows), key(x.rows), table))
        return a, c, self.score, table, distance

    def _band(self, parts: tuple[Tensor, ...], longest: int) -> int:
        # `reach` returns at least 3.7 windows, so most batches need not be checked.
        if not self.gaussian or self.activation == "relu" or longest <= 3 * self.window:
            return longest
        with torch.no_grad():
            _, _, w, table, _ = parts
            spread = 2 * w.abs().sum() + (table.amax(1) - table.amin(1)).max()
            # Both at once: on a GPU, reading a number waits for all that was asked before.
            share, spread = torch.stack([self.shares()[0], spread]).tolist()
            return reach(share, spread, self.window, longest, w.dtype)


def reach(share: float, spread: float, window: int, longest: int, dtype: torch.dtype) -> int:
    """Compute the distance up to which pairs must be visited if the Gaussian bias is on.

    The nearest neighbour of a token is at distance 1 or 0. So the weight of a pair at distance D
    is at most exp(α (G(D) - G(1)) + spread) times the weight of the nearest pair. The result is
    the least D for which n such weights together stay below a tolerance of 1e-12 in float32, whose
    own precision is 6e-8, or 1e-20 in float64. As G(D) - G(1) = (1 - D²) / (2 ε²), this is the
    least D with

        α (D² - 1) / (2 ε²) >= spread + ln(n / tolerance)

    Time and memory of the attention are then linear in n.

    Args:
        share: α, the weight of G.
        spread: a bound on the difference between two scores of one row without G: 2 Σ|w| for tanh,
            plus the range of P.
        window: k, in tokens; ε = window / 2.
        longest: n, the length of the longest sentence.
        dtype: type of the scores.

    Returns:
        The distance in tokens, at most `longest`.

    Examples:
        >>> reach(share=0.5, spread=2.0, window=10, longest=1000, dtype=torch.float32)
        61
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
    """Compute additive attention over a flat ragged batch in plain torch.

        s_i = Σ_j softmax_j(w·σ(A_i + C_j) + T[i, row(i-j)] + g[|i-j|]) x_j

    `kernels.attention.attend` computes the same on a CPU. This function is for GPUs and for all
    else that the kernel does not cover. It works on some rows i at a time, so that its memory
    stays near 4 · CHUNK_BYTES. In training it computes the activations of each chunk once more in
    the backward pass, for the same reason.

    Args:
        a: A, (N, d).
        c: C, (N, d).
        w: (d,).
        table: T, (N, rows). row(i-j) is min(|i-j|, rows - 1); if `signed`, it is i-j clipped to
            ±r and shifted by r, with rows = 2r + 1.
        distance: g, of n = max(lengths) or more numbers.
        x: (N, d), the values.
        lengths: (B,) int64, the tokens of each sentence.
        activation: σ, a key of `ACTIVATIONS`.
        signed: whether T has a row for each signed offset.
        masked: whether to leave out j = i.
        band: the largest |i-j| that is needed. Some pairs that are farther apart may be counted.

    Returns:
        s, (N, d).

    Examples:
        >>> x, zeros = torch.tensor([[1.0], [3.0]]), torch.zeros(2, 1)
        >>> additive_attention(
        ...     zeros, zeros, torch.ones(1), zeros, torch.zeros(2), x, torch.tensor([2]),
        ...     activation="tanh", signed=False, masked=False, band=2,
        ... )  # equal weights
        tensor([[2.],
                [2.]])
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
    """Yield weighted values (B, rows, d) or None, and weights (B, rows, cols), by ranges of i."""
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
        # Not -inf but the least number: a row without allowed pairs gets the gradient 0, not NaN.
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
        attention = torch.softmax(scores, 2).masked_fill(~allowed, 0)
        return (attention @ values[0][:, low:high] if values else None), attention

    tensors = (a, c, w, table, distance) + (() if values is None else (values,))
    row_bytes = len(a) * min(n, 3 * band) * a.shape[2] * a.element_size()
    step = max(1, min(band, CHUNK_BYTES["cuda" if a.is_cuda else "cpu"] // row_bytes))
    for start in range(0, n, step):
        if step < n and torch.is_grad_enabled():
            yield checkpoint(
                chunk, start, min(n, start + step), *tensors,
                use_reentrant=False, preserve_rng_state=False,
            )  # fmt: skip
        else:
            yield chunk(start, min(n, start + step), *tensors)


class Fusion(NamedTuple):
    """What a `ContextFusion` does with a batch, as its `inspect` returns it.

    Attributes:
        attention: a_i(j), (B, n, n), the attention weights (Wei2020 Fig. 6).
        gate: λ, (N, d), the share of the input in each feature (Wei2020 Table 13).

    Examples:
        >>> layer = ContextFusion(width=16)
        >>> attention, gate = layer.inspect(torch.randn(7, 16), torch.tensor([4, 3]))
        >>> attention.shape, gate.shape
        (torch.Size([2, 4, 4]), torch.Size([7, 16]))
    """

    attention: Tensor
    gate: Tensor


class ContextFusion(nn.Module):
    """Position-aware attention whose output is mixed with its input by a gate: (N, d) -> (N, d).

        s~ = tanh(Wz2 tanh(Wz1 s + b))                                  (Wei2020 Eq. 12)
        λ  = sigmoid(Wf3 tanh(Wf1 x + Wf2 s~))                          (Wei2020 Eq. 13)
        x~ = λ x + (1-λ) s~                                             (Wei2020 Eq. 14)

    The gate λ has a value for each feature. With all parts on, the layer has
    7d² + 4d + (window+1) d + 2 parameters in the journal version, and
    7d² + 3d + (2 window+1) d + 3 in the arXiv version.

    Args:
        width: d, the width of the input and of the output.
        dropout: dropout rate on s, the "output of self-attention" (Wei2020: 0.2).
        precision: "float32", or "bfloat16" for the products of the layer in it.
        attention: the settings of `PositionAwareAttention`.

    Raises:
        InputError: for settings that `PositionAwareAttention` does not take, and if `dropout` is
            not from 0 to 1.

    Examples:
        >>> layer = ContextFusion(width=16, window=5)
        >>> layer(torch.randn(7, 16), torch.tensor([4, 3])).shape
        torch.Size([7, 16])
    """

    def __init__(
        self,
        width: int,
        *,
        dropout: float = 0.2,
        precision: Precision = "float32",
        **attention: Any,
    ) -> None:
        super().__init__()
        check_rates(dropout=dropout)
        self.precision: Precision = precision
        self.attention = PositionAwareAttention(width, precision=precision, **attention)
        self.dropout = Dropout(dropout)
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width, bias=False)
        self.gate_input = nn.Linear(width, width, bias=False)
        self.gate_context = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, width, bias=False)
        for layer in (self.inner, self.outer, self.gate_input, self.gate_context, self.gate):
            glorot_all(layer)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Transform x (N, d) of sentences of `lengths` (B,) -> x~ (N, d)."""
        once = Distinct(x)
        s = self.dropout(self.attention(x, lengths, once))
        parts = self._multipliers()
        if torch.is_grad_enabled() or x.device.type != "cpu":
            gate, context = _gate(parts, s, parts.gate_input(x))
            return torch.lerp(context, x, gate)
        # Some rows at a time, so that they stay in the processor's cache. x~ replaces s.
        entered = once.reader(parts.gate_input)
        for rows in torch.arange(len(x), device=x.device).split(BLOCK_ROWS):
            block, of_input = s[rows[0] : rows[-1] + 1], x.new_empty(len(rows), x.shape[1])
            entered(rows, of_input)
            gate, context = _gate(parts, block, of_input)
            torch.lerp(context, x[rows[0] : rows[-1] + 1], gate, out=block)
        return s

    def inspect(self, x: Tensor, lengths: Tensor) -> Fusion:
        """Return the attention (Wei2020 Fig. 6) and the gate (Wei2020 Table 13) of a batch."""
        s = self.dropout(self.attention(x, lengths))
        parts = self._multipliers()
        gate, _ = _gate(parts, s, parts.gate_input(x))
        return Fusion(self.attention.weights(x, lengths), gate)

    def _multipliers(self) -> "_Multipliers":
        layers = self.inner, self.outer, self.gate_input, self.gate_context, self.gate
        return _Multipliers(*(multiplier(layer, self.precision) for layer in layers))


class _Multipliers(NamedTuple):
    """The linear layers of a `ContextFusion`, as functions."""

    inner: Callable[[Tensor], Tensor]
    outer: Callable[[Tensor], Tensor]
    gate_input: Callable[[Tensor], Tensor]
    gate_context: Callable[[Tensor], Tensor]
    gate: Callable[[Tensor], Tensor]


def _gate(parts: _Multipliers, s: Tensor, of_input: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the gate λ and s~ from the attention's output s (N, d) and from Wf1 x (N, d)."""
    context = _tanh(parts.outer(_tanh(parts.inner(s))))
    hidden = _tanh(of_input + parts.gate_context(context))
    return torch.sigmoid(parts.gate(hidden)), context


def _tanh(x: Tensor) -> Tensor:
    """Compute tanh; the result may overwrite x."""
    if x.device.type == "cpu" and x.dtype == torch.float32 and available():
        from spacy_psa.kernels.gates import Tanh

        result: Tensor = Tanh.apply(x)
        return result
    return torch.tanh(x)
