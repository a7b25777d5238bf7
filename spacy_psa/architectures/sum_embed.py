"""Embedders over embedders: their sum, and dropout of whole features (Kitaev2018)."""

from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from spacy_psa.architectures.embed import Embedder
from spacy_psa.errors import InputError


def sum_embed(*layers: Embedder) -> Embedder:
    """`SumEmbed.v1`: the sum of several embedders of one width, as w + m of a word and its
    tag (Kitaev2018 section 2.2).

    In a config the layers are blocks `[….embed.*.NAME]`.

    Errors: InputError without a layer and for widths that differ.
    """
    if not layers:
        raise InputError("SumEmbed.v1 needs at least one layer, as a block [….embed.*.NAME]")
    model: Embedder = Model("sum_embed", _sum, init=_init, layers=layers, dims={"nO": None})
    if all(layer.has_dim("nO") for layer in layers):  # else known after initialization
        _set_width(model)
    return model


def sentence_dropout(layer: Embedder, rate: float = 0.2) -> Embedder:
    """`SentenceDropout.v1`: dropout that takes a feature away from all tokens of a sentence
    at once, as Kitaev2018's code has it for words (0.4), tags (0.2) and letters (0.2).

    layer: an embedder. rate: the share of its features that go. `training.dropout` does
    not touch it.

    Errors: InputError for a rate below 0, or not below 1.
    """
    if not 0 <= rate < 1:
        raise InputError(f"SentenceDropout.v1: rate is {rate}: take 0 to less than 1")
    model: Embedder = Model(
        "sentence_dropout",
        _drop,
        init=_init,
        layers=[layer],
        dims={"nO": None},
        attrs={"rate": rate},
    )
    if layer.has_dim("nO"):
        _set_width(model)
    return model


def _set_width(model: Model) -> None:
    widths = [layer.get_dim("nO") for layer in model.layers]
    if len(set(widths)) > 1:
        raise InputError(f"SumEmbed.v1 adds layers of one width, and these have {widths}")
    model.set_dim("nO", widths[0])


def _init(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    for layer in model.layers:
        layer.initialize(X=X)
    _set_width(model)


def _sum(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    outputs, backprops = zip(*(layer(docs, is_train) for layer in model.layers))

    def backprop(d_sum: list[Floats2d]) -> list[Doc]:
        for layer_backprop in backprops:
            layer_backprop(d_sum)
        return []

    return [sum(arrays[1:], start=arrays[0]) for arrays in zip(*outputs)], backprop


def _drop(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    (layer,), rate = model.layers, model.attrs["rate"]
    vectors, layer_backprop = layer(docs, is_train)
    if not is_train or not rate:
        return vectors, layer_backprop
    width = model.get_dim("nO")
    masks = [model.ops.get_dropout_mask((1, width), rate) for _ in vectors]

    def backprop(d_vectors: list[Floats2d]) -> list[Doc]:
        return layer_backprop([d * mask for d, mask in zip(d_vectors, masks)])

    return [array * mask for array, mask in zip(vectors, masks)], backprop
