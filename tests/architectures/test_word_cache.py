"""The vectors of words that annotation remembers: the same as without, and never stale."""

import pickle

import numpy
import pytest
import torch
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import SGD

from spacy_psa.bridge.shim import shim_of
from tests.helpers.words import docs_of

WORDS = "the cat sat on the mat , and the Cat ran"


def built(cache):
    torch.manual_seed(0)
    make = registry.architectures.get("spacy-psa.CharBiLSTM.v1")
    model = make(width=6, hidden=4, cache=cache)
    model.initialize()
    return model


@pytest.mark.parametrize("size", [1, 3, 100])
def test_vectors_are_those_without_a_cache(size):
    plain, caching = built(0), built(size)
    for line in (WORDS, "a new dog", WORDS, "the dog"):
        expected, found = (
            plain.predict(docs_of(Vocab(), line)),
            caching.predict(docs_of(Vocab(), line)),
        )
        numpy.testing.assert_allclose(found[0], expected[0], atol=1e-6)


def test_a_remembered_word_is_not_computed_again(monkeypatch):
    model = built(100)
    first = model.predict(docs_of(Vocab(), WORDS))[0]
    monkeypatch.setattr(shim_of(model).module, "forward", None)
    numpy.testing.assert_array_equal(model.predict(docs_of(Vocab(), WORDS))[0], first)
    with pytest.raises(TypeError):
        model.predict(docs_of(Vocab(), "unheard"))


def test_new_weights_make_it_forget():
    model, line = built(100), docs_of(Vocab(), WORDS)
    before = model.predict(line)[0].copy()
    vectors, backprop = model.begin_update(line)
    backprop([numpy.ones_like(vectors[0])])
    model.finish_update(SGD(0.5))
    after = model.predict(line)[0]
    assert not numpy.allclose(after, before)
    fresh = built(0).from_bytes(model.to_bytes())
    numpy.testing.assert_allclose(after, fresh.predict(line)[0], atol=1e-6)


def test_loading_makes_it_forget():
    model, line = built(100), docs_of(Vocab(), WORDS)
    model.predict(line)
    torch.manual_seed(7)
    other = registry.architectures.get("spacy-psa.CharBiLSTM.v1")(width=6, hidden=4)
    other.initialize()
    model.from_bytes(other.to_bytes())
    numpy.testing.assert_allclose(model.predict(line)[0], other.predict(line)[0], atol=1e-6)


def test_it_is_not_saved_and_pickles():
    model = built(100)
    before = model.to_bytes()
    expected = model.predict(docs_of(Vocab(), WORDS))[0]
    assert model.to_bytes() == before
    again = pickle.loads(pickle.dumps(model))
    numpy.testing.assert_allclose(again.predict(docs_of(Vocab(), WORDS))[0], expected, atol=1e-6)
