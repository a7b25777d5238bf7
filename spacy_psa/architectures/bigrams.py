"""Embeds bigrams of characters, for corpora whose tokens are characters (Yan2019 section 4.1)."""

from collections.abc import Callable
from typing import Any

import numpy
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.architectures.distinct_words import Embedder, hand_out, init_table
from spacy_psa.architectures.embed import WithoutVector, embed_forms, meet_forms, word_table
from spacy_psa.errors import InputError, check_choice, check_sizes, naming

END = "</s>"


def bigram_embed(
    width: int = 50,
    rows: int = 60000,
    lower: bool = True,
    zero_digits: bool = True,
    without_vector: WithoutVector = "all",
) -> Embedder:
    """Build `BigramEmbed.v1`, which embeds each character together with the next one.

    It is meant for use beside a `WordEmbed.v1` for the characters themselves (Yan2019 section 4.1,
    after Zhang and Yang 2018). The last character of a doc is taken together with the end of the
    doc. Pretrained vectors of bigrams are in `nlp.vocab.vectors`, in one table with the vectors of
    characters; bigrams without one get vectors as words do in `WordEmbed.v1`.

    Args:
        width: width of a vector; it must equal the width of pretrained vectors, if there are any.
        rows: capacity for distinct bigrams of the training data.
        lower: whether the normal form of a bigram is in lower case, see `WordEmbed.v1`.
        zero_digits: whether its digits are read as 0, see `WordEmbed.v1`.
        without_vector: which bigrams without a pretrained vector get a trained one, "all",
            "numbers" or "none"; see `WordEmbed.v1`.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array (tokens, width) for each doc.

    Raises:
        InputError: if `width` is below 1, or `rows` below 0; if there is no such `without_vector`.
            On initialization, if most tokens are longer than a character. On the first use, if the
            pretrained vectors have another width.

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
        _forward,
        init=_init,
        dims={"nO": width},
        attrs={
            "rows": {},
            "capacity": rows,
            "lower": lower,
            "zero_digits": zero_digits,
            "without_vector": without_vector,
            "meet": _meet,
        },
        shims=[word_table(rows, width)],
    )


def bigrams(doc: Doc) -> list[str]:
    """List the n bigrams of a doc's n tokens.

    Examples:
        >>> import spacy
        >>> bigrams(Doc(spacy.blank("en").vocab, words=["a", "b"]))
        ['ab', 'b</s>']
    """
    words = [token.text for token in doc]
    return [a + b for a, b in zip(words, [*words[1:], END])]


def _forward(
    model: Model, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], Any]]:
    if not any(len(doc) for doc in docs):
        return [model.ops.alloc2f(0, model.get_dim("nO")) for _ in docs], lambda dY: []
    place: dict[str, int] = {}
    index = [place.setdefault(pair, len(place)) for doc in docs for pair in bigrams(doc)]
    vectors, embed_backprop = embed_forms(model, docs, list(place), is_train, "BigramEmbed.v1")
    return hand_out(model, vectors, embed_backprop, numpy.array(index), [len(doc) for doc in docs])


def _meet(model: Model, docs: list[Doc]) -> Tensor:
    pairs = dict.fromkeys(pair for doc in docs for pair in bigrams(doc))
    return meet_forms(model, docs, list(pairs), "BigramEmbed.v1")


def _init(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    lengths = [len(token.text) for doc in X or () for token in doc]
    if 2 * sum(length == 1 for length in lengths) < len(lengths):
        raise InputError(
            f"BigramEmbed.v1 needs characters as tokens, but the {len(lengths):,} tokens of the "
            f"first documents have {sum(lengths):,} characters: take the layer out of the config, "
            "or convert the corpus with characters as tokens"
        )
    init_table(model)
