"""Adds labels to the trained head of a component, which keeps its weights for the others."""

from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from thinc.api import Model
from thinc.shims.shim import Shim
from torch import Tensor, nn

from spacy_psa.architectures.chart import SPAN_SCORES, SPANS_AND_TAGS
from spacy_psa.architectures.crf import find_heads
from spacy_psa.architectures.span_scorer import SPAN_SCORER
from spacy_psa.bridge.shim import shim_of
from spacy_psa.structs.pair_chain import TagPairs

IMPROBABLE = -5.0
"""The score of a new label or tag, or of a pair with one, before it is learned."""


def add_tags(model: Model, legal: NDArray[numpy.bool_]) -> None:
    """Append tags to those that a trained model scores.

    The scores of the other tags stay as they are. The new tags are improbable until they are
    learned.

    Args:
        legal: (K, K) bool, the tags (columns) that may follow a tag (rows), new ones included.
    """
    pairs = TagPairs(legal)
    for head in find_heads(model):
        numbers = torch.stack([pairs.previous, pairs.tag], 1)
        more = {} if shim_of(head).cfg.get("pairs") is None else {"pairs": numbers.tolist()}
        _widen(head, len(legal), more)
    _set_outputs(model, len(legal))


def copy_tag_0(model: Model, first: int) -> None:
    """Let added tags start with the weights of tag 0, so that they are improbable parts of it.

    Args:
        first: the number of the first tag that was added; all from there on are new.
    """
    for head in find_heads(model):
        module, cfg = shim_of(head).module, shim_of(head).cfg
        tags = torch.arange(cfg["labels"])
        like = tags.where(tags < first, torch.zeros_like(tags))
        pairs = _pairs(module, cfg)
        for name, weights in module.named_parameters():
            if name.startswith("pair.") and pairs is not None:
                numbers = {pair: i for i, pair in enumerate(map(tuple, pairs.tolist()))}
                rows = torch.tensor([numbers[tuple(pair)] for pair in like[pairs].tolist()])
                new = pairs[:, 1] >= first
            else:
                rows, new = like, tags >= first
            copied = weights.data[rows]
            if name == "transition":
                copied = copied[:, rows]
            elif name.endswith(".bias"):
                copied[new] += IMPROBABLE
            weights.data.copy_(copied)


def add_span_labels(model: Model, count: int) -> None:
    """Append labels to those that a trained model scores over spans.

    The scores of the other labels stay as they are. The new labels are improbable until they are
    learned: the null label, that of no constituent, has the score 0.

    Raises:
        ValueError: if the model has no head of `ChartParser.v1` or `SpanScorer.v1`.
    """
    heads = [node for node in model.walk() if node.name in (SPAN_SCORES, SPAN_SCORER)]
    if not heads:
        raise ValueError(
            "only the heads of spacy-psa.ChartParser.v1 and spacy-psa.SpanScorer.v1 can get labels "
            "after their initialization: initialize the model again"
        )
    for head in heads:
        _widen(head, count, {})
    _set_outputs(model, count)


def _set_outputs(model: Model, count: int) -> None:
    for node in model.walk():
        if node.name in ("sentencewise", "ensemble", SPANS_AND_TAGS):
            node.set_dim("nO", count, force=True)


def _widen(head: Model, count: int, more: dict[str, Any]) -> None:
    """Build the module of a head anew for `count` labels, with the old weights in their places."""
    shim = shim_of(head)
    old = shim.module
    cfg = {**shim.cfg, "labels": count, **more}
    before = _pairs(old, shim.cfg)
    shim.build(**cfg)
    _copy(old, shim.module, before, _pairs(shim.module, cfg))
    shim.module.to(next(old.parameters()).device)
    Shim.global_id += 1
    shim.id = Shim.global_id  # an optimizer must not use what it knows of the smaller weights
    head.set_dim("nO", count, force=True)


def _pairs(module: nn.Module, cfg: dict) -> Tensor | None:
    """Return the (P, 2) pairs of tags that a head has weights for, if it has such weights."""
    if not hasattr(module, "pair"):
        return None
    if cfg.get("pairs") is not None:
        return torch.tensor(cfg["pairs"])
    return torch.cartesian_prod(*[torch.arange(cfg["labels"])] * 2)


def _copy(old: nn.Module, new: nn.Module, before: Tensor | None, after: Tensor | None) -> None:
    known = dict(old.named_parameters())
    for name, weights in new.named_parameters():
        held = known[name].data.to(weights.device)
        weights.data.fill_(IMPROBABLE if weights.dim() == 1 else 0.0)
        if name.startswith("pair.") and before is not None and after is not None:
            count = 1 + int(after.max())
            numbers = after[:, 0] * count + after[:, 1]
            order = numbers.argsort()
            rows = torch.searchsorted(numbers[order], before[:, 0] * count + before[:, 1])
            weights.data[order[rows]] = held
        else:
            weights.data[tuple(slice(size) for size in held.shape)] = held
