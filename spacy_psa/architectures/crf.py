"""Heads: token vectors to potentials, Model[List[Doc], List[Floats2d]].

A doc is taken sentence by sentence where its sentence boundaries are set, else
whole. The output has one array for each sentence.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args

import numpy
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from spacy_psa.bridge import head_layer
from spacy_psa.errors import InputError
from spacy_psa.modules import chain_potentials as heads

Kind = Literal["label_pair", "transition"]
Bounds = list[tuple[int, int]]  # the first token of each sentence and the one after its last
EMBEDDED: list[int | str] = ["NORM", "TAG", "POS", "MORPH", "LEMMA"]  # of tokens, not of words


def crf(tok2vec: Model[list[Doc], list[Floats2d]], potentials: Kind = "label_pair") -> Model:
    """`CRF.v1`: log potentials of a linear chain, K * K a token (see `modules.heads`).

    potentials: "label_pair" gives every pair of tags a weight vector (J Eq 2);
    "transition" is emission plus transition, smaller for many labels.

    Errors: InputError for an unknown kind.
    """
    kinds = {"label_pair": heads.LabelPair, "transition": heads.EmissionTransition}
    if potentials not in kinds:
        raise InputError(f"CRF.v1: potentials is {potentials!r}: take one of {get_args(Kind)}")
    _one_row_a_token("CRF.v1", tok2vec)
    return sentencewise(tok2vec, head_layer(potentials, kinds[potentials]))


def softmax(tok2vec: Model[list[Doc], list[Floats2d]]) -> Model:
    """`Softmax.v1`: tags independent of each other, K log probabilities a token
    (J Table 9, model 5)."""
    _one_row_a_token("Softmax.v1", tok2vec)
    return sentencewise(tok2vec, head_layer("emission", heads.Emission))


def has_boundaries(tok2vec: Model) -> bool:
    """Whether a model gives rows for START and STOP around the tokens of each sentence."""
    return any(node.attrs.get("boundaries") for node in tok2vec.walk())


def _one_row_a_token(name: str, tok2vec: Model) -> None:
    if has_boundaries(tok2vec):
        raise InputError(f"{name}: boundaries = true is for ChartParser.v1: set it to false")


def sentence_bounds(doc: Doc) -> Bounds:
    """Where the sentences of a doc begin and end; it is one where no boundaries are set,
    or where it is empty."""
    # To spaCy a doc without tokens has every annotation, and no sentence.
    if len(doc) and doc.has_annotation("SENT_START"):
        return [(sentence.start, sentence.end) for sentence in doc.sents]
    return [(0, len(doc))]


def sentences(docs: Iterable[Doc]) -> list[Doc]:
    """The sentences of docs, in order, as docs with the token attributes that embedders
    read; a doc of one sentence is taken as it is."""
    found: list[Doc] = []
    for doc in docs:
        bounds = sentence_bounds(doc)
        found += [doc] if len(bounds) == 1 else _split(doc, bounds)
    return found


def _split(doc: Doc, bounds: Bounds) -> list[Doc]:
    # Not spans, which spaCy's own embedders do not take, nor Span.as_doc, which is slow.
    words = [token.text for token in doc]
    spaces = [bool(token.whitespace_) for token in doc]
    attributes = doc.to_array(EMBEDDED)
    parts = []
    for start, end in bounds:
        part = Doc(doc.vocab, words=words[start:end], spaces=spaces[start:end])
        parts.append(part.from_array(EMBEDDED, attributes[start:end]))  # type: ignore[arg-type]
    return parts


def listens(model: Model) -> bool:
    """Whether a model is fed by an upstream component, and so must be given whole docs."""
    return any(hasattr(node, "upstream_name") for node in model.walk())


def sentencewise(tok2vec: Model, head: Model) -> Model:
    """A head over token vectors, sentence by sentence. `tok2vec` takes sentences, or whole
    docs where it listens to an upstream component."""
    model: Model = Model(
        "sentencewise",
        _forward,
        init=_init,
        layers=[tok2vec, head],
        dims={"nO": None},
        refs={"tok2vec": tok2vec, "head": head},
    )
    return model


def _forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    tok2vec, head = model.layers
    if not listens(tok2vec):
        vectors, embed_backprop = tok2vec(sentences(docs), is_train)
        potentials, head_backprop = head(vectors, is_train)
        return potentials, lambda d: embed_backprop(head_backprop(d))
    below, above = _around_the_split(tok2vec, head)
    whole, below_backprop = below(docs, is_train)
    parts = [[end - start for start, end in sentence_bounds(doc)] for doc in docs]
    vectors = []
    for array, sizes in zip(whole, parts):
        vectors += model.ops.xp.split(array, numpy.cumsum(sizes)[:-1].tolist())
    backprops = []
    for layer in above:
        vectors, layer_backprop = layer(vectors, is_train)
        backprops.append(layer_backprop)

    def backprop(d_vectors: list[Floats2d]) -> Any:
        for layer_backprop in reversed(backprops):
            d_vectors = layer_backprop(d_vectors)
        rows = iter(d_vectors)
        return below_backprop([model.ops.xp.concatenate([next(rows) for _ in s]) for s in parts])

    return vectors, backprop


def _around_the_split(tok2vec: Model, head: Model) -> tuple[Model, list[Model]]:
    """What sees whole docs, as listeners must, and what sees the sentences: an encoder
    over a listener too, so that it never looks across their bounds."""
    if tok2vec.has_ref("encode") and not listens(tok2vec.get_ref("encode")):
        return tok2vec.get_ref("embed"), [tok2vec.get_ref("encode"), head]
    return tok2vec, [head]


def sentence_scores(model: Model, docs: list[Doc]) -> Callable[[list[int]], list[Floats2d]]:
    """Prediction in pieces: a function from numbers of the docs' sentences to their arrays.

    model: that `sentencewise` made. What must see whole docs is computed once, at the call.
    """
    tok2vec, head = model.layers
    if not listens(tok2vec):
        parts = sentences(docs)
        return lambda numbers: model.predict([parts[i] for i in numbers])
    below, above = _around_the_split(tok2vec, head)
    vectors: list[Floats2d] = []
    for array, doc in zip(below.predict(docs), docs):
        vectors += [array[start:end] for start, end in sentence_bounds(doc)]

    def predict(numbers: list[int]) -> list[Floats2d]:
        arrays = [vectors[i] for i in numbers]
        for layer in above:
            arrays = layer.predict(arrays)
        return arrays

    return predict


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
