"""Sentences of a document, and models over them."""

import math
from collections.abc import Callable
from typing import Any

import torch
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import Model
from torch import Tensor, nn

from tests.helpers.pipelines import small_model
from tests.helpers.words import docs_of

LINES = ["Ada met Babbage in Leeds .", "The ada class sailed .", "Leeds saw Ada", "Nobody came"]


def make_tok2vec(**options: Any) -> Model:
    """A small model that gives token vectors."""
    return registry.resolve({"model": small_model(**options)["tok2vec"]})["model"]


def initialized(
    layer: Callable[..., Model],
    vocab: Vocab,
    below: Model | None = None,
    seed: int = 0,
    **settings: Any,
) -> Model:
    """A layer over the sentences, around a small model or another one; it has met their words."""
    torch.manual_seed(seed)
    model = layer(below or make_tok2vec(), width=4, dropout=0.0, **settings)
    docs = docs_of(vocab, *LINES)
    model.initialize(X=docs)
    model.begin_update(docs)
    return model


def linear(layer: nn.Linear, v: Tensor) -> Tensor:
    """A linear layer by its formula."""
    return layer.weight @ v + (0 if layer.bias is None else layer.bias)


def read_one_by_one(module: Any, query: Tensor, others: list[Tensor]) -> Tensor:
    """The mean of some vectors for a query, by the formulas of `DocumentAttention`."""
    scores = [query @ linear(module.key, other) / math.sqrt(len(query)) for other in others]
    if module.scoring == "mean":
        scores = [torch.zeros_like(score) for score in scores]
    weights = torch.softmax(torch.stack(scores), 0)
    return sum(w * linear(module.value, other) for w, other in zip(weights, others, strict=True))
