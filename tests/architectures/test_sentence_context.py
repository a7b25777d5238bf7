"""`SentenceContext.v1` around models that give token vectors."""

import numpy
import pytest
import spacy

from spacy_psa.architectures.document_memory import document_memory
from spacy_psa.architectures.sentence_context import sentence_context
from spacy_psa.errors import InputError
from tests.helpers.documents import LINES, initialized, make_tok2vec
from tests.helpers.words import docs_of, joined

VOCAB = spacy.blank("en").vocab


@pytest.fixture
def model():
    return initialized(sentence_context, VOCAB, window=1)


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
    assert changed(initialized(sentence_context, VOCAB, window=0), doc, other) == [0]
    assert changed(initialized(sentence_context, VOCAB, window=2), doc, other) == [0, 1, 2]


def test_it_stands_around_a_document_memory(doc):
    memory = document_memory(make_tok2vec(), width=4, dropout=0.0)
    model = initialized(sentence_context, VOCAB, memory)
    [output], backprop = model.begin_update([doc])
    backprop([numpy.ones_like(output)])
    assert output.shape == (len(doc), 16)
    for layer in (model, memory):
        module = layer.shims[0].module
        assert all(part.weight.grad.abs().sum() > 0 for part in (module.query, module.project))


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
        sentence_context(make_tok2vec(), **settings)
