"""Embedders that read a word's characters: Model[List[Doc], List[Floats2d]].

Those of TENER share their options: `width`, of a character's embedding; `rows`, the
capacity for distinct characters of the training data; `max_characters`, longer words
are cut at the right; `dropout`, on the embeddings; `output_dropout`, on the word's
vector; `zero_digits`, every digit is read as 0 (T section 4.2). A character that
training did not meet is the unknown one, row 0. `training.dropout` touches none of it.
`cache`: how many words annotation on a CPU remembers the vectors of, 0 for none.
"""

import string
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import numpy
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor, nn

from spacy_psa.architectures.embed import (
    DIGITS,
    Embedder,
    add_rows,
    by_distinct_word,
    init_table,
)
from spacy_psa.architectures.word_cache import WordCache
from spacy_psa.bridge import TorchShim, run_shim, shim_of
from spacy_psa.errors import InputError
from spacy_psa.modules.char_attention import CharAdaTrans, CharTransformer
from spacy_psa.modules.char_cnn import CharCNN, CharNgramCNN
from spacy_psa.modules.chars import CharBiLSTM, Pool
from spacy_psa.modules.lookup import Lookup
from spacy_psa.modules.transformer import head_width

CACHE = 20_000  # words, 16 MB of vectors of 200
ASCII = string.ascii_letters + string.digits + string.punctuation
_ASCII_ROWS = {character: row for row, character in enumerate(ASCII, 1)}
_KIND = {
    character: kind
    for kind, characters in enumerate(
        (string.ascii_uppercase, string.ascii_lowercase, string.digits, string.punctuation), 1
    )
    for character in characters
}


def char_bilstm(
    width: int = 30,
    hidden: int = 100,
    rows: int = 500,
    max_characters: int = 50,
    dropout: float = 0.0,
    project: int | None = None,
    pool: Pool = "final",
    output_dropout: float = 0.0,
    zero_digits: bool = False,
    spread: float | None = None,
    cache: int = CACHE,
) -> Embedder:
    """`CharBiLSTM.v1`: a word as the final states of a BiLSTM over its characters
    (J section 5.2: embeddings of 30, hidden 100, read as 100 in each direction).

    hidden: units of each direction; the layer's width is twice that, or `project`.
    project: width of a linear layer on top, or null for none.
    pool: "final", or "max", the largest value over the characters, at least 0. TENER's
    (T section 6.1 and its code) is hidden 50, project 30, pool "max".
    spread: standard deviation of the numbers that the embeddings start with, null for
    1 / sqrt(width).

    Errors: InputError for another pool.
    """
    if pool not in get_args(Pool):
        raise InputError(f"CharBiLSTM.v1: pool is {pool!r}: take one of {get_args(Pool)}")
    return _char_encoder(
        "char_bilstm",
        CharBiLSTM,
        rows,
        max_characters,
        zero_digits,
        cache,
        2 * hidden if project is None else project,
        width=width,
        hidden=hidden,
        dropout=dropout,
        project=project,
        pool=pool,
        output_dropout=output_dropout,
        spread=spread,
    )


def char_cnn(
    width: int = 30,
    kernels: int = 30,
    kernel_width: int = 3,
    project: int = 30,
    rows: int = 500,
    max_characters: int = 50,
    dropout: float = 0.0,
    output_dropout: float = 0.0,
    zero_digits: bool = False,
    cache: int = CACHE,
) -> Embedder:
    """`CharCNN.v1`: a word as the largest value over its characters of each of `kernels`
    kernels, at least 0, and a linear layer (T section 6.1).

    kernel_width: characters that a kernel sees, an odd number. project: the layer's width.

    Errors: InputError for an even kernel_width.
    """
    if kernel_width < 1 or kernel_width % 2 == 0:
        raise InputError(f"CharCNN.v1: kernel_width is {kernel_width}: take an odd number")
    return _char_encoder(
        "char_cnn",
        CharCNN,
        rows,
        max_characters,
        zero_digits,
        cache,
        project,
        width=width,
        kernels=kernels,
        kernel_width=kernel_width,
        project=project,
        dropout=dropout,
        output_dropout=output_dropout,
    )


def char_transformer(
    width: int = 30,
    heads: int = 3,
    inner: int = 60,
    project: int = 30,
    rows: int = 500,
    max_characters: int = 50,
    attention_dropout: float = 0.15,
    dropout: float = 0.0,
    output_dropout: float = 0.0,
    zero_digits: bool = False,
    cache: int = CACHE,
) -> Embedder:
    """`CharTransformer.v1`: a word as the largest value over its characters of one
    Transformer layer with absolute sinusoids, at least 0, and a linear layer (T section 6.1).

    heads: that share `width`. inner: width of the feed-forward part. project: the
    layer's width. attention_dropout: on attention weights and in the feed-forward part.

    Errors: InputError where heads do not divide the width.
    """
    head_width(width, heads)
    return _char_encoder(
        "char_transformer",
        CharTransformer,
        rows,
        max_characters,
        zero_digits,
        cache,
        project,
        width=width,
        heads=heads,
        inner=inner,
        project=project,
        attention_dropout=attention_dropout,
        dropout=dropout,
        output_dropout=output_dropout,
    )


def char_adatrans(
    width: int = 30,
    heads: int = 3,
    inner: int = 60,
    project: int = 30,
    rows: int = 500,
    max_characters: int = 50,
    attention_dropout: float = 0.15,
    dropout: float = 0.0,
    output_dropout: float = 0.0,
    zero_digits: bool = False,
    cache: int = CACHE,
) -> Embedder:
    """`CharAdaTrans.v1`: as `CharTransformer.v1`, with TENER's attention in the layer
    (T sections 3.2 and 6.1): unscaled, with relative sinusoids, no key and no output
    projection.

    Errors: InputError where heads do not divide the width.
    """
    head_width(width, heads)
    return _char_encoder(
        "char_adatrans",
        CharAdaTrans,
        rows,
        max_characters,
        zero_digits,
        cache,
        project,
        width=width,
        heads=heads,
        inner=inner,
        project=project,
        attention_dropout=attention_dropout,
        dropout=dropout,
        output_dropout=output_dropout,
    )


def char_ngram_cnn(
    width: int = 25,
    kernels: int = 20,
    longest: int = 3,
    max_characters: int = 20,
    cache: int = CACHE,
) -> Embedder:
    """`CharNgramCNN.v1`: the largest value over a word of `kernels` kernels on each n of
    its characters, n from 1 to `longest` (X section 3.1: 3 * 20 = 60).

    The alphabet is that of the authors' code, the letters, digits and punctuation of
    ASCII; all else is one unknown character, trained like the others. To a character's
    embedding come 4 features: upper case, lower case, digit, punctuation.

    width: of the embedding. max_characters: words are cut at the right, or padded with a
    trained vector, to this size.

    Errors: InputError where no word is as long as the longest kernel.
    """
    if not 1 <= longest <= max_characters:
        raise InputError(
            f"CharNgramCNN.v1: longest is {longest}: take 1 to max_characters, {max_characters}"
        )
    arguments = {
        "rows": len(ASCII) + 1,
        "width": width,
        "kernels": kernels,
        "longest": longest,
        "size": max_characters,
    }
    return Model(
        "char_ngram_cnn",
        partial(_forward_ngrams, WordCache(cache)),
        init=init_table,
        dims={"nO": kernels * longest},
        attrs={"max_characters": max_characters},
        shims=[TorchShim(CharNgramCNN, arguments)],
    )


def char_concat(
    letters: int = 8,
    width: int = 32,
    rows: int = 500,
    dropout: float = 0.0,
    spread: float | None = None,
) -> Embedder:
    """`CharConcat.v1`: the vectors of a word's first and last letters side by side
    (K section 5: 2 * 8 letters of 32, width 512).

    A shorter word has a padding vector, trained too, after its first letters and before
    its last. letters: how many at each end. width: of a letter's vector.
    rows: capacity for distinct letters of the training data. dropout: on the vectors.
    spread: as of `CharBiLSTM.v1`.
    """
    arguments = {
        "rows": rows + 2,
        "width": width,
        "symbols": 2 * letters,
        "dropout": dropout,
        "spread": spread,
    }
    return Model(
        "char_concat",
        _forward_ends,
        init=init_table,
        dims={"nO": 2 * letters * width},
        attrs={"rows": {}, "capacity": rows, "letters": letters},
        shims=[TorchShim(Lookup, arguments)],
    )


def _char_encoder(
    name: str,
    make: Callable[..., nn.Module],
    rows: int,
    max_characters: int,
    zero_digits: bool,
    cache: int,
    out_width: int,
    **arguments: Any,
) -> Embedder:
    """A module `(characters: (C,), lengths: (M,)) -> (M, out_width)` as an embedder."""
    return Model(
        name,
        partial(_forward_characters, WordCache(cache)),
        init=init_table,
        dims={"nO": out_width},
        attrs={
            "rows": {},
            "capacity": rows,
            "max_characters": max_characters,
            "zero_digits": zero_digits,
        },
        shims=[TorchShim(make, {"rows": rows + 1, **arguments})],
    )


def _forward_characters(cache: WordCache, model: Model, docs: list[Doc], is_train: bool) -> Any:
    return by_distinct_word(model, docs, is_train, partial(cache.embed, _embed_characters))


def _forward_ngrams(cache: WordCache, model: Model, docs: list[Doc], is_train: bool) -> Any:
    return by_distinct_word(model, docs, is_train, partial(cache.embed, _embed_ngrams))


def _forward_ends(model: Model, docs: list[Doc], is_train: bool) -> Any:
    return by_distinct_word(model, docs, is_train, _embed_ends)


def _embed_characters(
    model: Model, docs: list[Doc], words: list[str], is_train: bool
) -> tuple[Floats2d, Callable]:
    words = _cut(words, model.attrs["max_characters"])
    text = "".join(words)
    if model.attrs["zero_digits"]:
        text = text.translate(DIGITS)
    if is_train:
        add_rows(model, text)
    return run_shim(model, (_rows(model, text, model.attrs["rows"]), _lengths(words)), is_train)


def _embed_ngrams(
    model: Model, docs: list[Doc], words: list[str], is_train: bool
) -> tuple[Floats2d, Callable]:
    words = _cut(words, model.attrs["max_characters"])
    text = "".join(words)
    inputs = _rows(model, text, _ASCII_ROWS), _rows(model, text, _KIND), _lengths(words)
    return run_shim(model, inputs, is_train)


def _embed_ends(
    model: Model, docs: list[Doc], words: list[str], is_train: bool
) -> tuple[Floats2d, Callable]:
    n = model.attrs["letters"]
    words = [word if len(word) <= 2 * n else word[:n] + word[-n:] for word in words]
    text = "".join(words)
    if is_train:
        add_rows(model, text)
    rows = _rows(model, text, model.attrs["rows"])
    padded = torch.cat([rows, rows.new_tensor([model.attrs["capacity"] + 1])])
    lengths = numpy.array([len(word) for word in words])[:, None]
    ends = numpy.cumsum(lengths)[:, None]
    place = numpy.arange(n)
    first = numpy.where(place < lengths, ends - lengths + place, -1)
    last = numpy.where(n - place <= lengths, ends - n + place, -1)
    letters = torch.from_numpy(numpy.hstack([first, last])).to(padded.device)
    return run_shim(model, (padded[letters],), is_train)


def _cut(words: list[str], size: int) -> list[str]:
    return [word[:size] or " " for word in words]


def _lengths(words: list[str]) -> Tensor:
    return torch.tensor([len(word) for word in words])


def _rows(model: Model, text: str, rows: dict[str, int]) -> Tensor:
    """The row of each character, 0 for one without."""
    found = torch.tensor([rows.get(character, 0) for character in text], dtype=torch.int64)
    return found.to(shim_of(model).device)
