"""Heads over token vectors, sentence by sentence, and ensembles: Model[List[Doc], List[Floats2d]].

A doc is split into its sentences if it has sentence boundaries; otherwise it is one sentence. The
output has one array for each sentence.

A layer below may ask the head how uncertain it is of a token. The head is above the layer, so the
layer cannot call it: `DocsUnderHead` carry the head down, each time that docs go through the model.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.bridge.layers import split_rows
from spacy_psa.bridge.shim import TorchShim, shim_of
from spacy_psa.errors import InputError
from spacy_psa.sentences import Sentences, SplitDocs, sentence_bounds, split_sentences

ASKS = "asks_head"
"""The attribute of a model that asks the head; its value is the name of its architecture."""


class DocsUnderHead(list[Doc]):
    """Docs on their way to a model that asks the head above it."""

    def __init__(self, docs: Iterable[Doc], head: Model):
        super().__init__(docs)
        self.head = head

    def uncertainty(self, x: Tensor) -> Tensor:
        """Compute how uncertain the head is of the tag of each token: (N, d) -> (N,), 0 to 1.

        Without gradients. A head without weights, before initialization, counts as certain.
        """
        shim = shim_of(self.head)
        if shim._model is None:
            return x.new_zeros(len(x))
        module: Any = shim.module
        with torch.no_grad():
            share: Tensor = module.uncertainty(x.detach())
        return share


def uncertainty(docs: list[Doc], x: Tensor, architecture: str) -> Tensor:
    """Ask the head above how uncertain it is of each token, with vectors x (N, d): (N,), 0 to 1.

    The InputError without a head above names the `architecture` that asks.
    """
    if not isinstance(docs, DocsUnderHead):
        raise _misplaced(architecture)
    return docs.uncertainty(x)


def _check_asking(tok2vec: Model, head: Model) -> None:
    """Raise InputError unless a head can answer the model below it that asks.

    The model that asks must be the whole `tok2vec`; otherwise the head does not fit its vectors.
    """
    answers = any(hasattr(getattr(shim, "make", None), "uncertainty") for shim in head.shims)
    for node in tok2vec.walk():
        if ASKS in node.attrs and not (answers and node is tok2vec):
            raise _misplaced(node.attrs[ASKS])


def _misplaced(architecture: str) -> InputError:
    return InputError(
        f"{architecture}: max_uncertainty asks the head how uncertain it is of a token: put "
        f"{architecture} into the slot tok2vec of CRF.v1 or Softmax.v1, or set max_uncertainty to "
        "null"
    )


def has_boundaries(tok2vec: Model) -> bool:
    """Whether a model has rows for START and STOP around the tokens of each sentence."""
    shims = (shim for node in tok2vec.walk() for shim in node.shims)
    return any(isinstance(shim, TorchShim) and shim.cfg.get("boundaries") for shim in shims)


def check_one_row_a_token(name: str, tok2vec: Model) -> None:
    """Raise InputError, which names an architecture, if a model has rows for START and STOP."""
    if has_boundaries(tok2vec):
        raise InputError(f"{name}: boundaries = true is for ChartParser.v1: set it to false")


def listeners(model: Model) -> list[Any]:
    """Find the parts of a model that receive their vectors from an earlier component."""
    return [node for node in model.walk() if upstream_name(node) is not None]


def upstream_name(node: Model) -> str | None:
    """Return the component that a part of a model listens to, "*" for any; None for no listener.

    Listeners of spaCy and spacy-transformers have it as an attribute `upstream_name`, those of
    spacy-curated-transformers among their `attrs`.
    """
    name: str | None = getattr(node, "upstream_name", node.attrs.get("_upstream_name"))
    return name


def listens(model: Model) -> bool:
    """Whether a model must receive whole docs, because it listens to an earlier component.

    It is still so when spaCy's `replace_listeners` has put a copy of that component in its place,
    whose vectors may depend on the sentences around a sentence.
    """
    return any(node.attrs.get("whole_docs") for node in model.walk()) or bool(listeners(model))


def sentencewise(tok2vec: Model, head: Model) -> Model:
    """Put a head over token vectors, sentence by sentence.

    Args:
        tok2vec: computes the vectors of tokens. It gets sentences, or whole docs if it listens to
            an earlier component.
        head: Model[List[Floats2d], List[Floats2d]], as `head_layer` makes it.

    Returns:
        Model[List[Doc], List[Floats2d]] with one array for each sentence. Its nO must be set
        before initialization; the head gets the same nO.

    Raises:
        InputError: if a part of `tok2vec` asks the head, and the head cannot answer.
    """
    _check_asking(tok2vec, head)
    model: Model = Model(
        "sentencewise",
        _forward,
        init=_init,
        layers=[tok2vec, head],
        dims={"nO": None},
        refs={"tok2vec": tok2vec, "head": head},
        attrs={"whole_docs": part_for_whole_docs(tok2vec)},
    )
    return model


def part_for_whole_docs(tok2vec: Model) -> str:
    """Name the part that gets whole docs: "tok2vec", its "embed", or "" for none.

    A listener must get whole docs. An encoder over a listener gets sentences, so that it never
    looks across their bounds.
    """
    if not listens(tok2vec):
        return ""
    over = tok2vec.has_ref("encode") and not listens(tok2vec.get_ref("encode"))
    return "embed" if over else "tok2vec"


def _forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    tok2vec, head = model.layers
    if ASKS in tok2vec.attrs:
        docs = DocsUnderHead(docs, head)
    vectors, embed_backprop = sentence_vectors(tok2vec, model.attrs["whole_docs"], docs, is_train)
    potentials, head_backprop = head(vectors, is_train)
    return potentials, lambda d: embed_backprop(head_backprop(d))


def sentence_vectors(
    tok2vec: Model, whole_docs: str, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    """Compute the vectors of docs, an array for each sentence, and a callback for their gradients.

    `whole_docs` is the part of `tok2vec` that gets whole docs; see `part_for_whole_docs`.
    """
    if not whole_docs:
        return tok2vec(docs if isinstance(docs, Sentences) else split_sentences(docs), is_train)
    below, above = _around_the_split(tok2vec, whole_docs)
    whole, below_backprop = below(docs, is_train)
    parts = [[end - start for start, end in sentence_bounds(doc)] for doc in docs]
    xp = tok2vec.ops.xp
    vectors = []
    for array, sizes in zip(whole, parts):
        vectors += split_rows(array, sizes)
    backprops = []
    for layer in above:
        vectors, layer_backprop = layer(vectors, is_train)
        backprops.append(layer_backprop)

    def backprop(d_vectors: list[Floats2d]) -> Any:
        for layer_backprop in reversed(backprops):
            d_vectors = layer_backprop(d_vectors)
        rows = iter(d_vectors)
        return below_backprop([xp.concatenate([next(rows) for _ in s]) for s in parts])

    return vectors, backprop


def _around_the_split(tok2vec: Model, whole_docs: str) -> tuple[Model, list[Model]]:
    """Separate the layer that gets whole docs from the layers that get sentences."""
    if whole_docs == "embed":
        return tok2vec.get_ref("embed"), [tok2vec.get_ref("encode")]
    return tok2vec, []


def sentence_scores(model: Model, split: SplitDocs) -> Callable[[list[int]], list[Floats2d]]:
    """Prepare the prediction of a model for docs in pieces.

    The layers that must get whole docs are computed once, in this call.

    Args:
        model: a model that `sentencewise` made, or an ensemble of such models.

    Returns:
        A function from numbers of sentences to the arrays of these sentences.
    """
    if model.name == "ensemble":
        parts = [sentence_scores(layer, split) for layer in model.layers]
        return lambda numbers: mean_scores([part(numbers) for part in parts])
    if not model.attrs["whole_docs"]:
        return lambda numbers: model.predict(split.sentences.chosen(numbers))
    tok2vec, head = model.layers
    below, above = _around_the_split(tok2vec, model.attrs["whole_docs"])
    vectors: list[Floats2d] = []
    if not any(split.sizes):  # a transformer fails for a batch of docs without tokens
        return lambda numbers: []
    docs = DocsUnderHead(split.docs, head) if ASKS in tok2vec.attrs else split.docs
    for array, bounds in zip(below.predict(docs), split.bounds):
        vectors += [array[start:end] for start, end in bounds]

    def predict(numbers: list[int]) -> list[Floats2d]:
        arrays = [vectors[i] for i in numbers]
        for layer in (*above, head):
            arrays = layer.predict(arrays)
        return arrays

    return predict


def mean_scores(scores: list[list[Floats2d]]) -> list[Floats2d]:
    """Compute the mean of the arrays of several models, sentence by sentence."""
    return [sum(arrays[1:], arrays[0]) / len(arrays) for arrays in zip(*scores, strict=True)]


def _init(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    tok2vec, head = model.layers
    head.set_dim("nO", model.get_dim("nO"))
    vectors = None
    if X is not None:
        tok2vec.initialize(X=X)
        vectors = tok2vec.predict(DocsUnderHead(X, head) if ASKS in tok2vec.attrs else X)
    elif tok2vec.has_dim("nO"):
        tok2vec.initialize()
        vectors = [model.ops.alloc2f(1, tok2vec.get_dim("nO"))]
    head.initialize(X=vectors)


def ensemble(*models: Model[list[Doc], list[Floats2d]]) -> Model:
    """Build `Ensemble.v1`, the mean of the log potentials of several models.

    The mean of the log potentials of chains is that of a chain again: the geometric mean of their
    distributions, normalised over all analyses. The same holds for the scores of spans and the
    distribution over trees. So whatever is exact for one model is exact for several. `spacy-psa
    ensemble` makes an ensemble of trained pipelines.

    Args:
        models: models that `CRF.v1` or `Softmax.v1` has built, for the same tags; or models that
            `ChartParser.v1` has built, for the same labels, all with a tag head or all without; or
            models that `SpanScorer.v1` has built, for the same labels and with the same `longest`.

    Returns:
        Model[List[Doc], List[Floats2d]] with the arrays of the models.

    Raises:
        InputError: if there are no models.

    Examples:
        >>> import spacy
        >>> from spacy_psa.architectures.crf import crf
        >>> from spacy_psa.architectures.embed import word_embed
        >>> model = ensemble(crf(word_embed(width=8)), crf(word_embed(width=8)))
        >>> model.set_dim("nO", 5)
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> _ = model.initialize(X=[doc])
        >>> first, second = (part.predict([doc])[0] for part in model.layers)
        >>> bool((abs(model.predict([doc])[0] - (first + second) / 2) < 1e-6).all())
        True
    """
    if not models:
        raise InputError("Ensemble.v1 needs at least one model")
    return Model(
        "ensemble", _forward_ensemble, init=_init_ensemble, layers=list(models), dims={"nO": None}
    )


def _forward_ensemble(
    model: Model, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    scores, backprops = zip(*(layer(docs, is_train) for layer in model.layers))

    def backprop(gradients: list[Floats2d]) -> list[Any]:
        shares = [gradient / len(backprops) for gradient in gradients]
        for layer_backprop in backprops:
            layer_backprop(shares)
        return []

    return mean_scores(list(scores)), backprop


def _init_ensemble(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    for layer in model.layers:
        layer.set_dim("nO", model.get_dim("nO"))
        layer.initialize(X=X, Y=Y)
