"""The models of the chain components: from token vectors to log potentials."""

from typing import Literal

import numpy
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.architectures.sentencewise import check_one_row_a_token, sentencewise
from spacy_psa.bridge.layers import head_layer
from spacy_psa.bridge.shim import shim_of
from spacy_psa.errors import check_choice, naming
from spacy_psa.modules.chain_potentials import Emission, EmissionTransition, LabelPair
from spacy_psa.modules.products import Precision
from spacy_psa.structs.pair_chain import TagPairs

Potentials = Literal["label_pair", "transition"]
HEADS = {"label_pair": LabelPair, "transition": EmissionTransition}
MANY = 89
"""With more tags than these, a new head with "transition" keeps its transitions apart."""
EMISSION = "emission"
"""The name of the head of `Softmax.v1`; `HEADS` has those of `CRF.v1`."""


def crf(
    tok2vec: Model[list[Doc], list[Floats2d]],
    potentials: Potentials = "label_pair",
    precision: Precision = "float32",
) -> Model:
    """Build `CRF.v1`, which computes the log potentials of a linear chain over K tags.

    Args:
        tok2vec: computes a vector for each token.
        potentials: "label_pair" has a weight vector for each pair of tags (Wei2020 Eq. 2).
            "transition" is the sum of an emission and a transition score, and is smaller for many
            tags. See `spacy_psa.modules.chain_potentials`.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array (tokens, K * K) for each sentence; its nO
        is K. After `prepare_heads` the array is (tokens, P). With "transition" and more than 89
        tags it is (tokens, K), and the transitions are `apart` from it.

    Raises:
        InputError: for unknown `potentials` or `precision`, and if `tok2vec` has rows for START and
            STOP (`boundaries = true`).

    Examples:
        >>> import spacy
        >>> from spacy_psa.architectures.embed import word_embed
        >>> model = crf(word_embed(width=8))
        >>> model.set_dim("nO", 5)
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> _ = model.initialize(X=[doc])
        >>> model.predict([doc])[0].shape
        (3, 25)
    """
    with naming("CRF.v1"):
        check_choice("potentials", potentials, Potentials)
        check_choice("precision", precision, Precision)
    check_one_row_a_token("CRF.v1", tok2vec)
    return sentencewise(
        tok2vec, head_layer(potentials, HEADS[potentials], {"precision": precision})
    )


def softmax(tok2vec: Model[list[Doc], list[Floats2d]], precision: Precision = "float32") -> Model:
    """Build `Softmax.v1`, which computes the log probabilities of K tags, token by token.

    It is model 5 of Wei2020 Table 9.

    Args:
        tok2vec: as in `crf`.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array (tokens, K) for each sentence; its nO is K.

    Raises:
        InputError: as `crf`.

    Examples:
        >>> import spacy
        >>> from spacy_psa.architectures.embed import word_embed
        >>> model = softmax(word_embed(width=8))
        >>> model.set_dim("nO", 5)
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> _ = model.initialize(X=[doc])
        >>> model.predict([doc])[0].shape
        (3, 5)
    """
    with naming("Softmax.v1"):
        check_choice("precision", precision, Precision)
    check_one_row_a_token("Softmax.v1", tok2vec)
    return sentencewise(tok2vec, head_layer(EMISSION, Emission, {"precision": precision}))


def find_heads(model: Model) -> list[Model]:
    """Find the heads of a chain component's model, one of each model of an ensemble."""
    return [node for node in model.walk() if node.name in (*HEADS, EMISSION)]


def prepare_heads(model: Model, legal: NDArray[numpy.bool_]) -> None:
    """Let a new model of `CRF.v1` score only the legal pairs of tags.

    Models that have weights, and other models, stay as they are.

    Args:
        legal: (K, K) bool, the tags (columns) that may follow a tag (rows).
    """
    for node in model.walk():
        if node.name in HEADS and shim_of(node)._model is None:
            if not legal.all():
                pairs = TagPairs(legal)
                shim_of(node).cfg["pairs"] = torch.stack([pairs.previous, pairs.tag], 1).tolist()
            if node.name == "transition" and len(legal) > MANY:
                shim_of(node).cfg["keep_apart"] = True


def apart(model: Model) -> list[Tensor]:
    """The transitions (K, K) that a model keeps apart from its output, or nothing.

    For an ensemble it is their mean, as its output is the mean of the outputs.
    """
    heads = [getattr(shim_of(head).module, "apart", []) for head in find_heads(model)]
    return [torch.stack(each).mean(0) if len(each) > 1 else each[0] for each in zip(*heads)]
