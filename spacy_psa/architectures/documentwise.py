"""Puts a layer over the sentences of whole documents: Model[List[Doc], List[Floats2d]].

A model below it gives token vectors, sentence by sentence. The layer then sees all of a document.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
from spacy.tokens import Doc
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import Floats2d
from torch import Tensor, nn

from spacy_psa.architectures.sentencewise import (
    check_one_row_a_token,
    part_for_whole_docs,
    sentence_vectors,
)
from spacy_psa.bridge.architecture import on_meta
from spacy_psa.bridge.layers import join_rows, shim_of
from spacy_psa.bridge.shim import TorchShim
from spacy_psa.errors import InputError, naming
from spacy_psa.ragged import batches_by_size
from spacy_psa.sentences import split_sentences

TOKENS = 10_000
"""Tokens, padding included, that go through the sentence encoder together in annotation."""
Places = Callable[[list[Doc], Tensor], tuple[Tensor, ...]]


def documentwise(
    name: str,
    architecture: str,
    tok2vec: Model[list[Doc], list[Floats2d]],
    module: type[nn.Module],
    settings: dict[str, Any],
    places: Places,
) -> Model:
    """Put a torch module over token vectors, document by document.

    Args:
        name: the name of the model.
        architecture: the name of its architecture, for errors.
        tok2vec: gives a vector for each token of a sentence. It gets whole docs if it listens to
            an earlier component.
        module: takes the vectors of all tokens, (N, d), and what `places` gives -> (N, d).
        settings: the arguments of the module but for `input_width`.
        places: tells the module where the tokens of some docs stand. It gets the docs, of which at
            least one has a token, and the vectors of their tokens, (N, d).

    Returns:
        Model[List[Doc], List[Floats2d]] with an array for each doc, as wide as that of `tok2vec`.

    Raises:
        InputError: for settings that the module does not take, and if `tok2vec` gives rows for
            START and STOP (`boundaries = true`). In initialization, if the model stands where
            vectors come in, such as `encode`.
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
    """Whether a part of a model sees all of a document, of which a doc may be one sentence.

    Args:
        model: any thinc model.
    """
    return any("whole_docs_below" in node.attrs for node in model.walk())


def _forward(
    model: Model, docs: list[Doc], is_train: bool, places: Places
) -> tuple[list[Floats2d], Callable]:
    sizes = [len(doc) for doc in docs]
    if not sum(sizes):
        width = model.get_dim("nO")
        return [model.ops.alloc2f(0, width) for _ in docs], lambda d_vectors: []
    vectors, below_backprop = _below(model, docs, is_train)
    parts = [len(array) for array in vectors]
    shim = shim_of(model)
    x = xp2torch(
        join_rows(model.ops.xp, [array for array in vectors if len(array)]),
        requires_grad=is_train,
        device=shim.device,
    )
    output, torch_backprop = shim((x, *places(docs, x)), is_train)
    ends = numpy.cumsum(sizes)[:-1].tolist()

    def backprop(d_vectors: list[Floats2d]) -> Any:
        d_output = xp2torch(join_rows(model.ops.xp, d_vectors), device=shim.device)
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


def _init(model: Model, X: list[Doc] | None = None, Y: Any = None, *, architecture: str) -> None:
    [tok2vec] = model.layers
    if X and not isinstance(X[0], Doc):
        raise InputError(
            f"{architecture} takes docs, not the vectors that come to `encode`: put it around the "
            "whole tok2vec, with `embed` and `encode` in its own `tok2vec`"
        )
    if X is not None and not model.attrs["whole_docs_below"]:
        X = split_sentences(X)
    tok2vec.initialize(X=X)
    width = tok2vec.get_dim("nO")
    model.set_dim("nO", width)
    shim_of(model).build(input_width=width)
