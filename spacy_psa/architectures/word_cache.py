"""Remembers the vectors of the latest words in annotation, where weights do not change."""

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

import numpy
import torch
from thinc.api import Model
from torch import nn

from spacy_psa.bridge.layers import shim_of
from spacy_psa.errors import check_sizes

FIRST_ROWS = 1024  # of the table, which grows


class WordCache:
    """Remembers the vectors that one layer gave to the latest words.

    The cache is not part of the model that is saved or sent to other processes. Before each use it
    compares the weights and attributes of the layer with the ones that gave its vectors, and
    forgets all vectors if anything differs. Threads may share it.

    Args:
        size: largest number of words; the words that were met least recently make room for
            others. 0 remembers none.

    Raises:
        InputError: if the size is below 0.

    Examples:
        >>> import spacy
        >>> from spacy_psa.architectures.chars import char_bilstm
        >>> model = char_bilstm(hidden=10, cache=100)
        >>> _ = model.initialize()
        >>> (cache,) = caches(model)
        >>> vectors = model.predict([spacy.blank("en")("a rose is a rose")])
        >>> len(cache)
        3
    """

    def __init__(self, size: int):
        check_sizes(least=0, cache=size)
        self.size = size
        self._lock = Lock()
        self._weights: list[torch.Tensor] = []
        self._attributes: dict[str, Any] = {}
        self._forget()

    def __reduce__(self) -> tuple[type["WordCache"], tuple[int]]:
        return WordCache, (self.size,)

    def __len__(self) -> int:
        return len(self._rows)

    def embed(
        self, compute: Callable, model: Model, docs: Any, words: list[str], is_train: bool
    ) -> tuple[Any, Callable]:
        """Give the vectors of words, and compute only the vectors that are not remembered.

        In training and on a GPU all vectors are computed.

        Args:
            compute: called with `(model, docs, words, is_train)`; gives vectors (M, nO) and a
                callback for their gradient.
            model: the node of the embedder.
            docs: passed to `compute`.
            words: the M words.
            is_train: whether the model is in training.

        Returns:
            The vectors (M, nO), and a callback for their gradient.
        """
        shim = shim_of(model)
        if is_train or not self.size or shim.device.type != "cpu":
            return compute(model, docs, words, is_train)
        with self._lock:
            self._check(shim.module, model.attrs)
            rows = [self._touch(word) for word in words]
            known = numpy.array(rows) >= 0
            vectors = self._table[rows] if known.any() else None
            rows_then = self._rows
        if known.all():
            return vectors, _refuse_gradient
        unknown = numpy.flatnonzero(~known)
        new = [words[i] for i in unknown.tolist()]
        fresh, _ = compute(model, docs, new, False)
        if vectors is None:
            vectors = fresh
        else:
            vectors[unknown] = fresh
        with self._lock:
            if self._rows is rows_then:  # otherwise another thread found new weights
                self._remember(new[: self.size], fresh[: self.size])
        return vectors, _refuse_gradient

    def _check(self, module: nn.Module, attributes: dict[str, Any]) -> None:
        weights = list(module.state_dict().values())
        if (
            len(weights) != len(self._weights)
            or attributes != self._attributes
            or not all(map(torch.equal, weights, self._weights))
        ):
            self._weights = [tensor.clone() for tensor in weights]
            self._attributes = {
                key: dict(value) if isinstance(value, dict) else value
                for key, value in attributes.items()
            }
            self._forget()

    def forget(self) -> None:
        """Forget all vectors."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        self._rows: dict[str, int] = {}  # in the order in which they were last met
        self._table = numpy.zeros((0, 0), dtype="float32")

    def _touch(self, word: str) -> int:
        row = self._rows.pop(word, -1)
        if row >= 0:
            self._rows[word] = row
        return row

    def _remember(self, words: list[str], vectors: Any) -> None:
        self._make_room(len(self._rows) + len(words), vectors)
        rows = []
        for word in words:
            row = self._rows.pop(word, -1)
            if row < 0:
                full = len(self._rows) == self.size
                row = self._rows.pop(next(iter(self._rows))) if full else len(self._rows)
            self._rows[word] = row
            rows.append(row)
        self._table[rows] = vectors

    def _make_room(self, words: int, vectors: Any) -> None:
        rows = len(self._table)
        if rows < min(words, self.size):
            more = min(max(words, 2 * rows, FIRST_ROWS), self.size)
            table = numpy.empty((more, vectors.shape[1]), vectors.dtype)
            if rows:
                table[:rows] = self._table
            self._table = table


def caches(model: Model) -> list[WordCache]:
    """Collect the caches of a model's embedders."""
    found = []
    for node in model.walk():
        given = node._func.args if isinstance(node._func, partial) else ()
        found += [value for value in given if isinstance(value, WordCache)]
    return found


def _refuse_gradient(d_vectors: Any) -> None:
    raise ValueError(
        "There is no gradient, because the forward pass was a prediction: call begin_update first"
    )
