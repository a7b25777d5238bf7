"""Attention weights and fusion gates of a trained PSA encoder (J Table 13, Fig 6)."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy
import torch
from numpy.typing import NDArray
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from thinc.api import xp2torch

from spacy_psa.architectures.heads import sentences
from spacy_psa.errors import InputError
from spacy_psa.modules.psa_bilstm import PSABiLSTM


class Layer(NamedTuple):
    """One attention layer over one sentence of n tokens."""

    attention: NDArray[numpy.float32]
    """(n, n): row i is where token i looks; a token alone looks nowhere, its row is 0."""
    gate: NDArray[numpy.float32]
    """(n, d): lambda of J Eq 13, the share of the token's own features; `gate.mean(1)` is
    the column of J Table 13."""


class View(NamedTuple):
    """A sentence and its attention layers, bottom first."""

    sentence: Doc | Span
    layers: list[Layer]


def inspect(pipe: TrainablePipe, docs: Iterable[Doc]) -> list[View]:
    """What the PSA encoder of a component (`crf_ner`, or spaCy's `tok2vec`, `ner`, ...)
    does with docs, sentence by sentence. Sentences without tokens are left out.

    Takes n * n memory for each sentence and layer.

    Errors: InputError where the component holds no PSABiLSTM.v1 of its own.
    """
    model = pipe.model.get_ref("tok2vec") if pipe.model.has_ref("tok2vec") else pipe.model
    embed, encode = model.maybe_get_ref("embed"), model.maybe_get_ref("encode")
    module = encode.shims[0].module if encode is not None and encode.shims else None
    if not isinstance(module, PSABiLSTM):
        raise InputError(
            f"Component '{pipe.name}' has no PSABiLSTM.v1 encoder of its own: "
            "give the component that holds the encoder, e.g. 'tok2vec'"
        )
    module.eval()
    views = []
    for sentence in sentences(docs):
        if len(sentence):
            x = xp2torch(embed.predict([sentence])[0])
            with torch.inference_mode():
                seen = module.inspect(x, torch.tensor([len(sentence)]))
            layers = [Layer(s.attention[0].cpu().numpy(), s.gate.cpu().numpy()) for s in seen]
            views.append(View(sentence, layers))
    return views
