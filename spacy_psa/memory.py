"""Memory that stays flat over a stream of ever-new words."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy
from preshed.maps import PreshMap
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

LEXEMES = 2**18
"""The number of words that come and go before the tables of a vocabulary are renewed."""


@contextmanager
def memory_zone(nlp: Language) -> Iterator[None]:
    """Use this as `nlp.memory_zone()`; memory does not grow with the number of zones.

    spaCy frees the words of a zone at its end. But each leaves a mark in the hash tables of the
    vocabulary, and tables that are full of marks are doubled. Here they are renewed now and then.

    Docs of the zone are invalid after it, as in spaCy. If an attribute of a lexeme was set by hand
    (`nlp.vocab["the"].is_stop = False`), it stays, and the tables are not renewed.

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> with memory_zone(nlp):
        ...     for doc in nlp.pipe(["Ada met Xylbrq."]):
        ...         print(len(doc))
        4
        >>> "Xylbrq" in nlp.vocab.strings
        False
    """
    with nlp.memory_zone():
        yield
    # A vocabulary also counts the words that a zone has removed.
    if len(nlp.vocab) >= LEXEMES and _computed(nlp.vocab):
        _renew(nlp.vocab)


def _computed(vocab: Any) -> bool:
    """Tell whether the attributes of all lexemes are those that the vocabulary computes."""
    words = [lexeme.text for lexeme in vocab]
    new = Vocab(lex_attr_getters=vocab.lex_attr_getters)
    attributes = list(vocab.lex_attr_getters)
    stored, computed = (Doc(each, words=words).to_array(attributes) for each in (vocab, new))
    return bool(numpy.array_equal(stored, computed))


def _renew(vocab: Any) -> None:
    """Set tables without marks in a vocabulary: one with its strings, and one without lexemes."""
    strings = vocab.strings
    table = PreshMap()
    for key, string in strings._map.items():
        table[key] = string
    strings._map = table
    getters = dict(vocab.lex_attr_getters)
    parts = ["strings", "vectors", "lookups"]
    vocab.from_bytes(vocab.to_bytes(exclude=parts), exclude=parts)
    vocab.lex_attr_getters = getters  # from_bytes wraps one of them once more
