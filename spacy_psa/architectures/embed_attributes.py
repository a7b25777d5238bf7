"""Embedders of attributes of a token: `WordShape.v1` and `TagEmbed.v1`."""

from functools import partial
from typing import Literal

import numpy
import torch
from spacy.tokens import Doc
from thinc.api import Model

from spacy_psa.architectures.distinct_words import (
    LOOKUP_NAMES,
    Embedded,
    Embedder,
    add_rows,
    by_distinct_word,
    ignore_gradient,
    init_table,
)
from spacy_psa.bridge.shim import TorchShim, shim_of
from spacy_psa.errors import check_amounts, check_choice, check_rates, check_sizes, naming
from spacy_psa.modules.lookup import Lookup
from spacy_psa.ragged import to_device

Attribute = Literal["TAG", "POS", "MORPH", "LEMMA", "NORM"]


def word_shape() -> Embedder:
    """Build `WordShape.v1`, a one-hot vector for the capitals of a word (Li2019 section 3.1).

    The four classes are upper case (`str.isupper`), else upper initial, else lower case
    (`str.islower`), else mixed. Words without letters are in the last class. Nothing is trained.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array (tokens, 4) for each doc.

    Examples:
        >>> import spacy
        >>> model = word_shape()
        >>> model.predict([spacy.blank("en")("NATO met Bob iPhone")])[0].argmax(1).tolist()
        [0, 2, 1, 3]
    """
    forward = partial(by_distinct_word, embed=_embed_shapes)
    return Model("word_shape", forward, dims={"nO": 4})


def tag_embed(
    width: int = 32,
    rows: int = 500,
    attribute: Attribute = "TAG",
    dropout: float = 0.0,
    spread: float | None = None,
) -> Embedder:
    """Build `TagEmbed.v1`, a trained vector for the tag of each token (Kitaev2018 section 2.1).

    The tag is the prediction of an earlier component, which must be among
    `training.annotating_components`. Tags get their rows in the order in which training meets
    them. Tags that training did not meet, and tokens without a tag, have the vector of the unknown
    tag, which is trained only if these occur in training.

    Args:
        width: width of a vector.
        rows: capacity for distinct tags of the training data.
        attribute: the attribute of the token to read.
        dropout: dropout rate on the vectors; `training.dropout` does not change it.
        spread: standard deviation of the numbers that the vectors start with; None for
            1 / sqrt(width).

    Returns:
        Model[List[Doc], List[Floats2d]] with an array (tokens, width) for each doc.

    Raises:
        InputError: for a setting out of its range.

    Examples:
        >>> import spacy
        >>> model = tag_embed(width=4)
        >>> _ = model.initialize()
        >>> doc = Doc(spacy.blank("en").vocab, words=["dogs", "bark"], tags=["NNS", "VBP"])
        >>> model.predict([doc])[0].shape
        (2, 4)
    """
    with naming("TagEmbed.v1"):
        check_sizes(width=width)
        check_sizes(least=0, rows=rows)
        check_choice("attribute", attribute, Attribute)
        check_rates(dropout=dropout)
        check_amounts(spread=0.0 if spread is None else spread)
    settings = {
        "num_embeddings": rows + 1,
        "width": width,
        "dropout": dropout,
        "init_std": spread,
    }
    return Model(
        "tag_embed",
        partial(by_distinct_word, embed=_embed_tags, attribute=attribute),
        init=init_table,
        dims={"nO": width},
        attrs={"rows": {}, "capacity": rows, "attribute": attribute},
        shims=[TorchShim(Lookup, settings, LOOKUP_NAMES)],
    )


def _embed_shapes(model: Model, docs: list[Doc], words: list[str], is_train: bool) -> Embedded:
    one_hot = numpy.eye(4, dtype="float32")[[_shape(word) for word in words]]
    return model.ops.asarray2f(one_hot), ignore_gradient  # type: ignore[arg-type]


def _shape(word: str) -> int:
    if word.isupper():
        return 0
    if word[:1].isupper():
        return 1
    return 2 if word.islower() else 3


def _embed_tags(model: Model, docs: list[Doc], tags: list[str], is_train: bool) -> Embedded:
    if is_train:
        add_rows(model, filter(None, tags))
    rows = torch.tensor([[model.attrs["rows"].get(tag, 0)] for tag in tags])
    shim = shim_of(model)
    return shim.run((to_device(rows, shim.device),), is_train)
