"""Embedders: Model[List[Doc], List[Floats2d]].

An embedder computes each distinct word of a batch once. Words and characters get their rows in the
order in which training first meets them. So no development or test text ever enters a vocabulary,
and any component can hold the layer, since it needs no pass over the corpus before training.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

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
from spacy_psa.errors import InputError, check_choice, check_rates, check_sizes, naming
from spacy_psa.modules.initialization import uniform
from spacy_psa.modules.lookup import Lookup
from spacy_psa.modules.word_table import WordTable

Embedder = Model[list[Doc], list[Floats2d]]
Attribute = Literal["TAG", "POS", "MORPH", "LEMMA", "NORM"]
WithoutVector = Literal["all", "numbers", "none"]
UNKNOWN = ""  # stands for the unknown word, since no token is empty
NO_VECTORS = Vectors(shape=(0, 0))
TABLE_NAMES = {"rows": "num_embeddings"}  # names in models of version 0.1
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
    """Build `WordEmbed.v1`: pretrained word vectors, fine-tuned, and vectors for words without one.

    The vector of a word is the sum of two parts. The first is its vector in `nlp.vocab.vectors`,
    which stays as it is: the vector of the word as written, else of the word in lower case (if
    `lower`), else zeros. The second is a trainable row for the normal form of the word.
    Only words of the training data have rows. A row starts at zero if the word has a pretrained
    vector, otherwise at U(-sqrt(3 / width), sqrt(3 / width)). This is the same as fine-tuning
    (Wei2020 section 5.2), at a fraction of the size. A word that is neither in the pretrained
    vectors nor in the training data has zeros.

    Args:
        width: width of a vector; it must equal the width of pretrained vectors, if there are any.
        rows: capacity for distinct words of the training data; further words get no row.
        lower: whether the normal form of a word is in lower case.
        zero_digits: whether the digits of the normal form are 0 (Yan2019 section 4.2).
        trainable: False leaves the pretrained vectors as they are, and no word has a row (Li2019
            section 3.1).
        without_vector: which words of the training data without a pretrained vector get a row,
            "all", "numbers" (words with a digit) or "none". The others are zeros in training too,
            as unknown words are later. It has no effect if there are no pretrained vectors.
        replace_rare: whether training reads a token as the unknown word with the probability
            1 / (1 + count), where count is the number of tokens with its normal form in the
            training data (code of Kitaev2018). This trains the vector of unknown words, which is
            zeros otherwise.
        spread: standard deviation of the numbers that new rows start with; None for
            1 / sqrt(width).
        pretrained: False learns all vectors and leaves the pretrained ones aside, for a pipeline
            in which another component needs them.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array (tokens, width) for each doc.

    Raises:
        InputError: if `width` is below 1, or `rows` below 0; if there is no such `without_vector`;
            if `trainable` is False although `replace_rare` is True or `pretrained` is False. On
            use, if the pretrained vectors have another width, or if there are none and `trainable`
            is False.

    Examples:
        >>> import spacy
        >>> model = word_embed(width=8, rows=100)
        >>> _ = model.initialize()
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> vectors, backprop = model.begin_update([doc])
        >>> vectors[0].shape, sorted(model.attrs["rows"])
        ((3, 8), ['ada', 'bob', 'met'])
    """
    with naming("WordEmbed.v1"):
        check_sizes(width=width)
        check_sizes(least=0, rows=rows)
        check_choice("without_vector", without_vector, WithoutVector)
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
    """Make the trainable vectors of `rows` words, and one vector for all other words."""
    return TorchShim(WordTable, {"num_embeddings": rows + 1, "width": width}, TABLE_NAMES)


def word_shape() -> Embedder:
    """Build `WordShape.v1`, a one-hot vector for the capitals of a word (Li2019 section 3.1).

    The four classes are upper case (`str.isupper`), else upper initial, else lower case
    (`str.islower`), else mixed. Words without letters are in the last class. Nothing is trained.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array (tokens, 4) for each doc.

    Examples:
        >>> import spacy
        >>> model = word_shape()
        >>> model.predict([spacy.blank("en")("NATO met Bob iPhone")])[0].argmax(1).tolist()
        [0, 2, 1, 3]
    """
    return Model("word_shape", _forward_shapes, dims={"nO": 4})


def tag_embed(
    width: int = 32,
    rows: int = 500,
    attribute: Attribute = "TAG",
    dropout: float = 0.0,
    spread: float | None = None,
) -> Embedder:
    """Build `TagEmbed.v1`, a trained vector for the tag of each token (Kitaev2018 section 2.1).

    The tag is the prediction of an earlier component, which must be among
    `training.annotating_components`. Tags get their rows in the order in which training meets
    them. Tags that training did not meet, and tokens without a tag, have the vector of the unknown
    tag, which is trained only if these occur in training.

    Args:
        width: width of a vector.
        rows: capacity for distinct tags of the training data.
        attribute: the attribute of the token that is read, "TAG", "POS", "MORPH", "LEMMA" or
            "NORM".
        dropout: dropout rate on the vectors; `training.dropout` does not change it.
        spread: standard deviation of the numbers that the vectors start with; None for
            1 / sqrt(width).

    Returns:
        Model[List[Doc], List[Floats2d]] with an array (tokens, width) for each doc.

    Raises:
        InputError: if `width` is below 1, or `rows` below 0; if there is no such `attribute`; if
            `dropout` is not from 0 to 1.

    Examples:
        >>> import spacy
        >>> model = tag_embed(width=4)
        >>> _ = model.initialize()
        >>> doc = Doc(spacy.blank("en").vocab, words=["dogs", "bark"], tags=["NNS", "VBP"])
        >>> model.predict([doc])[0].shape
        (2, 4)
    """
    with naming("TagEmbed.v1"):
        check_sizes(width=width)
        check_sizes(least=0, rows=rows)
        check_choice("attribute", attribute, Attribute)
        check_rates(dropout=dropout)
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
    """Build `ConcatEmbed.v1`, which puts the vectors of several embedders side by side.

    Args:
        *layers: the embedders. In a config they are blocks `[….embed.*.NAME]`, in the same
            order.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array for each doc, whose width is the sum of the
        widths of the layers.

    Raises:
        InputError: if there is no layer.

    Examples:
        >>> model = concat_embed(word_embed(width=8, rows=100), word_shape())
        >>> model.get_dim("nO")
        12
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
    model: Model,
    docs: list[Doc],
    words: list[str],
    is_train: bool,
    architecture: str = "WordEmbed.v1",
) -> tuple[Floats2d, Callable]:
    """Embed M distinct words as `WordEmbed.v1` does, for any embedder that has its attributes.

    In training, new words get rows. The function can be the `embed` of `by_distinct_word`. Errors
    name the `architecture`.
    """
    width = model.get_dim("nO")
    vectors = docs[0].vocab.vectors if model.attrs.get("pretrained", True) else NO_VECTORS
    pretrained, found = _pretrained(architecture, vectors, words, width, model.attrs["lower"])
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
    """Select the normal forms that may have a row of their own."""
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
    vectors, _ = _pretrained("WordEmbed.v1", vocab.vectors, words, width, model.attrs["lower"])
    return model.ops.asarray2f(vectors), _ignore_gradient


def _embed_shapes(
    model: Model, docs: list[Doc], words: list[str], is_train: bool
) -> tuple[Floats2d, Callable]:
    one_hot = numpy.eye(4, dtype="float32")[[_shape(word) for word in words]]
    return model.ops.asarray2f(one_hot), _ignore_gradient  # type: ignore[arg-type]


def _shape(word: str) -> int:
    if word.isupper():
        return 0
    if word[:1].isupper():
        return 1
    return 2 if word.islower() else 3


def _ignore_gradient(d_vectors: Floats2d) -> None:
    pass


def _embed_tags(
    model: Model, docs: list[Doc], tags: list[str], is_train: bool
) -> tuple[Floats2d, Callable]:
    if is_train:
        add_rows(model, filter(None, tags))
    rows = torch.tensor([[model.attrs["rows"].get(tag, 0)] for tag in tags])
    return run_shim(model, (rows.to(shim_of(model).device),), is_train)


def add_rows(model: Model, symbols: Iterable[str]) -> dict[str, int]:
    """Give a row to each symbol that has none, up to the capacity.

    Returns:
        The new rows, by symbol.
    """
    rows, new = model.attrs["rows"], {}
    for symbol in symbols:
        if symbol not in rows and len(rows) < model.attrs["capacity"]:
            rows[symbol] = new[symbol] = len(rows) + 1
    return new


def _pretrained(
    architecture: str, vectors: Vectors, words: list[str], width: int, lower: bool
) -> tuple[Any, list[bool]]:
    """Look up the pretrained vectors (M, width) of words, and whether each word has one.

    Errors name the architecture.
    """
    if not vectors.size:
        return numpy.zeros((len(words), width), dtype="float32"), [False] * len(words)
    if vectors.shape[1] != width:
        raise InputError(
            f"{architecture} has width {width} but the pretrained vectors have {vectors.shape[1]}: "
            f"set width = {vectors.shape[1]}, or take other vectors"
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
    """Make the module of an embedder, if it has none yet."""
    shim = shim_of(model)
    if shim._model is None:
        shim.build()
