"""Embedders Model[List[Doc], List[Floats2d]] of words and of bigrams."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from itertools import repeat
from operator import methodcaller
from typing import Any, Literal

import numpy
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.vectors import Mode, Vectors
from thinc.api import Model
from thinc.types import Floats2d
from thinc.util import to_numpy
from torch import Tensor

from spacy_psa.architectures.distinct_words import (
    DIGITS,
    TABLE_NAMES,
    UNKNOWN,
    Embed,
    Embedded,
    Embedder,
    add_rows,
    by_distinct_word,
    distinct_words,
    hand_out,
    ignore_gradient,
    init_table,
    masked,
)
from spacy_psa.bridge.shim import TorchShim, shim_of
from spacy_psa.errors import (
    InputError,
    check_amounts,
    check_choice,
    check_rates,
    check_sizes,
    naming,
)
from spacy_psa.modules.initialization import uniform
from spacy_psa.modules.lookup import WordTable
from spacy_psa.ragged import to_device

WithoutVector = Literal["all", "numbers", "none"]
END = "</s>"  # the bigram of the last character ends with it
NO_VECTORS = Vectors(shape=(0, 0))


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
    word_dropout: float = 0.0,
    normalize: bool = False,
    by_form: bool = False,
    dropout: float = 0.0,
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
        pretrained: False learns all vectors and ignores the pretrained ones, for a pipeline in
            which another component needs them.
        word_dropout: share of the tokens that training reads as the unknown word, drawn anew each
            time, whatever their count. It trains the vector of unknown words, and lets the model
            rely on characters and context. `training.dropout` does not change it.
        normalize: whether pretrained vectors are scaled to length 1, as long as new rows are on
            average (code of Yan2019). Vectors of zeros stay zeros.
        by_form: whether the pretrained vector is that of the normal form (code of Yan2019), not
            that of the word as written. So with `zero_digits`, 1996 has the vector of 0000.
        dropout: share of the numbers of each token's vector that training sets to 0.
            `training.dropout` does not change it.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array (tokens, width) for each doc.

    Raises:
        InputError: for a setting out of its range, and if `trainable` is False although
            `replace_rare` is True or `pretrained` is False. On use, if the pretrained vectors have
            another width, or if there are none and `trainable` is False.

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
        check_rates(word_dropout=word_dropout)
        check_rates(below_one=True, dropout=dropout)
        check_amounts(spread=0.0 if spread is None else spread)
    if not trainable and (replace_rare or not pretrained):
        raise InputError("WordEmbed.v1: replace_rare and pretrained = false need trainable = true")
    attrs = {
        "lower": lower,
        "zero_digits": zero_digits,
        "word_dropout": word_dropout,
        "normalize": normalize,
        "by_form": by_form,
        "dropout": dropout,
    }
    by_word = _drop if dropout or word_dropout or replace_rare else by_distinct_word
    if not trainable:
        forward = partial(by_word, embed=_embed_pretrained)
        return Model("word_embed", forward, dims={"nO": width}, attrs=attrs)
    model: Embedder = Model(
        "word_embed",
        partial(by_word, embed=embed_forms),
        init=init_table,
        dims={"nO": width},
        attrs={
            **attrs,
            "rows": {},
            "capacity": rows,
            "without_vector": without_vector,
            "rare": RareWords() if replace_rare else None,
            "init_std": spread,
            "pretrained": pretrained,
            "meet": _meet_words,
        },
        shims=[word_table(rows, width)],
    )
    return model


def bigram_embed(
    width: int = 50,
    rows: int = 60000,
    lower: bool = True,
    zero_digits: bool = True,
    without_vector: WithoutVector = "all",
) -> Embedder:
    """Build `BigramEmbed.v1`, which embeds each character together with the next one.

    It is for corpora whose tokens are characters, together with a `WordEmbed.v1` for the characters
    themselves (Yan2019 section 4.1, after Zhang and Yang 2018). The last character of a doc is
    paired with the end of the doc. Pretrained vectors of bigrams are in `nlp.vocab.vectors`, in one
    table with the vectors of characters; bigrams without one get vectors as words do in
    `WordEmbed.v1`.

    Args:
        width: as in `word_embed`.
        rows: capacity for distinct bigrams of the training data.
        lower: as in `word_embed`.
        zero_digits: as in `word_embed`.
        without_vector: as in `word_embed`.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array (tokens, width) for each doc.

    Raises:
        InputError: for a setting out of its range. On initialization, if most tokens are longer
            than a character. On the first use, if the pretrained vectors have another width.

    Examples:
        >>> import spacy
        >>> model = bigram_embed(width=8, rows=100)
        >>> _ = model.initialize()
        >>> doc = Doc(spacy.blank("zh").vocab, words=["北", "京"])
        >>> model.predict([doc])[0].shape
        (2, 8)
    """
    with naming("BigramEmbed.v1"):
        check_sizes(width=width)
        check_sizes(least=0, rows=rows)
        check_choice("without_vector", without_vector, WithoutVector)
    return Model(
        "bigram_embed",
        _forward_bigrams,
        init=_init_bigrams,
        dims={"nO": width},
        attrs={
            "rows": {},
            "capacity": rows,
            "lower": lower,
            "zero_digits": zero_digits,
            "without_vector": without_vector,
            "meet": _meet_bigrams,
        },
        shims=[word_table(rows, width)],
    )


def word_table(rows: int, width: int) -> TorchShim:
    """Make the trainable vectors of `rows` words, and one vector for all other words."""
    return TorchShim(WordTable, {"num_embeddings": rows + 1, "width": width}, TABLE_NAMES)


class RareWords:
    """Counts the word forms of the training data and reads rare ones as unknown, at random.

    A text counts once, however often training reads it. So from the second epoch on, the counts are
    over the training data; before that, they are over the part that was read. They are not saved
    with the model; `state_dict` returns them for the checkpoint of a training.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.texts: set[int] = set()

    def draw(
        self, docs: Sequence[Doc], forms: Sequence[str], index: Any, sizes: Sequence[int]
    ) -> NDArray[numpy.bool_]:
        """Draw the tokens that are read as the unknown word: (N,) bool.

        The probability of each token is 1 / (1 + the count of its form). The numbers are drawn from
        numpy's generator, which spaCy seeds.

        Args:
            forms: (M,) the normal forms of their distinct words.
            index: (N,) the word of each token.
        """
        self.count(docs, forms, index, sizes)
        chances = 1.0 / (1.0 + numpy.array([self.counts[form] for form in forms]))
        return numpy.random.random(len(index)) < chances[index]

    def count(
        self, docs: Sequence[Doc], forms: Sequence[str], index: Any, sizes: Sequence[int]
    ) -> None:
        """Count the forms of the docs that are new. The arguments are those of `draw`."""
        is_new = []
        for doc in docs:
            # Python's own hash differs between processes, and a resumed training is a new process.
            digest = blake2b(doc.to_array(["ORTH"]).tobytes(), digest_size=7).digest()
            text = int.from_bytes(digest, "little")
            is_new.append(text not in self.texts)
            self.texts.add(text)
        counts = numpy.bincount(index[numpy.repeat(is_new, sizes)], minlength=len(forms))
        for form, count in zip(forms, counts.tolist()):
            self.counts[form] += count

    def state_dict(self) -> dict[str, Any]:
        """Return the counts and the texts that were read, for the checkpoint of a training."""
        return {"counts": dict(self.counts), "texts": sorted(self.texts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Set the counts and the texts to those of a `state_dict`."""
        self.counts, self.texts = Counter(state["counts"]), set(state["texts"])


def _drop(model: Model, docs: list[Doc], is_train: bool, embed: Embed) -> Any:
    """Embed words by `embed`, in training without some tokens and some numbers, as it is set."""
    if not is_train or not any(map(len, docs)):
        return by_distinct_word(model, docs, is_train, embed)
    words, index, sizes = distinct_words(docs)
    rare, rate = model.attrs.get("rare"), model.attrs["word_dropout"]
    if rare is not None or rate:
        unknown = numpy.zeros(len(index), dtype=bool)
        if rare is not None:
            unknown |= rare.draw(docs, _normal_forms(model, words), index, sizes)
        if rate:
            unknown |= numpy.random.random(len(index)) < rate
        words, index = [*words, UNKNOWN], numpy.where(unknown, len(words), index)
    vectors, backprop = hand_out(model, *embed(model, docs, words, True), index, sizes)
    if not (rate := model.attrs["dropout"]):
        return vectors, backprop
    return masked(vectors, backprop, [model.ops.get_dropout_mask(v.shape, rate) for v in vectors])


def _meet_words(model: Model, docs: list[Doc]) -> Tensor:
    words, index, sizes = distinct_words(docs)
    if model.attrs["rare"] is not None:
        model.attrs["rare"].count(docs, _normal_forms(model, words), index, sizes)
    return meet_forms(model, docs, words)


def embed_forms(
    model: Model,
    docs: list[Doc],
    words: list[str],
    is_train: bool,
    architecture: str = "WordEmbed.v1",
) -> Embedded:
    """Embed distinct words as `WordEmbed.v1` does, for any embedder that has its attributes.

    In training, new words get rows. Errors name the `architecture`.
    """
    vectors = _vectors(model, docs)
    pretrained, known = _pretrained(model, architecture, vectors, words)
    forms = _normal_forms(model, words)
    if is_train:
        _assign_rows(model, forms, known, vectors)
    shim = shim_of(model)
    rows = torch.tensor(list(map(model.attrs["rows"].get, forms, repeat(0))))
    trained, backprop = shim.run((to_device(rows, shim.device),), is_train)
    return trained + model.ops.asarray2f(pretrained), backprop


def meet_forms(
    model: Model, docs: list[Doc], words: list[str], architecture: str = "WordEmbed.v1"
) -> Tensor:
    """Assign rows to distinct words as `embed_forms` does in training.

    Returns:
        (R,) int64, the rows of the words and of the unknown word, in order.
    """
    rows, forms = model.attrs["rows"], _normal_forms(model, words)
    if not all(map(rows.__contains__, forms)):
        vectors = _vectors(model, docs)
        _assign_rows(model, forms, _pretrained(model, architecture, vectors, words)[1], vectors)
    return torch.tensor(sorted({0, *(rows.get(form, 0) for form in forms)}))


def _assign_rows(model: Model, forms: list[str], known: list[bool], vectors: Vectors) -> None:
    """Assign rows to normal forms, and draw those without a pretrained vector."""
    if all(map(model.attrs["rows"].__contains__, forms)):
        return
    which: WithoutVector = model.attrs["without_vector"] if vectors.size else "all"
    new = add_rows(model, _entitled(forms, known, which))
    bare = sorted({new[form] for form, has in zip(forms, known) if form in new and not has})
    if bare:
        table = shim_of(model).module.get_parameter("table.weight")
        start = uniform(torch.empty(len(bare), table.shape[1]), model.attrs.get("init_std"))
        table.data[bare] = to_device(start, table.device)


def _vectors(model: Model, docs: list[Doc]) -> Vectors:
    return docs[0].vocab.vectors if model.attrs.get("pretrained", True) else NO_VECTORS


def _normal_forms(model: Model, words: list[str]) -> list[str]:
    if model.attrs["lower"]:
        words = list(map(str.lower, words))
    if model.attrs["zero_digits"]:
        words = list(map(methodcaller("translate", DIGITS), words))
    return words


def _entitled(forms: list[str], known: list[bool], which: WithoutVector) -> list[str]:
    """Select the normal forms that may have a row of their own."""
    return [
        form
        for form, has in zip(forms, known)
        if form != UNKNOWN
        and (has or which == "all" or (which == "numbers" and any(map(str.isdigit, form))))
    ]


def _embed_pretrained(model: Model, docs: list[Doc], words: list[str], is_train: bool) -> Embedded:
    vectors = docs[0].vocab.vectors
    if not vectors.size:
        raise InputError(
            "WordEmbed.v1 with trainable = false needs pretrained vectors: "
            "set [paths.vectors], or trainable = true"
        )
    pretrained, _ = _pretrained(model, "WordEmbed.v1", vectors, words)
    return model.ops.asarray2f(pretrained), ignore_gradient


def _pretrained(
    model: Model, architecture: str, vectors: Vectors, words: list[str]
) -> tuple[Any, list[bool]]:
    """Look up the pretrained vectors (M, nO) of words, and whether each word has one."""
    width = model.get_dim("nO")
    if not vectors.size:
        return numpy.zeros((len(words), width), dtype="float32"), [False] * len(words)
    if vectors.shape[1] != width:
        raise InputError(
            f"{architecture} has width {width} but the pretrained vectors have {vectors.shape[1]}: "
            f"set width = {vectors.shape[1]}, or use other vectors"
        )
    if model.attrs.get("by_form"):
        words = _normal_forms(model, words)
    if vectors.mode == Mode.floret:
        return _scaled(model, to_numpy(vectors.get_batch(words))), [True] * len(words)
    rows = to_numpy(vectors.find(keys=words))
    missing = numpy.flatnonzero(rows < 0).tolist() if model.attrs["lower"] else []
    if missing:
        rows[missing] = to_numpy(vectors.find(keys=[words[i].lower() for i in missing]))
    known = rows >= 0
    data = to_numpy(vectors.data[rows])
    return _scaled(model, numpy.where(known[:, None], data, numpy.float32(0.0))), known.tolist()


def _scaled(model: Model, data: Any) -> Any:
    """Scale vectors (M, nO) to length 1 where it is set; zeros stay zeros."""
    if not model.attrs.get("normalize"):
        return data
    lengths = numpy.linalg.norm(data, axis=1, keepdims=True)
    return data / numpy.where(lengths > 0, lengths, 1).astype(data.dtype)


def _bigrams(doc: Doc) -> list[str]:
    """List the n bigrams of a doc's n tokens."""
    words = [token.text for token in doc]
    return [a + b for a, b in zip(words, [*words[1:], END])]


def _forward_bigrams(
    model: Model, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], Any]]:
    if not any(map(len, docs)):
        return [model.ops.alloc2f(0, model.get_dim("nO")) for _ in docs], lambda dY: []
    place: dict[str, int] = {}
    index = [place.setdefault(pair, len(place)) for doc in docs for pair in _bigrams(doc)]
    vectors, embed_backprop = embed_forms(model, docs, list(place), is_train, "BigramEmbed.v1")
    return hand_out(model, vectors, embed_backprop, numpy.array(index), [len(doc) for doc in docs])


def _meet_bigrams(model: Model, docs: list[Doc]) -> Tensor:
    pairs = dict.fromkeys(pair for doc in docs for pair in _bigrams(doc))
    return meet_forms(model, docs, list(pairs), "BigramEmbed.v1")


def _init_bigrams(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    lengths = [len(token.text) for doc in X or () for token in doc]
    if 2 * sum(length == 1 for length in lengths) < len(lengths):
        raise InputError(
            f"BigramEmbed.v1 needs characters as tokens, but the {len(lengths):,} tokens of the "
            f"first documents have {sum(lengths):,} characters: remove the layer from the config, "
            "or convert the corpus with characters as tokens"
        )
    init_table(model)
