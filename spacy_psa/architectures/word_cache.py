"""The vectors of the words met last, for annotation, in which weights do not change."""

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

import numpy
import torch
from thinc.api import Model
from torch import nn

from spacy_psa.bridge.layers import shim_of
from spacy_psa.errors import InputError

FIRST_ROWS = 1024


class WordCache:
    """The vectors that one layer gave to at most `size` words, the least recently met of
    which make room for others; 0 keeps none.

    It is no part of the model that is saved or sent to other processes. Before each use
    it compares the layer's weights and attributes with those that its vectors are from,
    and forgets them all if anything differs. Threads may share it.

    Errors: InputError for a size below 0.
    """

    def __init__(self, size: int):
        if size < 0:
            raise InputError(f"cache is {size}: take the number of words to remember, or 0")
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
        """What `compute(model, docs, words, is_train)` gives, which is asked only for words
        that are not remembered; in training and on a GPU for all."""
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
            return vectors, _nothing_to_train
        unknown = numpy.flatnonzero(~known)
        new = [words[i] for i in unknown.tolist()]
        fresh, _ = compute(model, docs, new, False)
        if vectors is None:
            vectors = fresh
        else:
            vectors[unknown] = fresh
        with self._lock:
            if self._rows is rows_then:  # else another thread saw other weights
                self._remember(new[: self.size], fresh[: self.size])
        return vectors, _nothing_to_train

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
        """Start again without any vector."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        self._rows: dict[str, int] = {}  # the least recently met first
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
    """The caches of a model's embedders."""
    found = []
    for node in model.walk():
        given = node._func.args if isinstance(node._func, partial) else ()
        found += [value for value in given if isinstance(value, WordCache)]
    return found


def _nothing_to_train(d_vectors: Any) -> None:
    raise ValueError("There is nothing to backpropagate: the forward pass was a prediction.")
