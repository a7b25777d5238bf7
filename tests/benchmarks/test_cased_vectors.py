"""Vectors of lower-cased words, given to capitalised ones for spaCy's components."""

import numpy
import spacy
from spacy.vectors import Vectors

from benchmarks.cased_vectors import cased_vectors


def test_capitalised_words_get_the_vectors_of_lower_cased_ones(tmp_path):
    nlp = spacy.blank("en")
    data = numpy.eye(3, dtype="f")
    keys = [nlp.vocab.strings.add(word) for word in ("new york", "us", "US")]
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=data, keys=keys)
    nlp.to_disk(tmp_path / "uncased")
    path = cased_vectors(tmp_path / "uncased", tmp_path / "cased")
    found = spacy.load(path).vocab
    for word, row in (("New York", 0), ("New york", 0), ("NEW YORK", 0), ("Us", 1), ("US", 2)):
        numpy.testing.assert_array_equal(found[word].vector, data[row])
    assert not found["Boston"].has_vector
    assert cased_vectors(tmp_path / "nothing", path) == path
