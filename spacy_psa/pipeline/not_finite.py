"""Scores that are not finite: the error, and its cause."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import nn

from spacy_psa.errors import InputError


def check_scores(name: str, model: Model, scores: list[Floats2d], docs: Iterable[Doc]) -> None:
    """Check that no score of a component's model is NaN or infinite; -inf excludes a label.

    Args:
        model: its model.
        scores: the output of the model for the docs.

    Raises:
        InputError: if a score is NaN or infinite. The error names the weights, or else the word
            vector, that is not finite.
    """
    largest: list[Any] = [array.max() for array in scores if array.size]
    if len(largest) > 1:
        largest = [model.ops.xp.stack(largest).max()]  # one answer to wait for on a GPU
    if largest and not float(largest[0]) < math.inf:  # NaN is the largest of all
        raise InputError(
            f"{name}: the scores of the model are NaN or infinite, {_cause(model, docs)}"
        )


def _cause(model: Model, docs: Iterable[Doc]) -> str:
    for node in model.walk():
        weights = {n: node.get_param(n) for n in node.param_names if node.has_param(n)}
        if any(not bool(node.ops.xp.isfinite(array).all()) for array in weights.values()):
            return _of_weights(node.name)
        for module in (getattr(shim, "_model", None) for shim in node.shims):
            if isinstance(module, nn.Module):
                for name, tensor in module.named_parameters():
                    if not bool(torch.isfinite(tensor).all()):
                        return _of_weights(f"{node.name}, {name}")
    for doc in docs:
        for token in doc:
            vector: Any = doc.vocab.get_vector(token.orth)
            if not math.isfinite(float(vector.sum())):
                return f"as is the word vector of {token.text!r}: correct the vectors"
    return "though its weights are finite: check the component that it listens to"


def _of_weights(name: str) -> str:
    return (
        f"as are its weights ({name}): use another checkpoint, or train again with a lower "
        "learning rate"
    )
