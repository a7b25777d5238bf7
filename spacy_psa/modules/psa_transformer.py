"""The Transformer with the position bias of PSA (J section 5.3.2, Table 10)."""

from typing import Any, Literal, get_args

from torch import nn

from spacy_psa.errors import InputError
from spacy_psa.modules.position_bias import PositionBias, glorot
from spacy_psa.modules.precision import Precision
from spacy_psa.modules.transformer import Encoder, EncoderLayer, MultiHeadAttention

Position = Literal["psa", "absolute"]


class PSATransformer(Encoder):
    """softmax_j(q_i·k_j / sqrt(dk) + Ψ_ij(x_i)): (N, nI) -> (N, heads · head_width).

    width: nI. heads, head_width: d = heads · head_width (J: 8 of 64).
    layers: how many (J: 1 to 3). feedforward: the inner width (J: 1024).
    position: "psa", or "absolute" for sinusoids instead (J Table 10).
    dropout: on attention weights and in the feed-forward part. precision: see `products`.
    bias: the arguments of `PositionBias` (window, version, use_mask, …).

    What J leaves open: each layer has a Ψ of its own, which reads that layer's
    input and is the same for all its heads; the input is projected to d; all
    matrices start by Glorot's rule (J section 5.2).

    InputError for an unknown position.
    """

    def __init__(
        self,
        width: int,
        *,
        heads: int = 8,
        head_width: int = 64,
        layers: int = 2,
        feedforward: int = 1024,
        position: Position = "psa",
        dropout: float = 0.2,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        precision: Precision = "float32",
        **bias: Any,
    ) -> None:
        if position not in get_args(Position):
            raise InputError(f"position is {position!r}: take one of {get_args(Position)}")
        d = heads * head_width
        attentions = [
            MultiHeadAttention(
                d,
                heads,
                dropout=dropout,
                psi=PositionBias(d, **bias) if position == "psa" else None,
            )
            for _ in range(layers)
        ]
        super().__init__(
            width,
            d,
            [EncoderLayer(each, d, feedforward, dropout) for each in attentions],
            absolute=position == "absolute",
            input_dropout=input_dropout,
            output_dropout=output_dropout,
            precision=precision,
        )
        for module in self.modules():
            if isinstance(module, nn.Linear):
                glorot(module)
