"""Embedders: Model[List[Doc], List[Floats2d]].

They compute each distinct word of a batch once. Words and characters get their
rows in the order in which training first meets them, so no development or test
text ever enters a vocabulary, and any component can hold the layer: it needs
no pass over the corpus before training.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, get_args

import numpy
import torch
from spacy.tokens import Doc
from spacy.vectors import Mode, Vectors
from thinc.api import Model, concatenate
from thinc.types import Floats2d
from thinc.util import to_numpy

from spacy_psa.architectures.rare_words import RareWords
from spacy_psa.bridge.layers import run_shim, shim_of
from spacy_psa.bridge.shim import TorchShim
from spacy_psa.errors import InputError
from spacy_psa.modules.initialization import uniform
from spacy_psa.modules.lookup import Lookup
from spacy_psa.modules.word_table import WordTable

Embedder = Model[list[Doc], list[Floats2d]]
Attribute = Literal["TAG", "POS", "MORPH", "LEMMA", "NORM"]
WithoutVector = Literal["all", "numbers", "none"]
UNKNOWN = ""  # no token is empty
NO_VECTORS = Vectors(shape=(0, 0))
TABLE_NAMES = {"rows": "num_embeddings"}  # as models of version 0.1 have them
LOOKUP_NAMES = {**TABLE_NAMES, "spread": "init_std"}
DIGITS = {ord(digit): "0" for digit in "123456789"}


def word_embed(
    width: int = 100,
    rows: int = 30000,
    lower: bool = True,
    zero_digits: bool = True,
    trainable: bool = True,
    without_vector: WithoutVector = "all",
    replace_rare: bool = False,
    spread: float | None = None,
    pretrained: bool = True,
) -> Embedder:
    """`WordEmbed.v1`: pretrained vectors, fine-tuned, and vectors for words without one.

    A word's vector is the one in `nlp.vocab.vectors` (as it stands, else lower-cased,
    where `lower`; zeros where there is none), which stays as it is, plus a trainable
    row for the word's normal form: for words of the training data alone, starting at
    zero over a pretrained vector and at U(-sqrt(3 / width), sqrt(3 / width)) without.
    This equals fine-tuning (Wei2020 section 5.2) at a fraction of the size. A word that is
    neither in the vectors nor in the training data is zeros.

    width: of the vectors; must be that of the pretrained ones, if there are any.
    rows: capacity for distinct training words; further ones get no row of their own.
    lower: normal forms are lower-cased. zero_digits: their digits are 0 (Yan2019 section 4.2).
    without_vector: which training words that have no pretrained vector get a row: "all",
    "numbers" (words with a digit) or "none". The others are zeros in training too, as
    unknown words are later. Counts only where there are pretrained vectors.
    trainable: false leaves the pretrained vectors as they are, and no word has a row of
    its own (Li2019 section 3.1).
    replace_rare: in training a token is read as the unknown word with probability
    1 / (1 + count), count the tokens of its normal form in the training data (Kitaev2018's code).
    This trains the vector of unknown words, which is zeros otherwise.
    spread: standard deviation of the numbers that new rows start with, null for
    1 / sqrt(width).
    pretrained: false leaves the pretrained vectors aside, where another component needs
    them, and learns all vectors.

    Errors: InputError where the pretrained vectors are of another width, or where there
    are none and `trainable` is false, for an unknown `without_vector`, and for
    `replace_rare` without `trainable`, or neither `pretrained` nor `trainable`.
    """
    if without_vector not in get_args(WithoutVector):
        raise InputError(
            f"WordEmbed.v1: without_vector is {without_vector!r}: "
            f"take one of {get_args(WithoutVector)}"
        )
    if not trainable and (replace_rare or not pretrained):
        raise InputError("WordEmbed.v1: replace_rare and pretrained = false need trainable = true")
    if not trainable:
        return Model("word_embed", _forward_pretrained, dims={"nO": width}, attrs={"lower": lower})
    model: Embedder = Model(
        "word_embed",
        _forward_words,
        init=init_table,
        dims={"nO": width},
        attrs={
            "rows": {},
            "capacity": rows,
            "lower": lower,
            "zero_digits": zero_digits,
            "without_vector": without_vector,
            "rare": RareWords() if replace_rare else None,
            "init_std": spread,
            "pretrained": pretrained,
        },
        shims=[word_table(rows, width)],
    )
    return model


def word_table(rows: int, width: int) -> TorchShim:
    """Trainable vectors for `rows` words, and one for all others."""
    return TorchShim(WordTable, {"num_embeddings": rows + 1, "width": width}, TABLE_NAMES)


def word_shape() -> Embedder:
    """`WordShape.v1`: how a word is capitalised, as a 4-d one-hot vector (Li2019 section 3.1).

    Upper case (`str.isupper`), else upper initial, else lower case (`str.islower`), else
    mixed, which words without letters are too. Nothing is trained.
    """
    return Model("word_shape", _forward_shapes, dims={"nO": 4})


def tag_embed(
    width: int = 32,
    rows: int = 500,
    attribute: Attribute = "TAG",
    dropout: float = 0.0,
    spread: float | None = None,
) -> Embedder:
    """`TagEmbed.v1`: a trained vector for each token's tag (Kitaev2018 section 2.1).

    The tag is the one that an earlier component of the pipeline predicts: name it in
    `training.annotating_components`. Tags get their rows as words do, in the order in
    which training meets them. A tag that training did not meet, and a token without a
    tag, have the unknown tag's vector, which is trained only where these occur.

    width: of the vectors. rows: capacity for distinct tags of the training data.
    attribute: what is read of the token: "TAG", "POS", "MORPH", "LEMMA" or "NORM".
    dropout: on the vectors. spread: as of `WordEmbed.v1`.

    Errors: InputError for another attribute.
    """
    if attribute not in get_args(Attribute):
        raise InputError(
            f"TagEmbed.v1: attribute is {attribute!r}: take one of {get_args(Attribute)}"
        )
    settings = {
        "num_embeddings": rows + 1,
        "width": width,
        "dropout": dropout,
        "init_std": spread,
    }
    return Model(
        "tag_embed",
        _forward_tags,
        init=init_table,
        dims={"nO": width},
        attrs={"rows": {}, "capacity": rows, "attribute": attribute},
        shims=[TorchShim(Lookup, settings, LOOKUP_NAMES)],
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
    model: Embedder = concatenate(*layers)
    if all(layer.has_dim("nO") for layer in layers):  # else known after initialization
        model.set_dim("nO", sum(layer.get_dim("nO") for layer in layers))
    return model


def distinct_words(docs: Iterable[Doc], attribute: str = "ORTH") -> tuple[list[str], Any, Any]:
    """The distinct words of docs, in order of their hashes, with the word of each
    token (N,) and the number of tokens of each doc (B,), all on the CPU.

    attribute: another string of the token instead of its word.
    """
    keys = [doc.to_array([attribute]).reshape(-1) for doc in docs]
    sizes = [len(k) for k in keys]
    distinct, index = numpy.unique(numpy.concatenate(keys), return_inverse=True)
    strings = next(iter(docs)).vocab.strings
    return [strings[key] for key in distinct.tolist()], index, sizes


def by_distinct_word(
    model: Model,
    docs: list[Doc],
    is_train: bool,
    embed: Callable[[Model, list[Doc], list[str], bool], tuple[Any, Callable]],
    attribute: str = "ORTH",
) -> tuple[list[Floats2d], Callable]:
    """Embed each distinct word of docs, or other attribute, once, and hand the vectors out
    to the tokens.

    embed: called with the model, the docs, the distinct words and `is_train`; gives
    their vectors (M, nO) and a callback for the vectors' gradient.
    """
    if not any(len(doc) for doc in docs):
        return [model.ops.alloc2f(0, model.get_dim("nO")) for _ in docs], lambda dY: []
    words, index, sizes = distinct_words(docs, attribute)
    vectors, embed_backprop = embed(model, docs, words, is_train)
    return hand_out(model, vectors, embed_backprop, index, sizes)


def hand_out(
    model: Model, vectors: Floats2d, embed_backprop: Callable, index: Any, sizes: list[int]
) -> tuple[list[Floats2d], Callable]:
    """Vectors (M, nO) to the tokens that have them, as an embedder gives them.

    index: (N,) the vector of each token. sizes: (B,) tokens of each doc.
    """
    xp = model.ops.xp
    index = xp.asarray(index)
    ends = numpy.cumsum(sizes)[:-1].tolist()

    def backprop(dY: list[Floats2d]) -> list[Doc]:
        d_vectors = model.ops.alloc2f(*vectors.shape)
        model.ops.scatter_add(d_vectors, index, xp.concatenate(dY))
        embed_backprop(d_vectors)
        return []

    return xp.split(vectors[index], ends), backprop


def _forward_words(model: Model, docs: list[Doc], is_train: bool) -> Any:
    rare = model.attrs["rare"]
    if rare is None or not is_train or not any(len(doc) for doc in docs):
        return by_distinct_word(model, docs, is_train, embed_forms)
    words, index, sizes = distinct_words(docs)
    unknown = rare.draw(docs, _normal_forms(model, words), index, sizes)
    index[unknown] = len(words)
    vectors, embed_backprop = embed_forms(model, docs, [*words, UNKNOWN], is_train)
    return hand_out(model, vectors, embed_backprop, index, sizes)


def _forward_pretrained(model: Model, docs: list[Doc], is_train: bool) -> Any:
    return by_distinct_word(model, docs, is_train, _embed_pretrained)


def _forward_shapes(model: Model, docs: list[Doc], is_train: bool) -> Any:
    return by_distinct_word(model, docs, is_train, _embed_shapes)


def _forward_tags(model: Model, docs: list[Doc], is_train: bool) -> Any:
    return by_distinct_word(model, docs, is_train, _embed_tags, model.attrs["attribute"])


def embed_forms(
    model: Model, docs: list[Doc], words: list[str], is_train: bool
) -> tuple[Floats2d, Callable]:
    """What `WordEmbed.v1` does with distinct words, for an embedder that has its attributes."""
    width = model.get_dim("nO")
    vectors = docs[0].vocab.vectors if model.attrs.get("pretrained", True) else NO_VECTORS
    pretrained, found = _pretrained(vectors, words, width, model.attrs["lower"])
    forms = _normal_forms(model, words)
    if is_train:
        which: WithoutVector = model.attrs["without_vector"] if vectors.size else "all"
        new = add_rows(model, _entitled(forms, found, which))
        bare = sorted({new[form] for form, has in zip(forms, found) if form in new and not has})
        if bare:
            table = shim_of(model).module.get_parameter("table.weight")
            start = uniform(torch.empty(len(bare), width), model.attrs.get("init_std"))
            table.data[bare] = start.to(table.device)
    rows = torch.tensor([model.attrs["rows"].get(form, 0) for form in forms])
    device = shim_of(model).device
    inputs = rows.to(device), torch.from_numpy(pretrained).to(device)
    return run_shim(model, inputs, is_train)


def _normal_forms(model: Model, words: list[str]) -> list[str]:
    if model.attrs["lower"]:
        words = [word.lower() for word in words]
    if model.attrs["zero_digits"]:
        words = [word.translate(DIGITS) for word in words]
    return words


def _entitled(forms: list[str], found: list[bool], which: WithoutVector) -> Iterator[str]:
    """The normal forms that may have a row of their own."""
    for form, has in zip(forms, found):
        if form == UNKNOWN:
            continue
        if has or which == "all" or (which == "numbers" and any(map(str.isdigit, form))):
            yield form


def _embed_pretrained(
    model: Model, docs: list[Doc], words: list[str], is_train: bool
) -> tuple[Floats2d, Callable]:
    vocab, width = docs[0].vocab, model.get_dim("nO")
    if not vocab.vectors.size:
        raise InputError(
            "WordEmbed.v1 with trainable = false needs pretrained vectors: "
            "set [paths.vectors], or trainable = true"
        )
    vectors, _ = _pretrained(vocab.vectors, words, width, model.attrs["lower"])
    return model.ops.asarray2f(vectors), _nothing_to_train


def _embed_shapes(
    model: Model, docs: list[Doc], words: list[str], is_train: bool
) -> tuple[Floats2d, Callable]:
    one_hot = numpy.eye(4, dtype="float32")[[_shape(word) for word in words]]
    return model.ops.asarray2f(one_hot), _nothing_to_train  # type: ignore[arg-type]


def _shape(word: str) -> int:
    if word.isupper():
        return 0
    if word[:1].isupper():
        return 1
    return 2 if word.islower() else 3


def _nothing_to_train(d_vectors: Floats2d) -> None:
    pass


def _embed_tags(
    model: Model, docs: list[Doc], tags: list[str], is_train: bool
) -> tuple[Floats2d, Callable]:
    if is_train:
        add_rows(model, filter(None, tags))
    rows = torch.tensor([[model.attrs["rows"].get(tag, 0)] for tag in tags])
    return run_shim(model, (rows.to(shim_of(model).device),), is_train)


def add_rows(model: Model, symbols: Iterable[str]) -> dict[str, int]:
    """Give a row to each symbol that has none, up to the capacity. Returns the new ones."""
    rows, new = model.attrs["rows"], {}
    for symbol in symbols:
        if symbol not in rows and len(rows) < model.attrs["capacity"]:
            rows[symbol] = new[symbol] = len(rows) + 1
    return new


def _pretrained(
    vectors: Vectors, words: list[str], width: int, lower: bool
) -> tuple[Any, list[bool]]:
    if not vectors.size:
        return numpy.zeros((len(words), width), dtype="float32"), [False] * len(words)
    if vectors.shape[1] != width:
        raise InputError(
            f"The table of words has width {width} but the pretrained vectors "
            f"have {vectors.shape[1]}: set its width to theirs, or take other vectors"
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


def init_table(model: Model, X: Any = None, Y: Any = None) -> None:
    shim = shim_of(model)
    if shim._model is None:
        shim.build()
