"""Transformer encoders: Model[List[Floats2d], List[Floats2d]], as those of `encode`.

They share their options: `heads` and `head_width` make the output width heads *
head_width, to which the input is projected; `layers`; `feedforward`, the width inside
a layer; `dropout`, on attention weights and in the feed-forward part; `input_dropout`
and `output_dropout`, before the projection and after the last layer. `training.dropout`
touches none of them. `precision`, "float32" or "bfloat16", is that of matrix products:
"bfloat16" is for a GPU, or a CPU that has instructions for it (avx512_bf16, amx_bf16).
"""

from collections.abc import Callable
from typing import Any, get_args

from torch import nn

from spacy_psa.architectures.encode import Encoder
from spacy_psa.bridge import torch_layer
from spacy_psa.errors import InputError
from spacy_psa.modules import psa_transformer, tener, transformer
from spacy_psa.modules.position_bias import Version
from spacy_psa.modules.precision import Precision, check_precision


def transformer_encoder(
    heads: int = 8,
    head_width: int = 64,
    layers: int = 2,
    feedforward: int | None = None,
    dropout: float = 0.15,
    input_dropout: float = 0.0,
    output_dropout: float = 0.4,
    precision: Precision = "float32",
) -> Encoder:
    """`Transformer.v1`: the vanilla encoder with absolute sinusoids (T section 2.2).

    feedforward: null for twice the output width, as in T's code.

    Errors: InputError for a size below 1, or another precision.
    """
    return _encoder(
        "transformer",
        transformer.Transformer,
        heads=heads,
        head_width=head_width,
        layers=layers,
        feedforward=feedforward,
        dropout=dropout,
        input_dropout=input_dropout,
        output_dropout=output_dropout,
        precision=precision,
    )


def tener_encoder(
    heads: int = 14,
    head_width: int = 128,
    layers: int = 2,
    feedforward: int | None = None,
    scale: bool = False,
    key_projection: bool = False,
    key_relative_bias: bool = False,
    dropout: float = 0.15,
    input_dropout: float = 0.0,
    output_dropout: float = 0.4,
    precision: Precision = "float32",
) -> Encoder:
    """`TENER.v1`: direction- and distance-aware, un-scaled attention (T section 3.2).

    heads, head_width, layers: the defaults are those of the authors' script for
    CoNLL-2003. feedforward: null for twice the output width, as in T's code.
    scale: divide the scores by sqrt(head_width) ("w/ scale" in T Tables 2 and 3).
    key_projection: keys of their own weights. key_relative_bias: the term K_j R_{t-j}.
    Both are in later versions of the authors' code and not in the paper.
    dropout: T 0.15. output_dropout: T's "fc dropout", 0.4.

    Errors: InputError for a size below 1, or another precision.
    """
    return _encoder(
        "tener",
        tener.TENER,
        heads=heads,
        head_width=head_width,
        layers=layers,
        feedforward=feedforward,
        scale=scale,
        key_projection=key_projection,
        key_relative_bias=key_relative_bias,
        dropout=dropout,
        input_dropout=input_dropout,
        output_dropout=output_dropout,
        precision=precision,
    )


def psa_transformer_encoder(
    heads: int = 8,
    head_width: int = 64,
    layers: int = 2,
    feedforward: int = 1024,
    position: psa_transformer.Position = "psa",
    version: Version = "journal",
    window: int = 10,
    use_mask: bool = True,
    use_token_bias: bool = True,
    use_gaussian: bool = True,
    dropout: float = 0.2,
    input_dropout: float = 0.55,
    output_dropout: float = 0.55,
    precision: Precision = "float32",
) -> Encoder:
    """`PSATransformer.v1`: a Transformer with PSA's position bias (J Table 10).

    heads, head_width, feedforward: J's. layers: J 1 to 3.
    position: "psa", or "absolute" for sinusoids instead.
    version, window, use_mask, use_token_bias, use_gaussian: as of `PSABiLSTM.v1`.
    dropouts: J gives none for this system; the defaults are those of its attention and
    of the BiLSTM that the Transformer stands in for.

    Errors: InputError for a size below 1, or an unknown position, version or precision.
    """
    for name, value, known in (
        ("position", position, psa_transformer.Position),
        ("version", version, Version),
    ):
        if value not in get_args(known):
            raise InputError(
                f"PSATransformer.v1: {name} is {value!r}: take one of {get_args(known)}"
            )
    return _encoder(
        "psa_transformer",
        psa_transformer.PSATransformer,
        heads=heads,
        head_width=head_width,
        layers=layers,
        feedforward=feedforward,
        position=position,
        version=version,
        window=window,
        use_mask=use_mask,
        use_token_bias=use_token_bias,
        use_gaussian=use_gaussian,
        dropout=dropout,
        input_dropout=input_dropout,
        output_dropout=output_dropout,
        precision=precision,
    )


def _encoder(name: str, make: Callable[..., nn.Module], **arguments: Any) -> Encoder:
    check_precision(f"{make.__name__}.v1", arguments["precision"])
    for size in ("heads", "head_width", "layers", "feedforward", "window"):
        value = arguments.get(size)
        if value is not None and value < 1:
            raise InputError(f"{make.__name__}.v1: {size} is {value}: take 1 or more")
    model = torch_layer(name, make, **arguments)
    model.set_dim("nO", arguments["heads"] * arguments["head_width"])
    return model
