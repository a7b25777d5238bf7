"""The Transformer with the position bias of PSA (Wei2020 section 5.3.2, Table 10)."""

from typing import Any, Literal

from torch import nn

from spacy_psa.errors import check_choice, check_sizes
from spacy_psa.modules.initialization import glorot_all
from spacy_psa.modules.position_bias import PositionBias, Version
from spacy_psa.modules.precision import Precision
from spacy_psa.modules.transformer import Encoder, EncoderLayer, MultiHeadAttention

Position = Literal["psa", "absolute"]


class PSATransformer(Encoder):
    """softmax_j(q_i·k_j / sqrt(dk) + Ψ_ij(x_i)): (N, nI) -> (N, heads · head_width).

    input_width: nI. heads, head_width: d = heads · head_width (Wei2020: 8 of 64).
    layers: how many (Wei2020: 1 to 3). ffn_dim: the width inside the feed-forward part (Wei2020: 1024).
    position: "psa", or "absolute" for sinusoids instead (Wei2020 Table 10).
    dropout: on attention weights and in the feed-forward part. precision: see `products`.
    version, window, use_mask, use_token_bias, use_gaussian: see `PositionBias`.
    input_dropout, output_dropout: Wei2020 gives no dropout for this system; the defaults are those
    of its attention and of the BiLSTM that the Transformer stands in for.

    What Wei2020 leaves open: each layer has a Ψ of its own, which reads that layer's
    input and is the same for all its heads; the input is projected to d; all
    matrices start by Glorot's rule (Wei2020 section 5.2).

    InputError for an unknown position.
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
        bias: dict[str, Any] = {
            "version": version,
            "window": window,
            "use_mask": use_mask,
            "use_token_bias": use_token_bias,
            "use_gaussian": use_gaussian,
        }
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
            input_width,
            d,
            [EncoderLayer(each, d, ffn_dim, dropout) for each in attentions],
            absolute=position == "absolute",
            input_dropout=input_dropout,
            output_dropout=output_dropout,
            precision=precision,
        )
        for module in self.modules():
            if isinstance(module, nn.Linear):
                glorot_all(module)
