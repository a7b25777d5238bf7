"""Memory zones, after which a vocabulary is as small as before."""

import pytest
import spacy
from spacy.tokens import Doc

from spacy_psa import memory
from spacy_psa.memory import memory_zone
from tests.helpers.pipelines import TEXTS, entities, random_nlp

ZONES = 40
WORDS = 1000


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Tables are renewed after few words."""
    monkeypatch.setattr(memory, "LEXEMES", 5 * WORDS)


def new_words(nlp, zones: int, prefix: str = "w") -> None:
    """Docs of words that were never seen before, each in a zone."""
    for zone in range(zones):
        with memory_zone(nlp):
            Doc(nlp.vocab, words=[f"{prefix}{zone}x{i}" for i in range(WORDS)])


def capacity(nlp) -> int:
    return nlp.vocab.strings._map.capacity


def test_tables_do_not_grow_with_new_words():
    nlp = spacy.blank("en")
    strings = len(nlp.vocab.strings)
    new_words(nlp, 10)
    largest = 0
    for turn in range(5):
        new_words(nlp, 10, prefix="abcde"[turn])
        largest = max(largest, capacity(nlp))
    assert len(nlp.vocab.strings) == strings
    assert largest <= 2**16
    assert len(nlp.vocab) < 10 * WORDS


def test_spacys_own_zone_grows_still():
    """If this fails, spaCy has mended its tables, and `memory_zone` may go."""
    nlp = spacy.blank("en")
    for zone in range(3 * ZONES):
        with nlp.memory_zone():
            Doc(nlp.vocab, words=[f"w{zone}x{i}" for i in range(WORDS)])
    assert capacity(nlp) > 2**16


def test_annotation_is_the_same_after_it():
    nlp = random_nlp()
    docs = list(nlp.pipe(TEXTS))
    expected = [entities(doc) for doc in docs]
    lexeme = nlp.vocab["London"]
    new_words(nlp, ZONES)
    with memory_zone(nlp):
        assert [entities(doc) for doc in nlp.pipe(TEXTS)] == expected
    # What was made outside of zones is valid for ever.
    assert [doc.text for doc in docs] == TEXTS
    assert [entities(doc) for doc in docs] == expected
    assert (lexeme.text, lexeme.lower_, lexeme.shape_) == ("London", "london", "Xxxxx")


def test_strings_that_were_added_stay():
    nlp = spacy.blank("en")
    number = nlp.vocab.strings.add("Xylbrq")
    new_words(nlp, ZONES)
    assert nlp.vocab.strings[number] == "Xylbrq"
    assert "w3x7" not in nlp.vocab.strings


def test_attributes_that_were_set_by_hand_stay():
    nlp = spacy.blank("en")
    nlp.vocab["the"].is_stop = False
    new_words(nlp, ZONES)
    assert not nlp.vocab["the"].is_stop
    assert nlp.vocab["of"].is_stop


def test_computed_attributes_are_those_of_the_pipeline():
    nlp = spacy.blank("en")
    flag = nlp.vocab.add_flag(lambda text: text == "the")
    new_words(nlp, ZONES)
    assert nlp.vocab["the"].check_flag(flag) and not nlp.vocab["of"].check_flag(flag)
    assert nlp.vocab["the"].is_stop


def test_an_error_in_a_zone_passes_through():
    nlp = spacy.blank("en")
    with pytest.raises(KeyError), memory_zone(nlp):
        raise KeyError
    new_words(nlp, 1)
