"""`DocumentMemory.v1`: token vectors that know the other occurrences of their word.

It stands around any model that gives token vectors, in the slot `tok2vec` of a component.
"""

from collections.abc import Callable
from typing import Any

import numpy
import torch
from spacy.tokens import Doc
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import Floats2d

from spacy_psa.architectures.sentencewise import (
    check_one_row_a_token,
    part_for_whole_docs,
    sentence_vectors,
)
from spacy_psa.bridge.architecture import on_meta
from spacy_psa.bridge.layers import shim_of
from spacy_psa.bridge.shim import TorchShim
from spacy_psa.errors import check_sizes, naming
from spacy_psa.modules.document_memory import DocumentMemory, Scoring
from spacy_psa.modules.occurrences import nearest_occurrences
from spacy_psa.modules.precision import Precision
from spacy_psa.ragged import batches_by_size
from spacy_psa.sentences import document_numbers, split_sentences

TOKENS = 10_000
"""Tokens, padding included, that go through the sentence encoder together in annotation."""


def document_memory(
    tok2vec: Model[list[Doc], list[Floats2d]],
    occurrences: int = 20,
    width: int = 128,
    scoring: Scoring = "attention",
    dropout: float = 0.3,
    precision: Precision = "float32",
) -> Model:
    """Build `DocumentMemory.v1`, which lets a token see the other occurrences of its word.

    The sentences of a document go through `tok2vec` one by one. Then each token attends to the
    vectors of the other tokens of the document with the same lower-cased word. See
    `spacy_psa.modules.document_memory`.

    A document is a Doc, whose sentence boundaries an earlier component or the corpus has set.
    Docs that follow each other with the same `doc.user_data["document"]` are one document too.

    Args:
        tok2vec: gives a vector for each token of a sentence. It gets whole docs if it listens to
            an earlier component.
        occurrences: the most occurrences that a token attends to; the nearest ones are taken.
        width: the width of queries, keys and values.
        scoring: "attention", or "mean" to weigh all occurrences alike.
        dropout: dropout rate on what a token takes from the others.
        precision: "float32", or "bfloat16" for the products of the memory in it. `tok2vec` has its
            own.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array for each doc, as wide as that of `tok2vec`.

    Raises:
        InputError: for settings that `DocumentMemory` does not take, and if `tok2vec` gives rows
            for START and STOP (`boundaries = true`).

    Examples:
        >>> import spacy
        >>> from spacy.ml.models.tok2vec import build_hash_embed_cnn_tok2vec
        >>> tok2vec = build_hash_embed_cnn_tok2vec(
        ...     width=8, depth=1, embed_size=50, window_size=1, maxout_pieces=2,
        ...     subword_features=False, pretrained_vectors=None,
        ... )  # fmt: skip
        >>> model = document_memory(tok2vec, width=4)
        >>> doc = spacy.blank("en")("Ada met Bob . Bob left")
        >>> model.initialize(X=[doc]).predict([doc])[0].shape
        (6, 8)
    """
    settings = {
        "width": width,
        "scoring": scoring,
        "dropout": dropout,
        "precision": precision,
    }
    with naming("DocumentMemory.v1"):
        check_sizes(occurrences=occurrences)
        on_meta(DocumentMemory, input_width=1, **settings)
    check_one_row_a_token("DocumentMemory.v1", tok2vec)
    model: Model = Model(
        "document_memory",
        _forward,
        init=_init,
        layers=[tok2vec],
        shims=[TorchShim(DocumentMemory, settings)],
        dims={"nO": tok2vec.get_dim("nO") if tok2vec.has_dim("nO") else None},
        refs={"tok2vec": tok2vec},
        # Components read from `whole_docs` that this model must get whole docs.
        attrs={
            "whole_docs": "tok2vec",
            "whole_docs_below": part_for_whole_docs(tok2vec),
            "occurrences": occurrences,
        },
    )
    return model


def _forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    sizes = [len(doc) for doc in docs]
    if not sum(sizes):
        width = model.get_dim("nO")
        return [model.ops.alloc2f(0, width) for _ in docs], lambda d_vectors: []
    vectors, below_backprop = _below(model, docs, is_train)
    parts = [len(array) for array in vectors]
    shim = shim_of(model)
    x = xp2torch(
        model.ops.xp.concatenate([array for array in vectors if len(array)]),
        requires_grad=is_train,
        device=shim.device,
    )
    places = torch.from_numpy(_occurrences(model, docs)).to(x.device)
    output, torch_backprop = shim((x, places), is_train)
    ends = numpy.cumsum(sizes)[:-1].tolist()

    def backprop(d_vectors: list[Floats2d]) -> Any:
        d_output = xp2torch(model.ops.xp.concatenate(d_vectors), device=shim.device)
        d_x = torch_backprop(d_output)[0]
        assert d_x is not None
        inner = numpy.cumsum(parts)[:-1].tolist()
        return below_backprop(model.ops.xp.split(torch2xp(d_x), inner))

    return model.ops.xp.split(torch2xp(output.detach()), ends), backprop


def _below(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    """Compute the vectors of each sentence; in annotation, sentences of like length together."""
    [tok2vec] = model.layers
    whole = model.attrs["whole_docs_below"]
    if is_train or whole:
        return sentence_vectors(tok2vec, whole, docs, is_train)
    sentences = split_sentences(docs)
    found = [model.ops.alloc2f(0, model.get_dim("nO")) for _ in sentences]
    for batch in batches_by_size([len(sentence) for sentence in sentences], TOKENS):
        for place, array in zip(batch, tok2vec.predict(sentences.chosen(batch)), strict=True):
            found[place] = array
    return found, lambda d_vectors: []


def _occurrences(model: Model, docs: list[Doc]) -> numpy.ndarray:
    """Find the nearest occurrences of each token's word in its document: (N, k) int64."""
    words = numpy.concatenate([doc.to_array("LOWER") for doc in docs])
    documents = numpy.repeat(document_numbers(docs), [len(doc) for doc in docs])
    return nearest_occurrences(words, documents, model.attrs["occurrences"])


def _init(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    [tok2vec] = model.layers
    if X is not None and not model.attrs["whole_docs_below"]:
        X = split_sentences(X)
    tok2vec.initialize(X=X)
    width = tok2vec.get_dim("nO")
    model.set_dim("nO", width)
    shim_of(model).build(input_width=width)
