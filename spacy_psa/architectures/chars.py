"""Embedders that read the characters of a word: Model[List[Doc], List[Floats2d]].

`CharBiLSTM.v1`, `CharCNN.v1`, `CharIntNet.v1`, `CharTransformer.v1`, `CharAdaTrans.v1` and
`CharNgramCNN.v1` have the settings and defaults of the module of the same name in
`spacy_psa.modules`. All but `CharNgramCNN.v1` also have these settings:

- `rows`: capacity for distinct characters of the training data (default 500). All other characters
  are the unknown one, row 0.
- `max_characters`: number of characters that are read; longer words are cut at the right (50).
- `zero_digits`: whether every digit is read as 0 (Yan2019 section 4.2; false).
- `cache`: number of words to remember the vectors of, in annotation on a CPU; 0 for none (20,000).
  `CharNgramCNN.v1` has it too.

`training.dropout` does not change the dropout rates of these embedders.

Examples:
    >>> import spacy
    >>> model = char_bilstm(width=8, hidden=10)
    >>> _ = model.initialize()
    >>> model.predict([spacy.blank("en")("Ada met Bob")])[0].shape
    (3, 20)
"""

import string
from collections.abc import Callable, Mapping
from functools import partial
from itertools import repeat
from typing import Any

import numpy
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor, nn

from spacy_psa.architectures.distinct_words import (
    DIGITS,
    LOOKUP_NAMES,
    Embedder,
    WordCache,
    add_rows,
    by_distinct_word,
    distinct_words,
    init_table,
)
from spacy_psa.bridge.architecture import Architecture, architecture, on_meta, setting
from spacy_psa.bridge.layers import run_shim, shim_of
from spacy_psa.bridge.shim import TorchShim
from spacy_psa.errors import check_amounts, check_rates, check_sizes, naming
from spacy_psa.modules.char_attention import CharAdaTrans, CharTransformer
from spacy_psa.modules.char_bilstm import CharBiLSTM
from spacy_psa.modules.char_cnn import CharCNN, CharNgramCNN
from spacy_psa.modules.char_intnet import CharIntNet
from spacy_psa.modules.lookup import Lookup

CACHE = 20_000  # words; 16 MB for vectors of 200 numbers
ASCII = string.ascii_letters + string.digits + string.punctuation
_ASCII_ROWS = {character: row for row, character in enumerate(ASCII, 1)}
_KIND = {
    character: kind
    for kind, characters in enumerate(
        (string.ascii_uppercase, string.ascii_lowercase, string.digits, string.punctuation), 1
    )
    for character in characters
}


def _character_encoder(module: type[nn.Module], renamed: Mapping[str, str]) -> Architecture:
    """Make the architecture of a module `(characters: (C,), lengths: (M,)) -> (M, width)`."""

    def build(settings: dict[str, Any]) -> Embedder:
        rows, cache = settings.pop("rows"), WordCache(settings.pop("cache"))
        cut = {key: settings.pop(key) for key in ("max_characters", "zero_digits")}
        check_sizes(least=0, rows=rows)
        check_sizes(max_characters=cut["max_characters"])
        settings["num_embeddings"] = rows + 1
        return Model(
            module.__name__,
            partial(by_distinct_word, embed=_embed_characters, cache=cache),
            init=init_table,
            dims={"nO": on_meta(module, **settings).output_width},  # type: ignore[dict-item]
            attrs={"rows": {}, "capacity": rows, "meet": _meet_characters, **cut},
            shims=[TorchShim(module, settings, {"rows": "num_embeddings", **renamed})],
        )

    return architecture(
        module,
        build,
        name=module.__name__,
        renamed=renamed,
        hidden=["num_embeddings"],
        extra=[
            setting("rows", 500),
            setting("max_characters", 50),
            setting("zero_digits", False),
            setting("cache", CACHE),
        ],
    )


def _ngram_encoder(settings: dict[str, Any]) -> Embedder:
    """Build `CharNgramCNN.v1` from the settings of its module and `cache`."""
    cache = WordCache(settings.pop("cache"))
    settings["num_embeddings"] = len(ASCII) + 1
    renamed = {"rows": "num_embeddings", "size": "max_characters", **NGRAM_NAMES}
    return Model(
        "CharNgramCNN",
        partial(by_distinct_word, embed=_embed_ngrams, cache=cache),
        init=init_table,
        dims={"nO": on_meta(CharNgramCNN, **settings).output_width},  # type: ignore[dict-item]
        attrs={"max_characters": settings["max_characters"]},
        shims=[TorchShim(CharNgramCNN, settings, renamed)],
    )


SPREAD = {"spread": "init_std"}
FFN = {"inner": "ffn_dim"}
NGRAM_NAMES = {"kernels": "filters", "longest": "max_ngram"}

char_bilstm = _character_encoder(CharBiLSTM, SPREAD)
"""`CharBiLSTM.v1`: a bidirectional LSTM over the characters (Wei2020 section 5.2, Yan2019).

It has the settings of `CharBiLSTM`, with `spread` for `init_std`, and the settings above.
"""
char_cnn = _character_encoder(CharCNN, {"kernels": "filters", "kernel_width": "kernel_size"})
"""`CharCNN.v1`: a convolution over the characters (Yan2019 section 6.1).

It has the settings of `CharCNN`, with `kernels` for `filters` and `kernel_width` for
`kernel_size`, and the settings above.
"""
char_intnet = _character_encoder(
    CharIntNet, {"kernels": "filters", "kernel_widths": "kernel_sizes"}
)
"""`CharIntNet.v1`: dense convolutions over the characters, without down-sampling (Xin et al. 2018).

It has the settings of `CharIntNet`, with `kernels` for `filters` and `kernel_widths` for
`kernel_sizes`, and the settings above.
"""
char_transformer = _character_encoder(CharTransformer, FFN)
"""`CharTransformer.v1`: a Transformer layer over the characters (Yan2019 section 6.1).

It has the settings of `CharTransformer`, with `inner` for `ffn_dim`, and the settings above.
"""
char_adatrans = _character_encoder(CharAdaTrans, FFN)
"""`CharAdaTrans.v1`: a Transformer layer with the attention of TENER (Yan2019 section 3.1).

It has the settings of `CharAdaTrans`, with `inner` for `ffn_dim`, and the settings above.
"""
char_ngram_cnn = architecture(
    CharNgramCNN,
    _ngram_encoder,
    name="CharNgramCNN",
    renamed=NGRAM_NAMES,
    hidden=["num_embeddings"],
    extra=[setting("cache", CACHE)],
)
"""`CharNgramCNN.v1`: convolutions over the n-grams of a word's characters (Li2019 section 3.1).

It has the settings of `CharNgramCNN`, with `kernels` for `filters` and `longest` for
`max_ngram`, and `cache`.
"""


def char_concat(
    letters: int = 8,
    width: int = 32,
    rows: int = 500,
    dropout: float = 0.0,
    spread: float | None = None,
) -> Embedder:
    """Build `CharConcat.v1`, the vectors of a word's first and last letters side by side.

    Kitaev2018 (section 5) takes 2 * 8 letters with vectors of width 32, 512 numbers a word. A word
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
        InputError: if `letters` or `width` is below 1, or `rows` below 0; if `dropout` is not from
            0 to 1, or `spread` below 0.

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


def _embed_characters(
    model: Model, docs: list[Doc], words: list[str], is_train: bool
) -> tuple[Floats2d, Callable]:
    words = _cut(words, model.attrs["max_characters"])
    text, shim = _text(model, words), shim_of(model)
    if is_train:
        add_rows(model, text)
    lengths = torch.tensor(list(map(len, words)))
    return run_shim(shim, (_rows(shim, text, model.attrs["rows"]), lengths), is_train)


def _embed_ngrams(
    model: Model, docs: list[Doc], words: list[str], is_train: bool
) -> tuple[Floats2d, Callable]:
    words = _cut(words, model.attrs["max_characters"])
    text, shim = "".join(words), shim_of(model)
    lengths = torch.tensor(list(map(len, words)))
    inputs = _rows(shim, text, _ASCII_ROWS), _rows(shim, text, _KIND), lengths
    return run_shim(shim, inputs, is_train)


def _embed_ends(
    model: Model, docs: list[Doc], words: list[str], is_train: bool
) -> tuple[Floats2d, Callable]:
    n = model.attrs["letters"]
    words = _ends(model, words)
    text, shim = "".join(words), shim_of(model)
    if is_train:
        add_rows(model, text)
    rows = _rows(shim, text, model.attrs["rows"])
    padded = torch.cat([rows, rows.new_tensor([model.attrs["capacity"] + 1])])
    lengths = numpy.array([len(word) for word in words])[:, None]
    ends = numpy.cumsum(lengths)[:, None]
    place = numpy.arange(n)
    first = numpy.where(place < lengths, ends - lengths + place, -1)
    last = numpy.where(n - place <= lengths, ends - n + place, -1)
    letters = torch.from_numpy(numpy.hstack([first, last])).to(padded.device)
    return run_shim(shim, (padded[letters],), is_train)


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


def _rows(shim: TorchShim, text: str, rows: dict[str, int]) -> Tensor:
    """Find the row of each character, 0 for a character without one."""
    numbers = torch.tensor(list(map(rows.get, text, repeat(0))), dtype=torch.int64)
    return numbers.to(shim.device)
