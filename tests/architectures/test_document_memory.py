"""`DocumentMemory.v1` around models that give token vectors."""

import numpy
import pytest
import spacy

from spacy_psa.architectures.crf import crf
from spacy_psa.architectures.document_memory import document_memory
from spacy_psa.architectures.sentencewise import listens
from spacy_psa.errors import InputError
from spacy_psa.sentences import split_sentences
from tests.helpers.documents import LINES, initialized, make_tok2vec
from tests.helpers.embedders import LISTENER
from tests.helpers.pipelines import make_examples, small_model
from tests.helpers.words import docs_of, joined

VOCAB = spacy.blank("en").vocab


@pytest.fixture
def model():
    return initialized(document_memory, VOCAB)


@pytest.fixture
def doc():
    return joined(docs_of(VOCAB, *LINES))


def changed(model, doc):
    """The texts of the tokens whose vectors are not those of their sentences alone."""
    below = numpy.concatenate(model.layers[0].predict(split_sentences([doc])))
    [found] = model.predict([doc])
    differs = ~numpy.isclose(found, below, rtol=1e-4, atol=1e-5).all(1)
    return {token.text for token, differ in zip(doc, differs, strict=True) if differ}


def test_words_that_stand_elsewhere_in_the_document_change(model, doc):
    assert changed(model, doc) == {"Ada", "ada", "Leeds", "."}


def test_of_content_words_alone_stop_words_and_punctuation_keep_their_vectors():
    model = initialized(document_memory, VOCAB, content_words=True)
    doc = joined(docs_of(VOCAB, "The US , the BBC .", "the us , The bbc of US ."))
    assert changed(model, doc) == {"The", "US", "BBC", "bbc"}


def test_it_stands_around_a_listener():
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": small_model()["tok2vec"]})
    memory = {"@architectures": "spacy-psa.DocumentMemory.v1", "tok2vec": LISTENER, "width": 4}
    chain = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": memory}
    ner = nlp.add_pipe("crf_ner", name="ner", config={"model": chain})
    ner.add_label("PER")
    nlp.initialize(lambda: make_examples(nlp))
    doc = nlp.get_pipe("tok2vec")(joined(docs_of(nlp.vocab, *LINES)))
    model = ner.model.get_ref("tok2vec")
    [found] = model.predict([doc])
    differs = ~numpy.isclose(found, doc.tensor, atol=1e-6).all(1)
    assert {token.text for token in doc if differs[token.i]} == {"Ada", "ada", "Leeds", "."}


def test_a_component_over_it_gets_whole_docs(model):
    assert listens(crf(model))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"occurrences": 0}, "DocumentMemory.v1: occurrences is 0"),
        ({"width": -1}, "DocumentMemory.v1: width is -1"),
        ({"scoring": "max"}, "DocumentMemory.v1: scoring is 'max'"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(InputError, match=message):
        document_memory(make_tok2vec(), **settings)
