"""`SentenceContext.v1` around models that give token vectors."""

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc
from spacy.util import registry

from spacy_psa.architectures import documentwise
from spacy_psa.architectures.document_memory import document_memory
from spacy_psa.architectures.sentence_context import sentence_context
from spacy_psa.errors import InputError
from tests.helpers.pipelines import small_model
from tests.helpers.words import docs_of, joined

VOCAB = spacy.blank("en").vocab
LINES = ["Ada met Babbage in Leeds .", "The class sailed .", "Leeds saw Ada", "Nobody came"]


def tok2vec():
    return registry.resolve({"model": small_model()["tok2vec"]})["model"]


def built(below=None, **settings):
    torch.manual_seed(0)
    model = sentence_context(below or tok2vec(), width=4, dropout=0.0, **settings)
    docs = docs_of(VOCAB, *LINES)
    model.initialize(X=docs)
    model.begin_update(docs)  # meets the words
    return model


@pytest.fixture
def model():
    return built(window=1)


@pytest.fixture
def doc():
    return joined(docs_of(VOCAB, *LINES))


def changed(model, doc, other):
    """The numbers of the sentences whose vectors differ in two docs of like sentences."""
    [one], [two] = model.predict([doc]), model.predict([other])
    return [
        i
        for i, (a, b) in enumerate(zip(doc.sents, other.sents, strict=True))
        if not numpy.allclose(one[a.start : a.end], two[b.start : b.end], atol=1e-5)
    ]


def test_a_sentence_sees_its_neighbours_and_no_others(model, doc):
    other = joined(docs_of(VOCAB, "Babbage in Leeds came .", *LINES[1:]))
    [one], [two] = model.predict([doc]), model.predict([other])
    numpy.testing.assert_allclose(one[-5:], two[-5:], atol=1e-5)  # the last two sentences
    assert not numpy.allclose(one[6:10], two[5:9], atol=1e-5)


def test_with_a_window_of_0_sentences_stand_alone(doc):
    other = joined(docs_of(VOCAB, "Babbage met Ada in Leeds !", *LINES[1:]))
    assert changed(built(window=0), doc, other) == [0]
    assert changed(built(window=2), doc, other) == [0, 1, 2]


def test_docs_that_follow_each_other_share_a_context_if_they_name_one_document(model, doc):
    docs = docs_of(VOCAB, *LINES)
    apart = numpy.concatenate(model.predict(docs))
    for sentence in docs:
        sentence.user_data["document"] = "D1"
    together = numpy.concatenate(model.predict(docs))
    [whole] = model.predict([doc])
    numpy.testing.assert_allclose(together, whole, rtol=1e-4, atol=1e-5)
    assert not numpy.allclose(apart, whole, atol=1e-5)


def test_training_and_annotation_compute_the_same(model, doc, monkeypatch):
    docs = [doc, Doc(VOCAB), docs_of(VOCAB, LINES[0])[0]]
    trained, _ = model.begin_update(docs)
    monkeypatch.setattr(documentwise, "TOKENS", 5)
    for a, b in zip(trained, model.predict(docs), strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_empty_docs_have_empty_arrays(model, doc):
    empty = Doc(VOCAB)
    assert [array.shape for array in model.predict([empty])] == [(0, 16)]
    assert [len(array) for array in model.predict([empty, doc])] == [0, len(doc)]


def test_it_stands_around_a_document_memory(doc):
    model = built(document_memory(tok2vec(), width=4, dropout=0.0))
    [output], backprop = model.begin_update([doc])
    backprop([numpy.ones_like(output)])
    gradients = [
        parameter.grad
        for node in model.walk()
        for shim in node.shims
        for parameter in shim.module.parameters()
    ]
    assert any(gradient is not None and gradient.abs().sum() > 0 for gradient in gradients)
    assert output.shape == (len(doc), 16)


def test_weights_and_predictions_survive_bytes(model, doc):
    other = built(window=1).from_bytes(model.to_bytes())
    numpy.testing.assert_array_equal(other.predict([doc])[0], model.predict([doc])[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": -1}, "SentenceContext.v1: window is -1"),
        ({"width": 0}, "SentenceContext.v1: width is 0"),
        ({"scoring": "max"}, "SentenceContext.v1: scoring is 'max'"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(InputError, match=message):
        sentence_context(tok2vec(), **settings)
