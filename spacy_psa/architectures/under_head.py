"""Layers that ask the head above them how uncertain it is of a token.

The head stands above the layer, so the layer cannot call it. The head's uncertainty travels down
with the docs instead, each time that they go through the model.
"""

from collections.abc import Iterable
from typing import Any

import torch
from spacy.tokens import Doc
from thinc.api import Model
from torch import Tensor

from spacy_psa.bridge.layers import shim_of
from spacy_psa.errors import InputError

ASKS = "asks_head"
"""The attribute of a model that asks; its value is the name of its architecture."""


class DocsUnderHead(list[Doc]):
    """Docs on their way to a model that asks the head above it.

    Args:
        docs: the docs.
        head: a head of `CRF.v1` or `Softmax.v1`.

    Examples:
        >>> from spacy_psa.bridge.layers import head_layer
        >>> from spacy_psa.modules.chain_potentials import Emission
        >>> head = head_layer("emission", Emission)
        >>> head.set_dim("nO", 3)
        >>> DocsUnderHead([], head).uncertainty(torch.ones(2, 4))  # it has no weights yet
        tensor([0., 0.])
    """

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
            found: Tensor = module.uncertainty(x.detach())
        return found


def under_head(docs: list[Doc], tok2vec: Model, head: Model) -> list[Doc]:
    """Let docs carry a head, if the model that gets them asks for it.

    Args:
        docs: the docs.
        tok2vec: the model.
        head: the head above it.
    """
    return DocsUnderHead(docs, head) if ASKS in tok2vec.attrs else docs


def check_asking(tok2vec: Model, head: Model) -> None:
    """Check that a head can answer the model below it that asks.

    Args:
        tok2vec: the model below.
        head: the head.

    Raises:
        InputError: if the head cannot tell how uncertain it is of a token, or if the model that
            asks is only a part of `tok2vec`, so that the head does not fit its vectors.
    """
    answers = any(hasattr(getattr(shim, "make", None), "uncertainty") for shim in head.shims)
    for node in tok2vec.walk():
        if ASKS in node.attrs and not (answers and node is tok2vec):
            raise _misplaced(node.attrs[ASKS])


def uncertainty(docs: list[Doc], x: Tensor, architecture: str) -> Tensor:
    """Ask the head above how uncertain it is of each token: (N,), 0 to 1.

    Args:
        docs: the docs as they came.
        x: (N, d) the vectors of their tokens.
        architecture: the name of the architecture that asks, for the error.

    Raises:
        InputError: if there is no head above.
    """
    if not isinstance(docs, DocsUnderHead):
        raise _misplaced(architecture)
    return docs.uncertainty(x)


def _misplaced(architecture: str) -> InputError:
    return InputError(
        f"{architecture}: max_uncertainty asks the head how uncertain it is of a token: put "
        f"{architecture} into the slot tok2vec of CRF.v1 or Softmax.v1, or set max_uncertainty to "
        "null"
    )
