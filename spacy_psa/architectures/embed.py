"""Embedders: Model[List[Doc], List[Floats2d]].

They compute each distinct word of a batch once. Words and characters get their
rows in the order in which training first meets them, so no development or test
text ever enters a vocabulary, and any component can hold the layer: it needs
no pass over the corpus before training.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy
import torch
from spacy.attrs import ORTH
from spacy.tokens import Doc, Span
from spacy.vectors import Mode
from thinc.api import Model, concatenate
from thinc.types import Floats2d
from thinc.util import to_numpy

from spacy_psa.bridge import TorchShim, run_shim
from spacy_psa.errors import InputError
from spacy_psa.modules.chars import CharBiLSTM, WordTable

Embedder = Model[list[Doc], list[Floats2d]]
DIGITS = {ord(digit): "0" for digit in "123456789"}


def word_embed(
    width: int = 100, rows: int = 30000, lower: bool = True, zero_digits: bool = True
) -> Embedder:
    """`WordEmbed.v1`: pretrained vectors, fine-tuned, and vectors for words without one.

    A word's vector is the one in `nlp.vocab.vectors` (as it stands, else lower-cased,
    where `lower`; zeros where there is none), which stays as it is, plus a trainable
    row for the word's normal form: for words of the training data alone, starting at
    zero over a pretrained vector and at U(-sqrt(3 / width), sqrt(3 / width)) without.
    This equals fine-tuning (J section 5.2) at a fraction of the size. A word that is
    neither in the vectors nor in the training data is zeros.

    width: of the vectors; must be that of the pretrained ones, if there are any.
    rows: capacity for distinct training words; further ones get no row of their own.
    lower: normal forms are lower-cased. zero_digits: their digits are 0 (T section 4.2).

    Errors: InputError where the pretrained vectors are of another width.
    """
    model: Embedder = Model(
        "word_embed",
        _forward_words,
        init=_init_table,
        dims={"nO": width},
        attrs={"rows": {}, "capacity": rows, "lower": lower, "zero_digits": zero_digits},
        shims=[TorchShim(WordTable, {"rows": rows + 1, "width": width})],
    )
    return model


def char_bilstm(
    width: int = 30,
    hidden: int = 100,
    rows: int = 500,
    max_characters: int = 50,
    dropout: float = 0.0,
) -> Embedder:
    """`CharBiLSTM.v1`: a word as the final states of a BiLSTM over its characters
    (J section 5.2: embeddings of 30, hidden 100, read as 100 in each direction).

    width: of a character's embedding. hidden: units of each direction; the layer's
    width is twice that. rows: capacity for distinct characters of the training data.
    max_characters: longer words are cut at the right. dropout: on the embeddings.
    """
    arguments = {"rows": rows + 1, "width": width, "hidden": hidden, "dropout": dropout}
    return Model(
        "char_bilstm",
        _forward_characters,
        init=_init_table,
        dims={"nO": 2 * hidden},
        attrs={"rows": {}, "capacity": rows, "max_characters": max_characters},
        shims=[TorchShim(CharBiLSTM, arguments)],
    )


def concat_embed(*layers: Embedder) -> Embedder:
    """`ConcatEmbed.v1`: several embedders side by side.

    In a config the layers are blocks `[….embed.*.NAME]`, in the order in which they
    stand. The width is the sum of theirs.
    """
    if not layers:
        raise InputError("ConcatEmbed.v1 needs at least one layer, as a block [….embed.*.NAME]")
    if len(layers) == 1:
        return layers[0]
    model = concatenate(*layers)
    model.set_dim("nO", sum(layer.get_dim("nO") for layer in layers))
    return model


def distinct_words(docs: Iterable[Doc | Span]) -> tuple[list[str], Any, Any]:
    """The distinct words of docs, in order of their hashes, with the word of each
    token (N,) and the number of tokens of each doc (B,), all on the CPU."""
    keys = [doc.to_array([ORTH]).reshape(-1) for doc in docs]
    sizes = [len(k) for k in keys]
    distinct, index = numpy.unique(numpy.concatenate(keys), return_inverse=True)
    strings = next(iter(docs)).vocab.strings
    return [strings[key] for key in distinct.tolist()], index, sizes


def _by_distinct_word(
    model: Model,
    docs: list[Doc],
    is_train: bool,
    embed: Callable[[Model, list[Doc], list[str], bool], tuple[Any, Callable]],
) -> tuple[list[Floats2d], Callable]:
    xp = model.ops.xp
    if not any(len(doc) for doc in docs):
        return [model.ops.alloc2f(0, model.get_dim("nO")) for _ in docs], lambda dY: []
    words, index, sizes = distinct_words(docs)
    vectors, embed_backprop = embed(model, docs, words, is_train)
    index = xp.asarray(index)
    ends = numpy.cumsum(sizes)[:-1].tolist()

    def backprop(dY: list[Floats2d]) -> list[Doc]:
        d_vectors = model.ops.alloc2f(*vectors.shape)
        model.ops.scatter_add(d_vectors, index, xp.concatenate(dY))
        embed_backprop(d_vectors)
        return []

    return xp.split(vectors[index], ends), backprop


def _forward_words(model: Model, docs: list[Doc], is_train: bool) -> Any:
    return _by_distinct_word(model, docs, is_train, _embed_words)


def _forward_characters(model: Model, docs: list[Doc], is_train: bool) -> Any:
    return _by_distinct_word(model, docs, is_train, _embed_characters)


def _embed_words(
    model: Model, docs: list[Doc], words: list[str], is_train: bool
) -> tuple[Floats2d, Callable]:
    width = model.get_dim("nO")
    pretrained, found = _pretrained(docs[0].vocab, words, width, model.attrs["lower"])
    forms = words
    if model.attrs["lower"]:
        forms = [form.lower() for form in forms]
    if model.attrs["zero_digits"]:
        forms = [form.translate(DIGITS) for form in forms]
    if is_train:
        new = _add_rows(model, forms)
        bare = sorted({new[form] for form, has in zip(forms, found) if form in new and not has})
        if bare:
            table = model.shims[0].module.table.weight
            bound = (3.0 / width) ** 0.5
            start = torch.empty(len(bare), width).uniform_(-bound, bound)
            table.data[bare] = start.to(table.device)
    rows = torch.tensor([model.attrs["rows"].get(form, 0) for form in forms])
    device = model.shims[0].device
    inputs = rows.to(device), torch.from_numpy(pretrained).to(device)
    return run_shim(model, inputs, is_train)


def _embed_characters(
    model: Model, docs: list[Doc], words: list[str], is_train: bool
) -> tuple[Floats2d, Callable]:
    words = [word[: model.attrs["max_characters"]] or " " for word in words]
    text = "".join(words)
    if is_train:
        _add_rows(model, text)
    rows = model.attrs["rows"]
    characters = torch.tensor([rows.get(character, 0) for character in text])
    lengths = torch.tensor([len(word) for word in words])
    return run_shim(model, (characters.to(model.shims[0].device), lengths), is_train)


def _add_rows(model: Model, symbols: Iterable[str]) -> dict[str, int]:
    """Give a row to each symbol that has none, up to the capacity. Returns the new ones."""
    rows, new = model.attrs["rows"], {}
    for symbol in symbols:
        if symbol not in rows and len(rows) < model.attrs["capacity"]:
            rows[symbol] = new[symbol] = len(rows) + 1
    return new


def _pretrained(vocab: Any, words: list[str], width: int, lower: bool) -> tuple[Any, list[bool]]:
    vectors = vocab.vectors
    if not vectors.size:
        return numpy.zeros((len(words), width), dtype="float32"), [False] * len(words)
    if vectors.shape[1] != width:
        raise InputError(
            f"WordEmbed.v1 has width {width} but the pretrained vectors have {vectors.shape[1]}: "
            "set its width to theirs, or take other vectors"
        )
    if vectors.mode == Mode.floret:
        return to_numpy(vectors.get_batch(words)), [True] * len(words)
    rows = to_numpy(vectors.find(keys=words))
    if lower:
        lowered = to_numpy(vectors.find(keys=[word.lower() for word in words]))
        rows = numpy.where(rows < 0, lowered, rows)
    found = rows >= 0
    data = to_numpy(vectors.data[rows])
    return numpy.where(found[:, None], data, numpy.float32(0.0)), found.tolist()


def _init_table(model: Model, X: Any = None, Y: Any = None) -> None:
    shim: TorchShim = model.shims[0]
    if shim._model is None:
        shim.build()
