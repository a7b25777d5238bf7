"""Attention weights of a trained encoder, and PSA's fusion gates (Wei2020 Table 13 and Fig 6,
Li2019 Fig 2 and 3).

For every encoder whose module has `inspect(x, lengths)`: a list of its attention
layers, each with `attention` of (B, n, n) or (B, heads, n, n) and, if it has one, a
`gate` of (N, d).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy
import torch
from numpy.typing import NDArray
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from thinc.api import xp2torch

from spacy_psa.errors import InputError
from spacy_psa.sentences import split_sentences


class Layer(NamedTuple):
    """One attention layer over one sentence of n tokens."""

    attention: NDArray[numpy.float32]
    """(n, n), or (heads, n, n): row i is where token i looks. A token that may not look at
    itself and is alone looks nowhere, its row is 0."""
    gate: NDArray[numpy.float32] | None = None
    """(n, d): lambda of Wei2020 Eq 13, the share of the token's own features; `gate.mean(1)` is
    the column of Wei2020 Table 13."""


class View(NamedTuple):
    """A sentence and its attention layers, bottom first."""

    sentence: Doc | Span
    layers: list[Layer]


def inspect(pipe: TrainablePipe, docs: Iterable[Doc]) -> list[View]:
    """What the encoder of a component (`crf_ner`, or spaCy's `tok2vec`, `ner`, ...)
    does with docs, sentence by sentence. Sentences without tokens are left out.

    Takes n * n memory for each sentence, layer and head.

    Errors: InputError where the component holds no encoder with attention of its own.
    """
    model = pipe.model.get_ref("tok2vec") if pipe.model.has_ref("tok2vec") else pipe.model
    embed, encode = model.maybe_get_ref("embed"), model.maybe_get_ref("encode")
    module = encode.shims[0].module if encode is not None and encode.shims else None
    if module is None or not hasattr(module, "inspect"):
        raise InputError(
            f"Component '{pipe.name}' has no encoder with attention (PSABiLSTM.v1, "
            "SelfAttentiveBiLSTM.v1, …) of its own: give the component that holds the "
            "encoder, e.g. 'tok2vec'"
        )
    module.eval()
    views = []
    for sentence in split_sentences(docs):
        if len(sentence):
            x = xp2torch(embed.predict([sentence])[0])
            with torch.inference_mode():
                seen = module.inspect(x, torch.tensor([len(sentence)]))
            views.append(View(sentence, [_layer(layer) for layer in seen]))
    return views


def _layer(seen: Any) -> Layer:
    gate = getattr(seen, "gate", None)
    return Layer(seen.attention[0].cpu().numpy(), None if gate is None else gate.cpu().numpy())
