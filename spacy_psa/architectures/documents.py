"""Layers over whole documents: `DocumentMemory.v1` and `SentenceContext.v1`.

They are put around any model of token vectors, in the slot `tok2vec` of a component. That model
computes the vectors sentence by sentence, and the layer then sees all of a document. A document is
a Doc, whose sentence boundaries an earlier component or the corpus has set. Docs that follow each
other with the same `doc.user_data["document"]` are also one document.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
import torch
from spacy.tokens import Doc
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import Floats2d
from torch import Tensor, nn

from spacy_psa.architectures.sentencewise import (
    ASKS,
    check_one_row_a_token,
    part_for_whole_docs,
    sentence_vectors,
    uncertainty,
)
from spacy_psa.bridge.architecture import on_meta
from spacy_psa.bridge.layers import join_rows, split_rows
from spacy_psa.bridge.shim import TorchShim, shim_of
from spacy_psa.errors import InputError, check_rates, check_sizes, naming
from spacy_psa.modules.documents import (
    DocumentMemory,
    Scoring,
    SentenceContext,
    nearby_sentences,
    nearest_occurrences,
    without,
)
from spacy_psa.modules.products import Precision
from spacy_psa.ragged import batches_by_size
from spacy_psa.sentences import document_numbers, sentence_bounds, split_sentences

TOKENS = 10_000
"""Tokens, padding included, that go through the sentence encoder together in annotation."""
FLAGS: list[int | str] = ["IS_PUNCT", "IS_STOP", "IS_LOWER"]
"""The attributes of a token that `content_words` reads."""
MEMORY = "DocumentMemory.v1"
Tok2Vec = Model[list[Doc], list[Floats2d]]
Places = Callable[[list[Doc], Tensor], tuple[Tensor, ...]]


def document_memory(
    tok2vec: Tok2Vec,
    occurrences: int = 20,
    width: int = 128,
    scoring: Scoring = "attention",
    dropout: float = 0.3,
    precision: Precision = "float32",
    content_words: bool = False,
    memory_dropout: float = 0.0,
    max_uncertainty: float | None = None,
) -> Model:
    """Build `DocumentMemory.v1`, which lets a token see the other occurrences of its word.

    The sentences of a document go through `tok2vec` one by one. Then each token attends to the
    vectors of the other tokens of the document with the same lower-cased word. See the module
    `DocumentMemory` for the equations, and for `memory_dropout`, with which the model also learns
    to annotate single sentences.

    Args:
        tok2vec: computes a vector for each token of a sentence. It gets whole docs if it listens to
            an earlier component.
        occurrences: the most occurrences that a token attends to; the nearest ones are used.
        precision: of the products of the memory: "float32", "bfloat16", or "auto" for bfloat16 if
            the processor has instructions for it. `tok2vec` has its own.
        content_words: whether punctuation and the language's stop words in lower case keep their
            vectors from `tok2vec`, and do not count as occurrences for others.
        max_uncertainty: leaves out the occurrences whose tags are more uncertain than that; null
            for none. The head above, of `CRF.v1` or `Softmax.v1`, scores the tags of a token by
            its vector from `tok2vec`. Its uncertainty is the entropy of the tags as a share of
            log K, for K tags: 0 if one tag is certain, 1 if all are equally probable. See
            `spacy_psa.modules.chain_potentials`.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array for each doc, as wide as that of `tok2vec`.

    Raises:
        InputError: for a setting out of its range, and if `tok2vec` has rows for START and STOP
            (`boundaries = true`). With `max_uncertainty`, if the model is not in the slot `tok2vec`
            of `CRF.v1` or `Softmax.v1`.

    Examples:
        >>> import spacy
        >>> from spacy_psa.architectures.embed import word_embed
        >>> model = document_memory(word_embed(width=8), width=4)
        >>> doc = spacy.blank("en")("Ada met Bob . Bob left")
        >>> model.initialize(X=[doc]).predict([doc])[0].shape
        (6, 8)
    """
    with naming(MEMORY):
        check_sizes(occurrences=occurrences)
        if max_uncertainty is not None:
            check_rates(max_uncertainty=max_uncertainty)
    settings = {
        "width": width,
        "scoring": scoring,
        "dropout": dropout,
        "precision": precision,
        "memory_dropout": memory_dropout,
    }
    places = partial(
        _occurrences,
        most=occurrences,
        content_words=content_words,
        max_uncertainty=max_uncertainty,
    )
    model = documentwise("document_memory", MEMORY, tok2vec, DocumentMemory, settings, places)
    if max_uncertainty is not None:
        model.attrs[ASKS] = MEMORY
    return model


def sentence_context(
    tok2vec: Tok2Vec,
    window: int = 2,
    width: int = 128,
    scoring: Scoring = "attention",
    dropout: float = 0.3,
    precision: Precision = "float32",
) -> Model:
    """Build `SentenceContext.v1`, which shows a token the subject of the sentences around it.

    The sentences of a document go through `tok2vec` one by one. The mean of the vectors of its
    tokens stands for a sentence. Each sentence attends to itself and to its neighbours in the
    document, and a gate mixes the result into each token. See the module `SentenceContext` for the
    equations. `DocumentMemory.v1` may be its `tok2vec`.

    Args:
        tok2vec: computes a vector for each token of a sentence. It gets whole docs if it listens to
            an earlier component.
        window: how many sentences on each side a sentence attends to; 0 for only itself.
        precision: of the products of this layer: "float32", "bfloat16", or "auto" for bfloat16 if
            the processor has instructions for it. `tok2vec` has its own.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array for each doc, as wide as that of `tok2vec`.

    Raises:
        InputError: for a setting out of its range, and if `tok2vec` has rows for START and STOP
            (`boundaries = true`).

    Examples:
        >>> import spacy
        >>> from spacy_psa.architectures.embed import word_embed
        >>> model = sentence_context(word_embed(width=8), width=4)
        >>> doc = spacy.blank("en")("Ada met Bob . Bob left")
        >>> model.initialize(X=[doc]).predict([doc])[0].shape
        (6, 8)
    """
    name = "SentenceContext.v1"
    with naming(name):
        check_sizes(least=0, window=window)
    settings = {"width": width, "scoring": scoring, "dropout": dropout, "precision": precision}
    places = partial(_neighbours, window=window)
    return documentwise("sentence_context", name, tok2vec, SentenceContext, settings, places)


def documentwise(
    name: str,
    architecture: str,
    tok2vec: Tok2Vec,
    module: type[nn.Module],
    settings: dict[str, Any],
    places: Places,
) -> Model:
    """Put a torch module over token vectors, document by document.

    Args:
        module: a function of the vectors of all tokens, (N, d), and the result of `places`, which
            returns (N, d).
        settings: the arguments of the module but for `input_width`.
        places: finds where the tokens of some docs are, from the docs, of which at least one has a
            token, and the vectors of their tokens, (N, d).

    Raises:
        InputError: for settings that the module refuses, and if `tok2vec` has rows for START and
            STOP. In initialization, if the model is in a place where vectors come in, such as
            `encode`.
    """
    with naming(architecture):
        on_meta(module, input_width=1, **settings)
    check_one_row_a_token(architecture, tok2vec)
    model: Model = Model(
        name,
        partial(_forward, places=places),
        init=partial(_init, architecture=architecture),
        layers=[tok2vec],
        shims=[TorchShim(module, settings)],
        dims={"nO": tok2vec.get_dim("nO") if tok2vec.has_dim("nO") else None},
        refs={"tok2vec": tok2vec},
        # Components read from `whole_docs` that this model must get whole docs.
        attrs={"whole_docs": "tok2vec", "whole_docs_below": part_for_whole_docs(tok2vec)},
    )
    return model


def sees_documents(model: Model) -> bool:
    """Whether a part of a model sees all of a document, of which a doc may be one sentence."""
    return any("whole_docs_below" in node.attrs for node in model.walk())


def _forward(
    model: Model, docs: list[Doc], is_train: bool, places: Places
) -> tuple[list[Floats2d], Callable]:
    sizes = [len(doc) for doc in docs]
    if not sum(sizes):
        width = model.get_dim("nO")
        return [model.ops.alloc2f(0, width) for _ in docs], lambda d_vectors: []
    vectors, below_backprop = _below(model, docs, is_train)
    xp, shim = model.ops.xp, shim_of(model)
    device = shim.device
    rows = join_rows(xp, [array for array in vectors if len(array)])
    x = xp2torch(rows, requires_grad=is_train, device=device)
    output, torch_backprop = shim((x, *places(docs, x)), is_train)
    parts = [len(array) for array in vectors]

    def backprop(d_vectors: list[Floats2d]) -> Any:
        d_output = xp2torch(join_rows(xp, d_vectors), device=device)
        d_x = torch_backprop(d_output)[0]
        assert d_x is not None
        return below_backprop(split_rows(torch2xp(d_x), parts))

    return split_rows(torch2xp(output.detach()), sizes), backprop


def _below(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    """Compute the vectors of each sentence; in annotation, sentences of like length together."""
    [tok2vec] = model.layers
    whole = model.attrs["whole_docs_below"]
    if is_train or whole:
        return sentence_vectors(tok2vec, whole, docs, is_train)
    sentences = split_sentences(docs)
    vectors = [model.ops.alloc2f(0, model.get_dim("nO")) for _ in sentences]
    for batch in batches_by_size([len(sentence) for sentence in sentences], TOKENS):
        for place, array in zip(batch, tok2vec.predict(sentences.chosen(batch)), strict=True):
            vectors[place] = array
    return vectors, lambda d_vectors: []


def _init(model: Model, X: list[Doc] | None = None, Y: Any = None, *, architecture: str) -> None:
    [tok2vec] = model.layers
    if X and not isinstance(X[0], Doc):
        raise InputError(
            f"{architecture} needs docs, not the vectors that come to `encode`: put it around the "
            "whole tok2vec, with `embed` and `encode` in its own `tok2vec`"
        )
    if X is not None and not model.attrs["whole_docs_below"]:
        X = split_sentences(X)
    tok2vec.initialize(X=X)
    width = tok2vec.get_dim("nO")
    model.set_dim("nO", width)
    shim_of(model).build(input_width=width)


def _occurrences(
    docs: list[Doc], x: Tensor, most: int, content_words: bool, max_uncertainty: float | None
) -> tuple[Tensor]:
    """Find the nearest occurrences of each token's word in its document: (N, k) int64."""
    words = numpy.concatenate([doc.to_array("LOWER") for doc in docs])
    documents = numpy.repeat(document_numbers(docs), [len(doc) for doc in docs])
    if content_words:
        flags = numpy.concatenate([doc.to_array(FLAGS) for doc in docs])
        punctuation, stop, lower = flags.astype(bool).T
        out = numpy.flatnonzero(punctuation | (stop & lower))
        documents[out] = -1 - numpy.arange(len(out))  # a document of its own for each
    nearest = nearest_occurrences(words, documents, most)
    if max_uncertainty is not None:
        uncertain = uncertainty(docs, x, MEMORY) > max_uncertainty
        nearest = without(nearest, uncertain.cpu().numpy())
    return (torch.from_numpy(nearest),)


def _neighbours(docs: list[Doc], x: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """Find the length of each sentence, (S,), and its neighbours, (S, 2 * window + 1)."""
    bounds = [sentence_bounds(doc) for doc in docs]
    lengths = numpy.array([end - start for own in bounds for start, end in own])
    documents = numpy.repeat(document_numbers(docs), [len(own) for own in bounds])
    filled = lengths > 0  # a doc without tokens counts as one sentence
    near = nearby_sentences(documents[filled], window)
    return torch.from_numpy(lengths[filled]), torch.from_numpy(near)
