"""The PSA encoder: three slots, each position-aware attention, a BiLSTM or nothing.

J Fig 2 is attention - BiLSTM - attention; J Table 9 changes the slots, Table 6
the way positions come in, Table 7 the parts of the positional bias, Table 8
the attention layers present.
"""

from typing import Any, Literal, get_args

from torch import Tensor, nn

from spacy_psa.errors import InputError
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.psa import ContextFusion, SinusoidalPositions

Slot = Literal["attention", "bilstm", "none"]
Position = Literal["psa", "absolute", "none"]


class PSABiLSTM(nn.Module):
    """(N, nI) -> (N, out_width).

    width: input width nI.
    hidden: units of each direction of a BiLSTM (J: "300", read as 300 each).
    bottom, middle, top: what stands in each slot (J Table 9).
    position: "psa" adds the bias Psi to the scores, "absolute" adds sinusoids to
    the input of the first slot instead, "none" gives neither (J Table 6).
    input_dropout: on the input of the first slot. lstm_input_dropout,
    lstm_output_dropout: right before and after a BiLSTM. J's 0.55 "on the input and
    output of BiLSTM" leaves open whether its input is meant before or after the
    attention layer below it.
    attention: options of `ContextFusion` (window, version, use_mask, ..., dropout).

    Errors: InputError for an unknown slot or position.
    """

    def __init__(
        self,
        width: int,
        hidden: int = 300,
        *,
        bottom: Slot = "attention",
        middle: Slot = "bilstm",
        top: Slot = "attention",
        position: Position = "psa",
        input_dropout: float = 0.0,
        lstm_input_dropout: float = 0.55,
        lstm_output_dropout: float = 0.55,
        **attention: Any,
    ):
        super().__init__()
        if position not in get_args(Position):
            raise InputError(f"position is {position!r}: take one of {get_args(Position)}")
        if position != "psa":
            attention["use_psi"] = False
        self.input_dropout = nn.Dropout(input_dropout)
        self.positions = SinusoidalPositions(width) if position == "absolute" else None
        self.slots = nn.ModuleList()
        for name, slot in (("bottom", bottom), ("middle", middle), ("top", top)):
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
                width = layer.out_width
            elif slot != "none":
                raise InputError(f"{name} is {slot!r}: take one of {get_args(Slot)}")
        self.out_width = width

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
