"""What embedders of single words share: each distinct word of a batch is embedded once.

Words and characters get their rows in the order in which training first meets them. So no
development or test text ever enters a vocabulary, and any component can hold the layer, since it
needs no pass over the corpus before training.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.bridge.layers import join_rows, shim_of
from spacy_psa.sentences import Sentences

Embedder = Model[list[Doc], list[Floats2d]]
TABLE_NAMES = {"rows": "num_embeddings"}  # names in models of version 0.1
LOOKUP_NAMES = {**TABLE_NAMES, "spread": "init_std"}
DIGITS = {ord(digit): "0" for digit in "123456789"}


def distinct_words(docs: Iterable[Doc], attribute: str = "ORTH") -> tuple[list[str], Any, Any]:
    """Find the distinct words of docs.

    Args:
        docs: the docs, at least one.
        attribute: the attribute of the token to read; "ORTH" is the word.

    Returns:
        The distinct words, by hash; the word of each token (N,); the tokens of each doc (B,). All
        are on the CPU.

    Examples:
        >>> import spacy
        >>> words, index, sizes = distinct_words([spacy.blank("en")("a rose is a rose")])
        >>> [words[i] for i in index], sizes
        (['a', 'rose', 'is', 'a', 'rose'], [5])
    """
    if attribute == "ORTH" and isinstance(docs, Sentences):
        keys = docs.words  # several embedders ask for them
    else:
        keys = numpy.concatenate([doc.to_array([attribute]).reshape(-1) for doc in docs])
    distinct, index = numpy.unique(keys, return_inverse=True)
    strings = next(iter(docs)).vocab.strings
    return [strings[key] for key in distinct.tolist()], index, list(map(len, docs))


def by_distinct_word(
    model: Model,
    docs: list[Doc],
    is_train: bool,
    embed: Callable[[Model, list[Doc], list[str], bool], tuple[Any, Callable]],
    attribute: str = "ORTH",
) -> tuple[list[Floats2d], Callable]:
    """Embed each distinct word of docs once, and give the vectors to the tokens.

    Args:
        model: the node of the embedder.
        docs: the docs.
        is_train: passed to `embed`.
        embed: called with the model, the docs, the distinct words and `is_train`; gives the
            vectors (M, nO) of the words, and a callback for their gradient.
        attribute: the attribute of the token to read instead of the word.
    """
    if not any(len(doc) for doc in docs):
        return [model.ops.alloc2f(0, model.get_dim("nO")) for _ in docs], lambda dY: []
    words, index, sizes = distinct_words(docs, attribute)
    vectors, embed_backprop = embed(model, docs, words, is_train)
    return hand_out(model, vectors, embed_backprop, index, sizes)


def hand_out(
    model: Model, vectors: Floats2d, embed_backprop: Callable, index: Any, sizes: list[int]
) -> tuple[list[Floats2d], Callable]:
    """Give vectors to the tokens that have them.

    Args:
        model: the node of the embedder.
        vectors: (M, nO) the vectors.
        embed_backprop: a callback for the gradient of the vectors.
        index: (N,) the vector of each token.
        sizes: (B,) the number of tokens of each doc.
    """
    xp = model.ops.xp
    index = xp.asarray(index)
    ends = numpy.cumsum(sizes)[:-1].tolist()

    def backprop(dY: list[Floats2d]) -> list[Doc]:
        d_vectors = model.ops.alloc2f(*vectors.shape)
        model.ops.scatter_add(d_vectors, index, join_rows(xp, dY))
        embed_backprop(d_vectors)
        return []

    return xp.split(vectors[index], ends), backprop


def ignore_gradient(d_vectors: Floats2d) -> None:
    """Stand for the callback of vectors that are not trained."""


def add_rows(model: Model, symbols: Iterable[str]) -> dict[str, int]:
    """Give a row to each symbol that has none, up to the capacity.

    Returns:
        The new rows, by symbol.
    """
    rows, asked = model.attrs["rows"], []
    for symbol in symbols:
        if symbol not in rows and len(rows) < model.attrs["capacity"]:
            rows[symbol] = len(rows) + 1
            asked.append(symbol)
    # While several processes take a step together, `rows` keeps no new ones.
    return {symbol: rows.get(symbol) for symbol in asked if symbol in rows}


def meet(node: Model, docs: list[Doc]) -> Tensor | None:
    """Let a node give rows to the new words of docs, if it is an embedder that has rows.

    Training does this by itself. Where several processes train, each does it for the docs of all.

    Args:
        node: a node of a model. Its attribute `meet`, if it has one, does the work.
        docs: the docs that the node gets.

    Returns:
        (R,) int64, the rows that training on the docs reads, in order; None if the table is small
        or the node has none.
    """
    own = node.attrs.get("meet")
    return own(node, docs) if own is not None and any(map(len, docs)) else None


def init_table(model: Model, X: Any = None, Y: Any = None) -> None:
    """Make the module of an embedder, if it has none yet."""
    shim = shim_of(model)
    if shim._model is None:
        shim.build()
