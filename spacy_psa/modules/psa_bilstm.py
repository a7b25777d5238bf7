"""The PSA encoder: three slots, each position-aware attention, a BiLSTM or nothing.

Wei2020 Fig 2 is attention - BiLSTM - attention; Wei2020 Table 9 changes the slots, Table 6
the way positions come in, Table 7 the parts of the positional bias, Table 8
the attention layers present.
"""

from typing import Any, Literal

from torch import Tensor, nn

from spacy_psa.errors import check_choice, check_sizes
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.position_bias import Version
from spacy_psa.modules.psa import Activation, ContextFusion
from spacy_psa.modules.sinusoids import SinusoidalPositions

Slot = Literal["attention", "bilstm", "none"]
Position = Literal["psa", "absolute", "none"]


class PSABiLSTM(nn.Module):
    """(N, nI) -> (N, output_width).

    input_width: nI.
    hidden: units of each direction of a BiLSTM (Wei2020: "300", read as 300 each).
    bottom, middle, top: what stands in each slot (Wei2020 Table 9).
    position: "psa" adds the bias Psi to the scores, "absolute" adds sinusoids to
    the input of the first slot instead, "none" gives neither (Wei2020 Table 6).
    input_dropout: on the input of the first slot. lstm_input_dropout,
    lstm_output_dropout: right before and after a BiLSTM. Wei2020's 0.55 "on the input and
    output of BiLSTM" leaves open whether its input is meant before or after the
    attention layer below it.
    version, window, use_mask, use_token_bias, use_gaussian, activation: of the attention,
    see `PositionAwareAttention`. attention_dropout: on its output (Wei2020: 0.2).

    Errors: InputError for an unknown slot or position.
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
    ):
        super().__init__()
        check_sizes(hidden=hidden, window=window)
        check_choice("position", position, Position)
        check_choice("version", version, Version)
        check_choice("activation", activation, Activation)
        attention: dict[str, Any] = {
            "dropout": attention_dropout,
            "activation": activation,
            "version": version,
            "window": window,
            "use_psi": position == "psa",
            "use_mask": use_mask,
            "use_token_bias": use_token_bias,
            "use_gaussian": use_gaussian,
        }
        width = input_width
        self.input_dropout = nn.Dropout(input_dropout)
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
                )
                self.slots.append(layer)
                width = layer.output_width
        self.output_width = width

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        x = self._enter(x, lengths)
        for slot in self.slots:
            x = slot(x, lengths)
        return x

    def inspect(self, x: Tensor, lengths: Tensor) -> list[Any]:
        """The attention (B, n, n) and gate (N, d) of each attention slot, bottom first."""
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
