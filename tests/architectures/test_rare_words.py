"""Rare words read as unknown ones."""

from collections import Counter

import numpy
import pytest
import torch
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.architectures.embed import RareWords, word_embed
from tests.helpers.embedders import having_met


def replaced(rare, docs, times=400):
    """The share of each word's tokens that were drawn, in `times` passes."""
    words = sorted({token.text for doc in docs for token in doc})
    index = numpy.array([words.index(token.text) for doc in docs for token in doc])
    numpy.random.seed(0)
    drawn, tokens = Counter(), Counter()
    for _ in range(times):
        for i, unknown in zip(index, rare.draw(docs, words, index, [len(doc) for doc in docs])):
            tokens[words[i]] += 1
            drawn[words[i]] += int(unknown)
    return {word: drawn[word] / tokens[word] for word in words}


def test_words_are_replaced_with_one_over_one_plus_their_count(docs):
    rare = RareWords()
    shares = replaced(rare, docs)
    assert rare.counts == {"a": 3, "rose": 2, "is": 2, "Every": 1, "Rose": 1, "thorn": 1}
    for word, share in shares.items():
        assert share == pytest.approx(1 / (1 + rare.counts[word]), abs=0.08)


def test_a_text_counts_once_though_training_reads_it_often(docs):
    rare = RareWords()
    replaced(rare, docs[:1], 3)
    assert rare.counts == {"a": 2, "rose": 2, "is": 1}
    replaced(rare, docs, 1)
    assert rare.counts["a"] == 3 and rare.counts["thorn"] == 1


def test_counts_are_of_normal_forms(docs):
    model = having_met(word_embed(8, replace_rare=True), docs)
    assert model.attrs["rare"].counts == {"a": 3, "rose": 3, "is": 2, "every": 1, "thorn": 1}


def test_unknown_words_are_read_as_what_stood_for_rare_ones(docs):
    model = having_met(word_embed(8, replace_rare=True), docs)
    table = model.shims[0].module.table.weight
    with torch.no_grad():
        table[0] = 7.0
    unseen = Doc(docs[0].vocab, words=["nightingale", "rose"])
    (vectors,) = model.predict([unseen])
    assert (vectors[0] == 7.0).all() and not (vectors[1] == 7.0).any()
    numpy.random.seed(1)
    outputs, backprop = model.begin_update(docs)
    unknown = sum(int((out == 7.0).all(1).sum()) for out in outputs)
    assert 0 < unknown < 10
    backprop([numpy.ones_like(out) for out in outputs])
    assert (table.grad[0] == unknown).all()
    assert "" not in model.attrs["rows"]


def test_predictions_replace_nothing_and_training_without_the_option_neither(docs):
    model = having_met(word_embed(8, replace_rare=True), docs)
    numpy.testing.assert_array_equal(model.predict(docs)[0], model.predict(docs)[0])
    plain = having_met(word_embed(8), docs)
    numpy.testing.assert_array_equal(plain.begin_update(docs)[0][0], plain.predict(docs)[0])


def test_counts_are_not_saved_with_the_model(docs):
    model = having_met(word_embed(8, replace_rare=True), docs)
    loaded = word_embed(8, replace_rare=True).from_bytes(model.to_bytes())
    numpy.testing.assert_array_equal(loaded.predict(docs)[0], model.predict(docs)[0])
    assert not loaded.attrs["rare"].counts
    loaded.begin_update(docs)
    assert loaded.attrs["rare"].counts["a"] == 3


def test_empty_docs_alone_are_nothing_to_count():
    model = word_embed(8, replace_rare=True)
    model.initialize()
    outputs, _ = model.begin_update([Doc(Vocab())])
    assert [out.shape for out in outputs] == [(0, 8)]
