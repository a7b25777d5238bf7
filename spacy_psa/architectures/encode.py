"""Encoders: Model[List[Floats2d], List[Floats2d]], for the `encode` slot of spacy.Tok2Vec.v2."""

from typing import Literal

from thinc.api import Model
from thinc.types import Floats2d

from spacy_psa.bridge import torch_layer
from spacy_psa.errors import InputError
from spacy_psa.modules import lstm, psa_bilstm

Encoder = Model[list[Floats2d], list[Floats2d]]


def bilstm(
    hidden: int = 300,
    layers: int = 1,
    input_dropout: float = 0.55,
    output_dropout: float = 0.55,
) -> Encoder:
    """`BiLSTM.v1`: the baseline of J, output width 2 * hidden.

    hidden: units of each direction. layers: BiLSTMs on top of each other.
    input_dropout, output_dropout: before the first and after each layer (J section
    5.2: 0.55). spaCy's `training.dropout` does not touch them.
    """
    model = torch_layer(
        "bilstm",
        lstm.BiLSTM,
        hidden=hidden,
        layers=layers,
        input_dropout=input_dropout,
        output_dropout=output_dropout,
    )
    model.set_dim("nO", 2 * hidden)
    return model


def psa_bilstm_encoder(
    hidden: int = 300,
    bottom: psa_bilstm.Slot = "attention",
    middle: psa_bilstm.Slot = "bilstm",
    top: psa_bilstm.Slot = "attention",
    position: psa_bilstm.Position = "psa",
    version: Literal["journal", "arxiv"] = "journal",
    window: int = 10,
    use_mask: bool = True,
    use_token_bias: bool = True,
    use_gaussian: bool = True,
    activation: Literal["tanh", "relu", "sigmoid"] = "tanh",
    lstm_input_dropout: float = 0.55,
    lstm_output_dropout: float = 0.55,
    attention_dropout: float = 0.2,
    width: int | None = None,
) -> Encoder:
    """`PSABiLSTM.v1`: position-aware self-attention around a BiLSTM (J Fig 2).

    hidden: units of each direction of a BiLSTM; the output width is twice that.
    bottom, middle, top: "attention", "bilstm" or "none" (J Table 9; the baseline of
    Table 8 is top = bottom = "none").
    position: "psa", "absolute" or "none" (J Table 6).
    version: "journal" (J Eq 4, 11) or "arxiv" (A Eq 8, 11, 12).
    window: k, the Gaussian's scope and the largest distance told apart (J: 10).
    use_mask, use_token_bias, use_gaussian: the parts M, P and G of the bias (J Table 7).
    activation: sigma of J Eq 5, which the paper does not name; tanh is Bahdanau's.
    lstm_input_dropout, lstm_output_dropout: right before and after a BiLSTM (J: 0.55);
    attention_dropout: on the output of the attention (J: 0.2). `training.dropout`
    does not touch them.
    width: the input width, needed only where no slot is "bilstm": it is then also
    the output's.

    Errors: InputError for an unknown option, or for `width` missing where it is needed.
    """
    slots = (bottom, middle, top)
    if "bilstm" not in slots and width is None:
        raise InputError(
            "PSABiLSTM.v1 without a BiLSTM keeps its input's width: set `width` to that of `embed`"
        )
    model = torch_layer(
        "psa_bilstm",
        psa_bilstm.PSABiLSTM,
        hidden=hidden,
        bottom=bottom,
        middle=middle,
        top=top,
        position=position,
        version=version,
        window=window,
        use_mask=use_mask,
        use_token_bias=use_token_bias,
        use_gaussian=use_gaussian,
        activation=activation,
        lstm_input_dropout=lstm_input_dropout,
        lstm_output_dropout=lstm_output_dropout,
        dropout=attention_dropout,
    )
    model.set_dim("nO", 2 * hidden if "bilstm" in slots else width)
    return model
