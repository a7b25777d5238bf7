"""Embedders of single words: each distinct word of a batch is embedded once, or remembered.

Words and characters get their rows in the order in which training first meets them. So no
development or test text ever enters a vocabulary, and any component can hold the layer, since it
needs no pass over the corpus before training.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import methodcaller
from threading import Lock
from typing import Any

import numpy
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.bridge.layers import join_rows, split_rows
from spacy_psa.bridge.shim import no_gradient, shim_of, tensors
from spacy_psa.errors import check_sizes
from spacy_psa.sentences import DistinctWords, Sentences

Embedder = Model[list[Doc], list[Floats2d]]
Embedded = tuple[Any, Callable]
"""The vectors of M distinct words, (M, nO), and a callback for their gradient."""
Embed = Callable[[Model, list[Doc], list[str], bool], Embedded]
"""A function of the node, the docs, M distinct words and whether the model is in training."""
TABLE_NAMES = {"rows": "num_embeddings"}  # names in models of version 0.1
LOOKUP_NAMES = {**TABLE_NAMES, "spread": "init_std"}
DIGITS = {ord(digit): "0" for digit in "123456789"}
UNKNOWN = ""  # stands for the unknown word, since no token is empty
FIRST_ROWS = 1024  # of the table of a cache, which grows


class WordCache:
    """Remembers the vectors of the latest words in annotation, where weights do not change.

    The cache is not part of the model that is saved or sent to other processes. Before each use it
    compares the weights and attributes of the layer with the ones that its vectors come from, and
    forgets all vectors if anything differs. Threads may share it.

    Args:
        size: largest number of words. The words that were met least recently make room for others.
            0 turns the cache off.
    """

    def __init__(self, size: int):
        check_sizes(least=0, cache=size)
        self.size = size
        self._lock = Lock()
        self._weights: list[Tensor] = []
        self._attributes: dict[str, Any] = {}
        self._forget()

    def __reduce__(self) -> tuple[type["WordCache"], tuple[int]]:
        return WordCache, (self.size,)

    def __len__(self) -> int:
        return len(self._rows)

    def embed(
        self, embed: Embed, model: Model, docs: list[Doc], words: list[str], is_train: bool
    ) -> tuple[Any, Callable]:
        """Embed words by `embed`, but those whose vectors are remembered.

        In training and on a GPU all vectors are computed.
        """
        if is_train or not self.size:
            return embed(model, docs, words, is_train)
        weights = tensors(shim_of(model).module)
        if weights[0].device.type != "cpu":
            return embed(model, docs, words, False)
        with self._lock:
            self._check(weights, model.attrs)
            table, known = self._table, self._rows
            rows = []
            for word in words:
                row = known.pop(word, -1)
                if row >= 0:
                    known[word] = row  # now the latest
                rows.append(row)
            unknown = [i for i, row in enumerate(rows) if row < 0]
            vectors = table[rows] if len(unknown) < len(rows) else None
        if not unknown:
            return vectors, no_gradient
        new = [words[i] for i in unknown]
        computed, _ = embed(model, docs, new, False)
        if vectors is None:
            vectors = computed
        else:
            vectors[unknown] = computed
        with self._lock:
            if self._rows is known:  # otherwise another thread found new weights
                self._remember(new[: self.size], computed[: self.size])
        return vectors, no_gradient

    def _check(self, weights: list[Tensor], attributes: dict[str, Any]) -> None:
        if (
            len(weights) != len(self._weights)
            or attributes != self._attributes
            or not all(map(torch.equal, weights, self._weights))
        ):
            self._weights = [tensor.detach().clone() for tensor in weights]
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

    def _remember(self, words: list[str], vectors: Any) -> None:
        needed = min(len(self._rows) + len(words), self.size)
        if len(self._table) < needed:
            more = min(max(needed, 2 * len(self._table), FIRST_ROWS), self.size)
            table = numpy.empty((more, vectors.shape[1]), vectors.dtype)
            if len(self._table):
                table[: len(self._table)] = self._table
            self._table = table
        rows = []
        for word in words:
            row = self._rows.pop(word, -1)
            if row < 0:
                full = len(self._rows) == self.size
                row = self._rows.pop(next(iter(self._rows))) if full else len(self._rows)
            self._rows[word] = row
            rows.append(row)
        self._table[rows] = vectors


def caches(model: Model) -> list[WordCache]:
    """Collect the caches of a model's embedders."""
    forwards = [node._func for node in model.walk() if isinstance(node._func, partial)]
    arguments = [value for forward in forwards for value in forward.keywords.values()]
    return [value for value in arguments if isinstance(value, WordCache)]


def distinct_words(docs: Sequence[Doc], attribute: str = "ORTH") -> DistinctWords:
    """Find the distinct words, by hash, of docs, of which there is at least one.

    Do not change the result, which is on the CPU.

    Args:
        attribute: the attribute of the token to read; "ORTH" is the word.
    """
    held = docs if isinstance(docs, Sentences) and attribute == "ORTH" else None
    if held is not None and held.words is not None:
        return held.words
    keys = numpy.concatenate(list(map(methodcaller("to_array", attribute), docs)))
    distinct, index = numpy.unique(keys, return_inverse=True)
    words: list[Any] = list(map(docs[0].vocab.strings.__getitem__, distinct.tolist()))
    result = words, index.astype("int64", copy=False), list(map(len, docs))
    if held is not None:
        held.words = result
    return result


def by_distinct_word(
    model: Model,
    docs: list[Doc],
    is_train: bool,
    embed: Embed,
    attribute: str = "ORTH",
    cache: WordCache | None = None,
) -> tuple[list[Floats2d], Callable]:
    """Embed each distinct word of docs once; the forward function of an embedder.

    Args:
        embed: computes the vectors of words.
        attribute: the attribute of the token to read instead of the word.
        cache: remembers the vectors in annotation.
    """
    if not any(map(len, docs)):
        return [model.ops.alloc2f(0, model.get_dim("nO")) for _ in docs], lambda dY: []
    words, index, sizes = distinct_words(docs, attribute)
    if cache is None:
        vectors, backprop = embed(model, docs, words, is_train)
    else:
        vectors, backprop = cache.embed(embed, model, docs, words, is_train)
    return hand_out(model, vectors, backprop, index, sizes)


def hand_out(
    model: Model, vectors: Floats2d, embed_backprop: Callable, index: Any, sizes: list[int]
) -> tuple[list[Floats2d], Callable]:
    """Copy vectors (M, nO) to the tokens that have them, doc by doc.

    `index` (N,) has the vector of each token, `embed_backprop` is a callback for their gradient.
    """
    xp = model.ops.xp
    index = xp.asarray(index)

    def backprop(dY: list[Floats2d]) -> list[Doc]:
        d_vectors = model.ops.alloc2f(*vectors.shape)
        model.ops.scatter_add(d_vectors, index, join_rows(xp, dY))
        embed_backprop(d_vectors)
        return []

    return split_rows(vectors[index], sizes), backprop


def masked(vectors: list[Floats2d], backprop: Callable, masks: list[Any]) -> Any:
    """Multiply the vectors of each doc by its mask, and its gradient likewise."""

    def backprop_masked(dY: list[Floats2d]) -> Any:
        return backprop([d * mask for d, mask in zip(dY, masks)])

    return [array * mask for array, mask in zip(vectors, masks)], backprop_masked


def ignore_gradient(d_vectors: Floats2d) -> None:
    """The callback of vectors that are not trained."""


def add_rows(model: Model, symbols: Iterable[str]) -> dict[str, int]:
    """Assign a row to each symbol that has none, up to the capacity, and return the new rows."""
    rows, asked = model.attrs["rows"], []
    for symbol in symbols:
        if symbol not in rows and len(rows) < model.attrs["capacity"]:
            rows[symbol] = len(rows) + 1
            asked.append(symbol)
    # While several processes compute a step together, `rows` keeps no new ones.
    return {symbol: rows.get(symbol) for symbol in asked if symbol in rows}


def meet(node: Model, docs: list[Doc]) -> Tensor | None:
    """Assign rows to the new words of docs, if a node is an embedder that has rows.

    Training does this by itself. Where several processes train, each does it for the docs of all.
    The attribute `meet` of the node does the work, and returns the rows that training on the docs
    reads, (R,) int64, in order; None if the table is small.
    """
    own = node.attrs.get("meet")
    return own(node, docs) if own is not None and any(map(len, docs)) else None


def init_table(model: Model, X: Any = None, Y: Any = None) -> None:
    """Make the module of an embedder, if it has none yet."""
    shim = shim_of(model)
    if shim._model is None:
        shim.build()
