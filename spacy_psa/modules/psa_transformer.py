"""The Transformer with the position bias of PSA (Wei2020 section 5.3.2, Table 10)."""

from functools import partial
from typing import Literal

from torch import nn

from spacy_psa.errors import check_choice, check_sizes
from spacy_psa.modules.initialization import glorot_all
from spacy_psa.modules.position_bias import PositionBias, Version
from spacy_psa.modules.products import Precision
from spacy_psa.modules.transformer import Encoder, MultiHeadAttention

Position = Literal["psa", "absolute"]


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
        >>> import torch
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
