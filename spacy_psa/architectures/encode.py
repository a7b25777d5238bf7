"""Encoders: Model[List[Floats2d], List[Floats2d]], for the `encode` slot of spacy.Tok2Vec.v2."""

from collections.abc import Sequence
from typing import Literal

from thinc.api import Model
from thinc.types import Floats2d

from spacy_psa.bridge import torch_layer
from spacy_psa.errors import InputError
from spacy_psa.modules import idcnn, lstm, psa_bilstm, self_attentive

Encoder = Model[list[Floats2d], list[Floats2d]]


def bilstm(
    hidden: int = 300,
    layers: int = 1,
    separate: bool = False,
    input_dropout: float = 0.55,
    output_dropout: float = 0.55,
) -> Encoder:
    """`BiLSTM.v1`: the baseline of J and, with `separate`, of X; output width 2 * hidden.

    hidden: units of each direction. layers: BiLSTMs on top of each other.
    separate: each direction reads only its own direction of the layer below (X section
    3.2; with 2 layers of 100 and dropouts of 0.35). Otherwise both, as `CrossBiLSTM.v1`.
    input_dropout, output_dropout: before the first and after each layer (J section
    5.2: 0.55). spaCy's `training.dropout` does not touch them.
    """
    model = torch_layer(
        "bilstm",
        lstm.BiLSTM,
        hidden=hidden,
        layers=layers,
        separate=separate,
        input_dropout=input_dropout,
        output_dropout=output_dropout,
    )
    model.set_dim("nO", 2 * hidden)
    return model


def cross_bilstm(
    hidden: int = 100,
    layers: int = 2,
    input_dropout: float = 0.35,
    output_dropout: float = 0.35,
) -> Encoder:
    """`CrossBiLSTM.v1`: X section 6.2, output width 2 * hidden. Each direction of a layer
    reads both of the one below; so does `BiLSTM.v1`, whose defaults are another paper's.

    hidden: units of each direction. layers: BiLSTMs on top of each other.
    input_dropout, output_dropout: before the first and after each layer. X drops 35% of
    the "hidden features", token by token as read here; the authors' code keeps one mask
    for all the tokens of a sentence and drops the recurrent states too, which this
    does not. `training.dropout` does not touch them.
    """
    return bilstm(hidden, layers, False, input_dropout, output_dropout)


def self_attentive_bilstm(
    hidden: int = 100,
    layers: int = 2,
    heads: int = 5,
    separate: bool = True,
    input_dropout: float = 0.35,
    output_dropout: float = 0.35,
) -> Encoder:
    """`SelfAttentiveBiLSTM.v1`: a BiLSTM and, beside it, what each token attends to of it
    (X section 4); output width 4 * hidden, for a linear classifier.

    heads: attentions of width 2 * hidden / heads each.
    separate: keep the directions apart, as X does; false puts it over a cross-BiLSTM.
    hidden, layers, input_dropout, output_dropout: see `CrossBiLSTM.v1`.

    What the trained parts do is shown by `spacy_psa.analysis`.

    Errors: InputError where `heads` does not divide 2 * hidden.
    """
    if heads < 1 or 2 * hidden % heads:
        raise InputError(
            f"SelfAttentiveBiLSTM.v1: {heads} heads do not divide 2 * hidden = {2 * hidden}"
        )
    model = torch_layer(
        "self_attentive_bilstm",
        self_attentive.SelfAttentiveBiLSTM,
        hidden=hidden,
        layers=layers,
        heads=heads,
        separate=separate,
        input_dropout=input_dropout,
        output_dropout=output_dropout,
    )
    model.set_dim("nO", 4 * hidden)
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
    input_dropout: float = 0.0,
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
    input_dropout: on the input of the bottom slot, the other place that J's 0.55 "on the
    input of BiLSTM" may mean. lstm_input_dropout, lstm_output_dropout: right before and
    after a BiLSTM (J: 0.55); attention_dropout: on the output of the attention (J: 0.2).
    `training.dropout` does not touch them.
    width: the input width, needed only where no slot is "bilstm": it is then also
    the output's.

    Errors: InputError for an unknown option, a hidden or window below 1, or for `width`
    missing where it is needed.
    """
    for name, size in (("hidden", hidden), ("window", window)):
        if size < 1:
            raise InputError(f"PSABiLSTM.v1: {name} is {size}: take 1 or more")
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
        input_dropout=input_dropout,
        lstm_input_dropout=lstm_input_dropout,
        lstm_output_dropout=lstm_output_dropout,
        dropout=attention_dropout,
    )
    model.set_dim("nO", 2 * hidden if "bilstm" in slots or width is None else width)
    return model


def idcnn_encoder(
    kernels: int = 400,
    size: int = 3,
    dilations: Sequence[int] = (1, 2, 1),
    iterations: int = 2,
    input_dropout: float = 0.0,
    block_dropout: float = 0.0,
    output_dropout: float = 0.4,
) -> Encoder:
    """`IDCNN.v1`: iterated dilated convolutions (Strubell et al. 2017), output width `kernels`.

    kernels: of each convolution (T Table 7: 200 to 800). size: their width (T: 3).
    dilations: of a block; 1, 2, 1 in Strubell's public configuration for CoNLL-2003.
    iterations: how often the block is applied, with the same weights; what T calls
    layers, 2 to 6, as we read it.
    input_dropout: before the first convolution. block_dropout: between applications of
    the block. output_dropout: T's "fc dropout", 0.4. `training.dropout` does not touch them.

    Errors: InputError for sizes below 1 and an even `size`.
    """
    idcnn.check(kernels, size, dilations, iterations)
    model = torch_layer(
        "idcnn",
        idcnn.IDCNN,
        kernels=kernels,
        size=size,
        dilations=list(dilations),
        iterations=iterations,
        input_dropout=input_dropout,
        block_dropout=block_dropout,
        output_dropout=output_dropout,
    )
    model.set_dim("nO", kernels)
    return model
