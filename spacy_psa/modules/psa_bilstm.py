"""The encoder of PSA: three slots, each with position-aware attention, a BiLSTM or nothing.

Wei2020 Fig. 2 has attention, BiLSTM, attention. Other tables of Wei2020 change the slots (Table 9),
how positions enter (Table 6), the parts of the position bias (Table 7), and which of the two
attention layers are there (Table 8).
"""

from typing import Any, Literal

from torch import Tensor, nn

from spacy_psa.errors import check_choice, check_rates, check_sizes
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.position_bias import Version
from spacy_psa.modules.precision import Precision
from spacy_psa.modules.psa import Activation, ContextFusion
from spacy_psa.modules.sinusoids import SinusoidalPositions

Slot = Literal["attention", "bilstm", "none"]
Position = Literal["psa", "absolute", "none"]


class PSABiLSTM(nn.Module):
    """Encodes tokens by position-aware attention and BiLSTMs in three slots.

    It takes (N, nI) and returns (N, output_width): 2 * hidden if a slot holds a BiLSTM, else nI.

    In a config of version 1, the settings have the same names. There `width` may give the width of
    the input; it is needed if no slot holds a BiLSTM, because the output is then as wide as the
    input.

    Args:
        input_width: nI, the width of the input.
        hidden: units of each direction of a BiLSTM (Wei2020: "300", read here as 300 for each
            direction).
        bottom: content of the first slot: "attention", "bilstm" or "none" (Wei2020: "attention";
            Table 9 has others).
        middle: content of the second slot (Wei2020: "bilstm").
        top: content of the third slot (Wei2020: "attention").
        position: "psa" adds the bias Ψ to the scores; "absolute" adds sinusoids to the input of
            the first slot instead; "none" does neither (Wei2020 Table 6).
        version: "journal" for the Ψ of Wei2020, "arxiv" for the Ψ of Wei2019, see `PositionBias`.
        window: k, in tokens, see `PositionBias` (Wei2020: 10).
        use_mask: False leaves the mask M out of Ψ (Wei2020 Table 7).
        use_token_bias: False leaves the token-specific bias P out of Ψ (Wei2020 Table 7).
        use_gaussian: False leaves the Gaussian bias G out of Ψ (Wei2020 Table 7).
        activation: σ of the attention, "tanh", "relu" or "sigmoid". Wei2020 does not name it, see
            `PositionAwareAttention`.
        input_dropout: dropout rate on the input of the first slot (Wei2020 gives none).
        lstm_input_dropout: dropout rate right before a BiLSTM (Wei2020: 0.55). The paper says "on
            the input and the output of Bi-LSTM"; it does not say whether the input is meant
            before or after the attention layer below.
        lstm_output_dropout: dropout rate right after a BiLSTM (Wei2020: 0.55).
        attention_dropout: dropout rate on the output of the attention (Wei2020: 0.2).
        precision: "float32", or "bfloat16" for products in it, see
            `spacy_psa.modules.precision.products`.

    Raises:
        InputError: for an unknown slot, position, version, activation or precision, for a dropout
            rate that is not from 0 to 1, and if `hidden` or `window` is below 1.

    Examples:
        >>> import torch
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
        x = self._enter(x, lengths)
        for slot in self.slots:
            x = slot(x, lengths)
        return x

    def inspect(self, x: Tensor, lengths: Tensor) -> list[Any]:
        """Return what each attention slot does with a batch, the bottom slot first.

        Args:
            x: (N, nI), the token vectors.
            lengths: (B,) int64, the tokens of each sentence.

        Returns:
            For each attention slot a `Fusion`: the attention weights (B, n, n) and the gate (N, d).
        """
        x = self._enter(x, lengths)
        seen = []
        for slot in self.slots:
            if isinstance(slot, ContextFusion):
                seen.append(slot.inspect(x, lengths))
            x = slot(x, lengths)
        return seen

    def _enter(self, x: Tensor, lengths: Tensor) -> Tensor:
        x = self.input_dropout(x)
        return x if self.positions is None else self.positions(x, lengths)
