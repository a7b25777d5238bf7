"""`CharSentenceBiLSTM.v1`: word vectors from the characters of a whole sentence.

Its sentences are those of the docs; a doc without sentence boundaries is one.

Examples:
    >>> import spacy
    >>> model = char_sentence_bilstm(width=8, hidden=10)
    >>> _ = model.initialize()
    >>> model.predict([spacy.blank("en")("Ada met Bob")])[0].shape
    (3, 40)
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from spacy_psa.architectures.distinct_words import DIGITS, Embedder, add_rows, init_table
from spacy_psa.bridge.architecture import architecture, on_meta, setting
from spacy_psa.bridge.layers import run_shim, shim_of
from spacy_psa.bridge.shim import TorchShim
from spacy_psa.errors import check_sizes
from spacy_psa.modules.char_bilstm import CharSentenceBiLSTM
from spacy_psa.sentences import sentence_bounds

SPREAD = {"spread": "init_std"}


class _Characters(NamedTuple):
    """The characters of docs, one sentence after the other."""

    text: str
    lengths: list[int]
    first: list[int]
    last: list[int]


def _build(settings: dict[str, Any]) -> Embedder:
    rows = settings.pop("rows")
    cut = {key: settings.pop(key) for key in ("max_characters", "zero_digits")}
    check_sizes(least=0, rows=rows)
    check_sizes(max_characters=cut["max_characters"])
    settings["num_embeddings"] = rows + 1
    return Model(
        "CharSentenceBiLSTM",
        _forward,
        init=init_table,
        dims={"nO": on_meta(CharSentenceBiLSTM, **settings).output_width},  # type: ignore[dict-item]
        attrs={"rows": {}, "capacity": rows, "meet": _meet, **cut},
        shims=[TorchShim(CharSentenceBiLSTM, settings)],
    )


char_sentence_bilstm = architecture(
    CharSentenceBiLSTM,
    _build,
    name="CharSentenceBiLSTM",
    renamed=SPREAD,
    hidden=["num_embeddings"],
    extra=[setting("rows", 500), setting("max_characters", 50), setting("zero_digits", False)],
)
"""`CharSentenceBiLSTM.v1`: an LSTM over the characters of a sentence (Bohnet et al. 2018).

It has the settings of `CharSentenceBiLSTM`, with `spread` for `init_std`, and `rows`,
`max_characters` and `zero_digits` as the other character embedders. `training.dropout` does not
change its dropout rates.
"""


def _forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    if not any(map(len, docs)):
        return [model.ops.alloc2f(0, model.get_dim("nO")) for _ in docs], lambda dY: []
    read = _characters(model, docs)
    if is_train:
        add_rows(model, read.text)
    rows = [model.attrs["rows"].get(character, 0) for character in read.text]
    shim = shim_of(model)
    characters, first, last = (
        torch.tensor(numbers).to(shim.device) for numbers in (rows, read.first, read.last)
    )
    inputs = characters, torch.tensor(read.lengths), first, last
    vectors, backprop_vectors = run_shim(shim, inputs, is_train)
    xp = model.ops.xp
    ends = numpy.cumsum([len(doc) for doc in docs])[:-1].tolist()

    def backprop(dY: list[Floats2d]) -> list[Doc]:
        backprop_vectors(xp.concatenate(dY))
        return []

    return xp.split(vectors, ends), backprop


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


def _meet(model: Model, docs: list[Doc]) -> None:
    add_rows(model, _characters(model, docs).text)
