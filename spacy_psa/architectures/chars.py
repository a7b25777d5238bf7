"""Embedders that read characters: Model[List[Doc], List[Floats2d]].

They have the settings and defaults of the module of the same name in `spacy_psa.modules`, some
under another name. Most also have these settings:

- `rows`: capacity for distinct characters of the training data (default 500). All other characters
  are the unknown one, row 0.
- `max_characters`: number of characters that are read; longer words are cut at the right (50).
- `zero_digits`: whether every digit is read as 0 (Yan2019 section 4.2; false).
- `cache`: number of words to remember the vectors of, in annotation on a CPU; 0 for none (20,000).

`training.dropout` does not change the dropout rates of these embedders.

Examples:
    >>> import spacy
    >>> model = char_bilstm(width=8, hidden=10)
    >>> _ = model.initialize()
    >>> model.predict([spacy.blank("en")("Ada met Bob")])[0].shape
    (3, 20)
"""

import string
from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

import numpy
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor, nn

from spacy_psa.architectures.distinct_words import (
    DIGITS,
    LOOKUP_NAMES,
    TABLE_NAMES,
    Embedded,
    Embedder,
    WordCache,
    add_rows,
    by_distinct_word,
    distinct_words,
    init_table,
)
from spacy_psa.bridge.architecture import Architecture, architecture, on_meta, setting
from spacy_psa.bridge.layers import split_rows
from spacy_psa.bridge.shim import TorchShim, shim_of
from spacy_psa.errors import check_amounts, check_rates, check_sizes, naming
from spacy_psa.modules.characters import (
    CharAdaTrans,
    CharBiLSTM,
    CharCNN,
    CharIntNet,
    CharNgramCNN,
    CharSentenceBiLSTM,
    CharTransformer,
)
from spacy_psa.modules.lookup import Lookup
from spacy_psa.ragged import to_device
from spacy_psa.sentences import sentence_bounds

SETTINGS = {
    "rows": 500,
    "max_characters": 50,
    "zero_digits": False,
    "cache": 20_000,  # words; 16 MB for vectors of 200 numbers
}
ASCII = string.ascii_letters + string.digits + string.punctuation
_ASCII_ROWS = {character: row for row, character in enumerate(ASCII, 1)}
_KIND = {
    character: kind
    for kind, characters in enumerate(
        (string.ascii_uppercase, string.ascii_lowercase, string.digits, string.punctuation), 1
    )
    for character in characters
}


def char_concat(
    letters: int = 8,
    width: int = 32,
    rows: int = 500,
    dropout: float = 0.0,
    spread: float | None = None,
) -> Embedder:
    """Build `CharConcat.v1`, the vectors of a word's first and last letters, joined.

    Kitaev2018 (section 5) has 2 * 8 letters with vectors of width 32, 512 numbers a word. A word
    with fewer letters is filled up with a padding vector, which is trained too, after its first
    letters and before its last letters.

    Args:
        letters: number of letters at each end (Kitaev2018: 8).
        width: width of the vector of a letter (Kitaev2018: 32).
        rows: capacity for distinct letters of the training data.
        dropout: dropout rate on the vectors; `training.dropout` does not change it.
        spread: standard deviation of the numbers that the vectors start with; None for
            1 / sqrt(width).

    Returns:
        Model[List[Doc], List[Floats2d]] with an array (tokens, 2 * letters * width) for each doc.

    Raises:
        InputError: for a setting out of its range.

    Examples:
        >>> import spacy
        >>> model = char_concat(letters=2, width=4)
        >>> _ = model.initialize()
        >>> model.predict([spacy.blank("en")("Ada met Bob")])[0].shape
        (3, 16)
    """
    with naming("CharConcat.v1"):
        check_sizes(letters=letters, width=width)
        check_sizes(least=0, rows=rows)
        check_rates(dropout=dropout)
        check_amounts(spread=0.0 if spread is None else spread)
    settings = {
        "num_embeddings": rows + 2,
        "width": width,
        "symbols": 2 * letters,
        "dropout": dropout,
        "init_std": spread,
    }
    return Model(
        "char_concat",
        partial(by_distinct_word, embed=_embed_ends),
        init=init_table,
        dims={"nO": 2 * letters * width},
        attrs={"rows": {}, "capacity": rows, "letters": letters, "meet": _meet_ends},
        shims=[TorchShim(Lookup, settings, LOOKUP_NAMES)],
    )


def _embed_characters(model: Model, docs: list[Doc], words: list[str], is_train: bool) -> Embedded:
    words = _cut(words, model.attrs["max_characters"])
    text, known = _text(model, words), model.attrs["rows"]
    if is_train and not known.keys() >= set(text):
        add_rows(model, text)
    rows, lengths = _rows(text, known), torch.tensor(list(map(len, words)))
    shim = shim_of(model)
    return shim.run((to_device(rows, shim.device), lengths), is_train)


def _embed_ngrams(model: Model, docs: list[Doc], words: list[str], is_train: bool) -> Embedded:
    words = _cut(words, model.attrs["max_characters"])
    text, shim = "".join(words), shim_of(model)
    lengths = torch.tensor(list(map(len, words)))
    rows, kinds = (to_device(_rows(text, table), shim.device) for table in (_ASCII_ROWS, _KIND))
    return shim.run((rows, kinds, lengths), is_train)


def _embed_ends(model: Model, docs: list[Doc], words: list[str], is_train: bool) -> Embedded:
    n = model.attrs["letters"]
    words = _ends(model, words)
    text, shim = "".join(words), shim_of(model)
    if is_train:
        add_rows(model, text)
    rows = to_device(_rows(text, model.attrs["rows"]), shim.device)
    padded = torch.cat([rows, rows.new_full((1,), model.attrs["capacity"] + 1)])
    lengths = numpy.array([len(word) for word in words])[:, None]
    ends = numpy.cumsum(lengths)[:, None]
    place = numpy.arange(n)
    first = numpy.where(place < lengths, ends - lengths + place, -1)
    last = numpy.where(n - place <= lengths, ends - n + place, -1)
    letters = to_device(torch.from_numpy(numpy.hstack([first, last])), padded.device)
    return shim.run((padded[letters],), is_train)


def _meet_characters(model: Model, docs: list[Doc]) -> None:
    add_rows(model, _text(model, _cut(distinct_words(docs)[0], model.attrs["max_characters"])))


def _meet_ends(model: Model, docs: list[Doc]) -> None:
    add_rows(model, "".join(_ends(model, distinct_words(docs)[0])))


def _text(model: Model, words: list[str]) -> str:
    text = "".join(words)
    return text.translate(DIGITS) if model.attrs["zero_digits"] else text


def _ends(model: Model, words: list[str]) -> list[str]:
    n = model.attrs["letters"]
    return [word if len(word) <= 2 * n else word[:n] + word[-n:] for word in words]


def _cut(words: list[str], size: int) -> list[str]:
    return [word[:size] or " " for word in words]


def _rows(text: str, rows: dict[str, int]) -> Tensor:
    """Find the row of each character, 0 for a character without one."""
    return torch.tensor(list(map(rows.get, text, repeat(0))), dtype=torch.int64)


class _Characters(NamedTuple):
    """The characters of docs, one sentence after the other."""

    text: str
    lengths: list[int]
    first: list[int]
    last: list[int]


def _embed_sentences(
    model: Model, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    if not any(map(len, docs)):
        return [model.ops.alloc2f(0, model.get_dim("nO")) for _ in docs], lambda dY: []
    read = _characters(model, docs)
    if is_train:
        add_rows(model, read.text)
    rows = [model.attrs["rows"].get(character, 0) for character in read.text]
    shim = shim_of(model)
    characters, first, last = (
        to_device(torch.tensor(numbers), shim.device) for numbers in (rows, read.first, read.last)
    )
    inputs = characters, torch.tensor(read.lengths), first, last
    vectors, backprop_vectors = shim.run(inputs, is_train)

    def backprop(dY: list[Floats2d]) -> list[Doc]:
        backprop_vectors(model.ops.xp.concatenate(dY))
        return []

    return split_rows(vectors, map(len, docs)), backprop


def _characters(model: Model, docs: list[Doc]) -> _Characters:
    """Read the characters of docs, each word cut to its first ones, with the spaces between."""
    most = model.attrs["max_characters"]
    parts: list[str] = []
    read = _Characters("", [], [], [])
    place = 0
    for doc in docs:
        for start, end in sentence_bounds(doc):
            begin = place
            for token in doc[start:end]:
                word = token.text[:most] or " "
                read.first.append(place)
                read.last.append(place + len(word) - 1)
                if token.whitespace_ and token.i + 1 < end:
                    word += " "
                parts.append(word)
                place += len(word)
            if place > begin:
                read.lengths.append(place - begin)
    text = "".join(parts)
    return read._replace(text=text.translate(DIGITS) if model.attrs["zero_digits"] else text)


def _meet_sentences(model: Model, docs: list[Doc]) -> None:
    add_rows(model, _characters(model, docs).text)


def _embedder(
    module: type[nn.Module],
    renamed: Mapping[str, str],
    embed: Callable,
    meet: Callable | None = None,
    without: Collection[str] = (),
) -> Architecture:
    """Make the architecture of a module of characters.

    Args:
        renamed: settings with another name in a config; see `encoder` in `bridge.architecture`.
        embed: computes the vectors of words; without a cache, the forward function.
        meet: assigns rows to the characters of docs.
        without: those of `SETTINGS` that the architecture does not have.
    """
    own = {key: value for key, value in SETTINGS.items() if key not in without}

    def build(settings: dict[str, Any]) -> Embedder:
        kept = {key: settings.pop(key) for key in own}
        rows, cache = kept.pop("rows", None), kept.pop("cache", None)
        check_sizes(least=0, rows=rows)
        check_sizes(
            max_characters=kept.setdefault("max_characters", settings.get("max_characters"))
        )
        settings["num_embeddings"] = (len(ASCII) if rows is None else rows) + 1
        attrs = {} if rows is None else {"rows": {}, "capacity": rows, "meet": meet}
        words = partial(by_distinct_word, embed=embed)
        return Model(
            module.__name__,
            embed if cache is None else partial(words, cache=WordCache(cache)),
            init=init_table,
            dims={"nO": on_meta(module, **settings).output_width},  # type: ignore[dict-item]
            attrs={**attrs, **kept},
            shims=[
                TorchShim(module, settings, {"size": "max_characters", **TABLE_NAMES, **renamed})
            ],
        )

    return architecture(
        module,
        build,
        name=module.__name__,
        renamed=renamed,
        hidden=["num_embeddings"],
        extra=[setting(key, value) for key, value in own.items()],
    )


SPREAD = {"spread": "init_std"}
FFN = {"inner": "ffn_dim"}
FILTERS = {"kernels": "filters"}

char_bilstm = _embedder(CharBiLSTM, SPREAD, _embed_characters, _meet_characters)
"""`CharBiLSTM.v1`: a bidirectional LSTM over the characters (Wei2020 section 5.2, Yan2019)."""
char_cnn = _embedder(
    CharCNN, {**FILTERS, "kernel_width": "kernel_size"}, _embed_characters, _meet_characters
)
"""`CharCNN.v1`: a convolution over the characters (Yan2019 section 6.1)."""
char_intnet = _embedder(
    CharIntNet, {**FILTERS, "kernel_widths": "kernel_sizes"}, _embed_characters, _meet_characters
)
"""`CharIntNet.v1`: dense convolutions over the characters (Xin et al. 2018)."""
char_transformer = _embedder(CharTransformer, FFN, _embed_characters, _meet_characters)
"""`CharTransformer.v1`: a Transformer layer over the characters (Yan2019 section 6.1)."""
char_adatrans = _embedder(CharAdaTrans, FFN, _embed_characters, _meet_characters)
"""`CharAdaTrans.v1`: a Transformer layer with the attention of TENER (Yan2019 section 3.1)."""
char_ngram_cnn = _embedder(
    CharNgramCNN,
    {**FILTERS, "longest": "max_ngram"},
    _embed_ngrams,
    without=["rows", "max_characters", "zero_digits"],
)
"""`CharNgramCNN.v1`: convolutions over the n-grams of a word's characters (Li2019 section 3.1)."""
char_sentence_bilstm = _embedder(
    CharSentenceBiLSTM, SPREAD, _embed_sentences, _meet_sentences, without=["cache"]
)
"""`CharSentenceBiLSTM.v1`: an LSTM over the characters of a sentence (Bohnet et al. 2018).

Its sentences are those of the docs; a doc without sentence boundaries is one.
"""
