"""WordEmbed.v1 with trainable = false (X section 3.1)."""

import numpy
import pytest
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.architectures.embed import word_embed
from spacy_psa.errors import InputError

WIDTH = 3


@pytest.fixture
def vocab():
    vocab = Vocab()
    vocab.set_vector("rome", numpy.array([1, 2, 3], dtype="float32"))
    vocab.set_vector("Oslo", numpy.array([4, 5, 6], dtype="float32"))
    return vocab


def test_vectors_stay_as_they_are(vocab):
    model = word_embed(WIDTH, trainable=False)
    docs = [Doc(vocab, words=["Rome", "Oslo", "oslo"]), Doc(vocab, words=["rome"])]
    model.initialize(X=docs)
    expected = [[[1, 2, 3], [4, 5, 6], [0, 0, 0]], [[1, 2, 3]]]
    for _ in range(2):
        vectors, backprop = model.begin_update(docs)
        backprop([numpy.ones_like(array) for array in vectors])
        model.finish_update(lambda key, weights, gradient: (weights - gradient, gradient))
        for array, rows in zip(vectors, expected, strict=True):
            numpy.testing.assert_array_equal(array, numpy.array(rows, dtype="float32"))
    assert not any(node.shims or node.param_names for node in model.walk())


def test_case_counts_where_words_are_not_lowered(vocab):
    model = word_embed(WIDTH, lower=False, trainable=False)
    assert not model.predict([Doc(vocab, words=["Rome"])])[0].any()


def test_vectors_are_needed():
    model = word_embed(WIDTH, trainable=False)
    with pytest.raises(InputError, match="needs pretrained vectors"):
        model.initialize(X=[Doc(Vocab(), words=["Rome"])])
        model.predict([Doc(Vocab(), words=["Rome"])])


def test_another_width_is_refused(vocab):
    with pytest.raises(InputError, match="width 4 but the pretrained vectors have 3"):
        word_embed(4, trainable=False).predict([Doc(vocab, words=["Rome"])])
