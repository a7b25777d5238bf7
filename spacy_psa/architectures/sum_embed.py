"""Embedders over embedders: their sum and concatenation, and dropout of features and of words."""

from collections.abc import Callable
from typing import Any

import numpy
from spacy.tokens import Doc
from thinc.api import Model, concatenate
from thinc.types import Floats2d

from spacy_psa.architectures.distinct_words import UNKNOWN, Embedder, distinct_words, masked
from spacy_psa.errors import InputError, check_rates, naming
from spacy_psa.sentences import Sentences


def sum_embed(*layers: Embedder) -> Embedder:
    """Build `SumEmbed.v1`, the sum of several embedders of one width.

    Kitaev2018 (section 2.2) adds the vectors of a word and its tag in this way.

    Args:
        *layers: the embedders. In a config they are blocks `[….embed.*.NAME]`.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array for each doc, as wide as the layers.

    Raises:
        InputError: if there is no layer, or if the widths differ.

    Examples:
        >>> from spacy_psa.architectures.embed import word_embed
        >>> from spacy_psa.architectures.embed_attributes import tag_embed
        >>> sum_embed(word_embed(width=8, rows=100), tag_embed(width=8)).get_dim("nO")
        8
    """
    if not layers:
        raise InputError("SumEmbed.v1 needs at least one layer, as a block [….embed.*.NAME]")
    model: Embedder = Model("sum_embed", _sum, init=_init_sum, layers=layers, dims={"nO": None})
    if all(layer.has_dim("nO") for layer in layers):  # else known after initialization
        _set_one_width(model)
    return model


def concat_embed(*layers: Embedder, word_dropout: float = 0.0) -> Embedder:
    """Build `ConcatEmbed.v1`, which joins the vectors of several embedders into one.

    Args:
        *layers: the embedders. In a config they are blocks `[….embed.*.NAME]`, in the same
            order.
        word_dropout: share of the tokens that training reads as the unknown word in all layers that
            embed each word by itself; its characters are a blank (code of Yan2019). It is drawn
            anew each time. `BigramEmbed.v1`, `CharSentenceBiLSTM.v1` and `Pretrained.v1` read the
            whole sentence, with the words that are dropped elsewhere.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array for each doc, whose width is the sum of the
        widths of the layers.

    Raises:
        InputError: if there is no layer, and if `word_dropout` is not from 0 to 1.

    Examples:
        >>> from spacy_psa.architectures.embed import word_embed
        >>> from spacy_psa.architectures.embed_attributes import word_shape
        >>> model = concat_embed(word_embed(width=8, rows=100), word_shape())
        >>> model.get_dim("nO")
        12
    """
    if not layers:
        raise InputError("ConcatEmbed.v1 needs at least one layer, as a block [….embed.*.NAME]")
    with naming("ConcatEmbed.v1"):
        check_rates(word_dropout=word_dropout)
    model: Embedder = layers[0] if len(layers) == 1 else concatenate(*layers)
    if len(layers) > 1 and all(layer.has_dim("nO") for layer in layers):
        model.set_dim("nO", sum(layer.get_dim("nO") for layer in layers))  # else known later
    return _over(model, "word_dropout", _drop_words, word_dropout) if word_dropout else model


def sentence_dropout(layer: Embedder, rate: float = 0.2) -> Embedder:
    """Build `SentenceDropout.v1`, which drops features of all tokens of a sentence alike.

    The code of Kitaev2018 uses it for words (rate 0.4), tags (0.2) and letters (0.2).
    `training.dropout` does not change the rate.

    Args:
        layer: the embedder.
        rate: share of the features that are set to zero, from 0 to less than 1.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array for each doc, as wide as the layer.

    Raises:
        InputError: if the rate is below 0, or not below 1.

    Examples:
        >>> import spacy
        >>> from spacy_psa.architectures.embed_attributes import word_shape
        >>> model = sentence_dropout(word_shape(), rate=0.5)
        >>> _ = model.initialize()
        >>> model.predict([spacy.blank("en")("Ada met Bob")])[0].shape
        (3, 4)
    """
    with naming("SentenceDropout.v1"):
        check_rates(below_one=True, rate=rate)
    return _over(layer, "sentence_dropout", _drop, rate)


def _over(layer: Embedder, name: str, forward: Callable, rate: float) -> Embedder:
    """Make the embedder over one that drops a share of something in training."""
    dims = {"nO": layer.get_dim("nO") if layer.has_dim("nO") else None}
    attrs = {"rate": rate}
    return Model(name, forward, init=_init_drop, layers=[layer], dims=dims, attrs=attrs)


def _set_one_width(model: Model) -> None:
    """Set the width of a sum to that of its layers."""
    widths = [layer.get_dim("nO") for layer in model.layers]
    if len(set(widths)) > 1:
        raise InputError(
            f"SumEmbed.v1 adds layers of one width, but these have the widths {widths}: "
            "set them to one width"
        )
    model.set_dim("nO", widths[0])


def _init_sum(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    for layer in model.layers:
        layer.initialize(X=X)
    _set_one_width(model)


def _init_drop(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    (layer,) = model.layers
    layer.initialize(X=X)
    model.set_dim("nO", layer.get_dim("nO"))


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
    return masked(vectors, layer_backprop, masks)


def _drop_words(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    (layer,) = model.layers
    if not is_train or not any(map(len, docs)):
        return layer(docs, is_train)
    words, index, sizes = distinct_words(docs)
    unknown = numpy.random.random(len(index)) < model.attrs["rate"]
    read = Sentences(docs)
    read.words = [*words, UNKNOWN], numpy.where(unknown, len(words), index), sizes
    return layer(read, is_train)
