"""Reads the attention weights of a trained encoder, and the fusion gates of PSA.

Wei2020 (Table 13 and Fig. 6) and Li2019 (Figs. 2 and 3) show them. The module of the encoder must
have a method `inspect(x, lengths)` that returns its attention layers. Each of these has an
`attention` of (B, n, n) or (B, heads, n, n), and may have a `gate` of (N, d).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy
import torch
from numpy.typing import NDArray
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from thinc.api import xp2torch

from spacy_psa.architectures.sentencewise import listens
from spacy_psa.errors import InputError
from spacy_psa.sentences import SplitDocs


class Layer(NamedTuple):
    """An attention layer over a sentence of n tokens."""

    attention: NDArray[numpy.float32]
    """The attention weights (n, n), or (heads, n, n).

    Row i has the weights of the tokens that token i attends to. It is 0 for the only token of a
    sentence if it may not attend to itself.
    """
    gate: NDArray[numpy.float32] | None = None
    """The share of a token's own features (n, d), lambda of Wei2020 Eq. 13; None without a gate.

    `gate.mean(1)` is the column of Wei2020 Table 13.
    """


class View(NamedTuple):
    """A sentence and its attention layers, the lowest first."""

    sentence: Doc | Span
    layers: list[Layer]


def inspect(pipe: TrainablePipe, docs: Iterable[Doc]) -> list[View]:
    """Read the attention of a component's encoder over each sentence of some docs.

    Sentences without tokens are left out. The memory is n * n numbers for each sentence, layer and
    head.

    Args:
        pipe: the component that holds the encoder, such as a `crf_ner`, or spaCy's `tok2vec` or
            `ner`.
        docs: the docs.

    Raises:
        InputError: if the component holds no encoder with attention of its own, or several.

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> ner = nlp.add_pipe(
        ...     "crf_ner", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}}
        ... )
        >>> ner.add_label("PER")
        1
        >>> optimizer = nlp.initialize()
        >>> (view,) = inspect(ner, [nlp.make_doc("Ada met Bob")])
        >>> [layer.attention.shape for layer in view.layers]
        [(3, 3), (3, 3)]
    """
    if pipe.model.name == "ensemble":
        raise InputError(
            f"Component '{pipe.name}' is an ensemble and has several encoders: use one of the "
            "pipelines that were joined"
        )
    model = pipe.model
    while (inner := model.maybe_get_ref("tok2vec")) is not None:
        model = inner
    embed, encode = model.maybe_get_ref("embed"), model.maybe_get_ref("encode")
    module = encode.shims[0].module if encode is not None and encode.shims else None
    if module is None or not hasattr(module, "inspect"):
        raise InputError(
            f"Component '{pipe.name}' holds no encoder with attention (PSABiLSTM.v1, "
            "SelfAttentiveBiLSTM.v1, TENER.v1, …) of its own: choose one that does; where it "
            "listens to another component, choose that one (--pipe)"
        )
    module.eval()
    views = []
    split = SplitDocs(docs)
    # A listener has the vectors of whole docs.
    inputs = (
        split.docs
        if listens(embed)
        else [sentence for sentence in split.sentences if len(sentence)]
    )
    if not any(split.sizes):
        return []
    with torch.inference_mode():
        rows = torch.cat([xp2torch(array) for array in embed.predict(inputs)])
        for sentence, x in zip(split.sentences, rows.split(split.sizes), strict=True):
            if len(sentence):
                seen = module.inspect(x, torch.tensor([len(sentence)]))
                views.append(View(sentence, [_layer(layer) for layer in seen]))
    return views


def _layer(seen: Any) -> Layer:
    gate = getattr(seen, "gate", None)
    return Layer(seen.attention[0].cpu().numpy(), None if gate is None else gate.cpu().numpy())
