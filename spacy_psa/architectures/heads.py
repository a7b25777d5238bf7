"""Heads: token vectors to potentials, Model[List[Doc | Span], List[Floats2d]].

A doc is taken sentence by sentence where its sentence boundaries are set, else
whole; a span is one sentence. The output has one array for each sentence.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args

import numpy
from spacy.tokens import Doc, Span
from thinc.api import Model
from thinc.types import Floats2d

from spacy_psa.bridge import head_layer
from spacy_psa.errors import InputError
from spacy_psa.modules import heads

Kind = Literal["label_pair", "transition"]


def crf(tok2vec: Model[list[Doc], list[Floats2d]], potentials: Kind = "label_pair") -> Model:
    """`CRF.v1`: log potentials of a linear chain, K * K a token (see `modules.heads`).

    potentials: "label_pair" gives every pair of tags a weight vector (J Eq 2);
    "transition" is emission plus transition, smaller for many labels.

    Errors: InputError for an unknown kind.
    """
    kinds = {"label_pair": heads.LabelPair, "transition": heads.EmissionTransition}
    if potentials not in kinds:
        raise InputError(f"CRF.v1: potentials is {potentials!r}: take one of {get_args(Kind)}")
    return _sentencewise(tok2vec, head_layer(potentials, kinds[potentials]))


def softmax(tok2vec: Model[list[Doc], list[Floats2d]]) -> Model:
    """`Softmax.v1`: tags independent of each other, K log probabilities a token
    (J Table 9, model 5)."""
    return _sentencewise(tok2vec, head_layer("emission", heads.Emission))


def sentences(docs: Iterable[Doc | Span]) -> list[Doc | Span]:
    """The sentences of docs, in order: spans where boundaries are set, else the doc
    itself; a span is one sentence."""
    found: list[Doc | Span] = []
    for doc in docs:
        if isinstance(doc, Doc) and doc.has_annotation("SENT_START"):
            found.extend(doc.sents)
        else:
            found.append(doc)
    return found


def listens(model: Model) -> bool:
    """Whether a model is fed by an upstream component, and so must be given whole docs."""
    return any(hasattr(node, "upstream_name") for node in model.walk())


def _sentencewise(tok2vec: Model, head: Model) -> Model:
    model: Model = Model(
        "sentencewise",
        _forward,
        init=_init,
        layers=[tok2vec, head],
        dims={"nO": None},
        refs={"tok2vec": tok2vec, "head": head},
    )
    return model


def _forward(
    model: Model, docs: list[Doc | Span], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    tok2vec, head = model.layers
    if not listens(tok2vec):
        vectors, embed_backprop = tok2vec(sentences(docs), is_train)
        potentials, head_backprop = head(vectors, is_train)
        return potentials, lambda d: embed_backprop(head_backprop(d))
    whole, embed_backprop = tok2vec(docs, is_train)
    parts = [[len(sentence) for sentence in sentences([doc])] for doc in docs]
    vectors = []
    for array, sizes in zip(whole, parts):
        vectors += model.ops.xp.split(array, numpy.cumsum(sizes)[:-1].tolist())
    potentials, head_backprop = head(vectors, is_train)

    def backprop(d_potentials: list[Floats2d]) -> Any:
        d_vectors = iter(head_backprop(d_potentials))
        return embed_backprop(
            [model.ops.xp.concatenate([next(d_vectors) for _ in sizes]) for sizes in parts]
        )

    return potentials, backprop


def _init(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    tok2vec, head = model.layers
    head.set_dim("nO", model.get_dim("nO"))
    vectors = None
    if X is not None:
        tok2vec.initialize(X=X)
        vectors = tok2vec.predict(X)
    elif tok2vec.has_dim("nO"):
        tok2vec.initialize()
        vectors = [model.ops.alloc2f(1, tok2vec.get_dim("nO"))]
    head.initialize(X=vectors)
