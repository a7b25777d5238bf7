"""Position-aware self-attention (PSA) and the encoder that is made of it (Wei2020, Wei2019).

The equations are Wei2020 sections 4.1 and 4.2. The setting `version` chooses between the position
bias of Wei2020 (the journal version) and of Wei2019 (the arXiv version).
"""

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from spacy_psa.errors import check_choice, check_rates, check_sizes
from spacy_psa.kernels import available
from spacy_psa.modules.additive_attention import (
    additive_attention,
    attention_chunks,
    reach,
)
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.initialization import glorot_all
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.position_bias import PositionBias, Version
from spacy_psa.modules.products import Distinct, Multiplier, Precision, multipliers
from spacy_psa.modules.sinusoids import SinusoidalPositions

Activation = Literal["tanh", "relu", "sigmoid"]
Slot = Literal["attention", "bilstm", "none"]
Position = Literal["psa", "absolute", "none"]

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
        bias: the settings of Ψ, see `PositionBias`.

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
            once: the distinct rows of x, if they are known.
        """
        longest = int(lengths.max())
        parts = self._parts(once or Distinct(x), longest)
        # `reach` returns at least 3.7 windows, so most batches need not be checked.
        band = longest if longest <= 3 * self.window else self._band(parts, longest)
        attention = additive_attention
        compiled = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
        if compiled and self.activation != "relu" and available():
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
        padding are 0, and so is the row of the only token of a sentence under the mask.
        """
        longest = int(lengths.max())
        chunks = attention_chunks(
            *self._parts(Distinct(x), longest), lengths,
            activation=self.activation, signed=self.signed, masked=self.masked, band=longest,
        )  # fmt: skip
        return torch.cat([attention for _, attention in chunks], 1)

    def _parts(self, x: Distinct, longest: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Compute A and C (N, d), w (d,), and the `tables` of Ψ for all rows."""
        table, distance = self.tables(x.rows, longest)
        query, key = multipliers(self.precision, x.rows, self.query, self.key)
        a, c = query(x.rows), key(x.rows)
        if x.place is not None:
            a, c, table = x.spread(a), x.spread(c), x.spread(table)
        return a, c, self.score, table, distance

    def _band(self, parts: tuple[Tensor, ...], longest: int) -> int:
        if not self.gaussian or self.activation == "relu":
            return longest
        with torch.no_grad():
            _, _, w, table, _ = parts
            spread = 2 * w.abs().sum() + (table.amax(1) - table.amin(1)).max()
            # Both at once: on a GPU, reading a number waits for everything before it.
            share, spread = torch.stack([self.shares()[0], spread]).tolist()
            return reach(share, spread, self.window, longest, w.dtype)


class Fusion(NamedTuple):
    """The attention and the gate of a `ContextFusion` for a batch, as its `inspect` returns them.

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
        attention: the settings of `PositionAwareAttention`.

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
        s = self.attention(x, lengths, once)
        if self.training:
            s = self.dropout(s)
        parts = self._multipliers(x)
        few = len(x) <= BLOCK_ROWS and once.place is None
        if few or torch.is_grad_enabled() or x.device.type != "cpu":
            gate, context = _gate(parts, s, parts.gate_input(x))
            return torch.lerp(context, x, gate)
        # Some rows at a time, so that they stay in the processor's cache. x~ replaces s.
        table = None if once.place is None else parts.gate_input(once.rows)
        for start in range(0, len(x), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            if table is None or once.place is None:
                of_input = parts.gate_input(x[rows])
            else:
                of_input = table.index_select(0, once.place[rows])
            gate, context = _gate(parts, s[rows], of_input)
            torch.lerp(context, x[rows], gate, out=s[rows])
        return s

    def inspect(self, x: Tensor, lengths: Tensor) -> Fusion:
        """Return the attention (Wei2020 Fig. 6) and the gate (Wei2020 Table 13) of a batch."""
        s = self.dropout(self.attention(x, lengths))
        parts = self._multipliers(x)
        gate, _ = _gate(parts, s, parts.gate_input(x))
        return Fusion(self.attention.weights(x, lengths), gate)

    def _multipliers(self, x: Tensor) -> "_Multipliers":
        layers = self.inner, self.outer, self.gate_input, self.gate_context, self.gate
        return _Multipliers(*multipliers(self.precision, x, *layers))


class _Multipliers(NamedTuple):
    """The linear layers of a `ContextFusion`, as functions."""

    inner: Multiplier
    outer: Multiplier
    gate_input: Multiplier
    gate_context: Multiplier
    gate: Multiplier


def _gate(parts: _Multipliers, s: Tensor, of_input: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the gate λ and s~ from the attention's output s (N, d) and from Wf1 x (N, d)."""
    tanh: Any = torch.tanh
    if s.device.type == "cpu" and s.dtype == torch.float32 and available():
        from spacy_psa.kernels import gates

        tanh = gates.tanh  # overwrites its argument
    context = tanh(parts.outer(tanh(parts.inner(s))))
    hidden = tanh(of_input + parts.gate_context(context))
    return torch.sigmoid(parts.gate(hidden)), context


class PSABiLSTM(nn.Module):
    """Encodes tokens by position-aware attention and BiLSTMs in three slots.

    It maps (N, nI) to (N, output_width): 2 * hidden if a slot holds a BiLSTM, else nI. Wei2020
    Fig. 2 has attention, BiLSTM, attention. Other tables of Wei2020 change the slots (Table 9), how
    positions enter (Table 6), the parts of the position bias (Table 7), and which of the two
    attention layers are there (Table 8).

    The settings `version`, `window`, `use_mask`, `use_token_bias` and `use_gaussian` are those of
    `PositionBias`. In a config, `width` may be set to the width of the input; this is needed if no
    slot holds a BiLSTM, because the output is then as wide as the input.

    Args:
        hidden: units of each direction of a BiLSTM (Wei2020: "300", read here as 300 for each
            direction).
        bottom: content of the first slot: "attention", "bilstm" or "none" (Wei2020: "attention";
            Table 9 has others).
        middle: content of the second slot (Wei2020: "bilstm").
        top: content of the third slot (Wei2020: "attention").
        position: "psa" adds the bias Ψ to the scores; "absolute" adds sinusoids to the input of
            the first slot instead; "none" does neither (Wei2020 Table 6).
        activation: σ of the attention, "tanh", "relu" or "sigmoid". Wei2020 does not name it, see
            `PositionAwareAttention`.
        input_dropout: dropout rate on the input of the first slot (none in Wei2020).
        lstm_input_dropout: dropout rate right before a BiLSTM (Wei2020: 0.55). The paper has "on
            the input and the output of Bi-LSTM", which leaves open whether the input is meant
            before or after the attention layer below.
        lstm_output_dropout: dropout rate right after a BiLSTM (Wei2020: 0.55).
        attention_dropout: dropout rate on the output of the attention (Wei2020: 0.2).

    Raises:
        InputError: for an unknown slot, position, version, activation or precision, for a dropout
            rate that is not from 0 to 1, and if `hidden` or `window` is below 1.

    Examples:
        >>> encoder = PSABiLSTM(input_width=100, hidden=50, window=5)
        >>> x, lengths = torch.randn(7, 100), torch.tensor([4, 3])
        >>> encoder(x, lengths).shape
        torch.Size([7, 100])
    """

    def __init__(
        self,
        input_width: int,
        hidden: int = 300,
        bottom: Slot = "attention",
        middle: Slot = "bilstm",
        top: Slot = "attention",
        position: Position = "psa",
        version: Version = "journal",
        window: int = 10,
        use_mask: bool = True,
        use_token_bias: bool = True,
        use_gaussian: bool = True,
        activation: Activation = "tanh",
        input_dropout: float = 0.0,
        lstm_input_dropout: float = 0.55,
        lstm_output_dropout: float = 0.55,
        attention_dropout: float = 0.2,
        precision: Precision = "float32",
    ):
        super().__init__()
        check_sizes(hidden=hidden, window=window)
        check_choice("position", position, Position)
        check_choice("version", version, Version)
        check_choice("activation", activation, Activation)
        check_choice("precision", precision, Precision)
        check_rates(input_dropout=input_dropout, lstm_input_dropout=lstm_input_dropout)
        check_rates(lstm_output_dropout=lstm_output_dropout, attention_dropout=attention_dropout)
        attention: dict[str, Any] = {
            "dropout": attention_dropout,
            "activation": activation,
            "version": version,
            "window": window,
            "use_psi": position == "psa",
            "use_mask": use_mask,
            "use_token_bias": use_token_bias,
            "use_gaussian": use_gaussian,
            "precision": precision,
        }
        width = input_width
        self.input_dropout = Dropout(input_dropout)
        self.positions = SinusoidalPositions(width) if position == "absolute" else None
        self.slots = nn.ModuleList()
        for name, slot in (("bottom", bottom), ("middle", middle), ("top", top)):
            check_choice(name, slot, Slot)
            if slot == "attention":
                self.slots.append(ContextFusion(width, **attention))
            elif slot == "bilstm":
                layer = BiLSTM(
                    width,
                    hidden,
                    input_dropout=lstm_input_dropout,
                    output_dropout=lstm_output_dropout,
                    precision=precision,
                )
                self.slots.append(layer)
                width = layer.output_width
        self.output_width = width

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Encode x (N, nI) of sentences of `lengths` (B,) -> (N, output_width)."""
        if self.training:
            x = self.input_dropout(x)
        if self.positions is not None:
            x = self.positions(x, lengths)
        for slot in self.slots:
            x = slot(x, lengths)
        return x

    def inspect(self, x: Tensor, lengths: Tensor) -> list[Fusion]:
        """Return the `Fusion` of each attention slot for a batch, the bottom slot first."""
        x = self.input_dropout(x)
        if self.positions is not None:
            x = self.positions(x, lengths)
        fusions = []
        for slot in self.slots:
            if isinstance(slot, ContextFusion):
                fusions.append(slot.inspect(x, lengths))
            x = slot(x, lengths)
        return fusions
