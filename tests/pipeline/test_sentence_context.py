"""Documents whose sentences say what those around them are about."""

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Adam

from spacy_psa.sentences import unannotated
from tests.helpers.pipelines import entities, make_nlp, small_model, train

# The first sentence alone says what kind of name stands in the second one.
DOCUMENTS = {
    "Sports today . Leeds won .": "ORG",
    "Travel today . Leeds won .": "LOC",
    "Sports tomorrow . Leeds rested .": "ORG",
    "Travel tomorrow . Leeds rested .": "LOC",
}
EXPECTED = [[(3, 4, label)] for label in DOCUMENTS.values()]


def context_model():
    model = small_model()
    context = {"@architectures": "spacy-psa.SentenceContext.v1", "width": 8, "dropout": 0.0}
    model["tok2vec"] = {**context, "tok2vec": model["tok2vec"]}
    return model


def gold(nlp, text):
    words = text.split()
    doc = Doc(nlp.vocab, words, sent_starts=[i in (0, 3) for i in range(len(words))])
    doc.set_ents([Span(doc, 3, 4, DOCUMENTS[text])])
    return doc


def learn(model):
    nlp = make_nlp(model)
    docs = [gold(nlp, text) for text in DOCUMENTS]
    examples = [Example(unannotated(doc), doc) for doc in docs]
    train(nlp, steps=80, optimizer=Adam(0.02), examples=examples)
    return nlp


@pytest.fixture(scope="module")
def trained():
    return learn(context_model())


def predicted(nlp, **settings):
    docs = [unannotated(gold(nlp, text)) for text in DOCUMENTS]
    return [entities(doc) for doc in nlp.pipe(docs, **settings)]


def test_a_name_gets_the_label_that_the_sentence_before_gives_it(trained):
    assert predicted(trained) == EXPECTED


def test_without_the_context_equal_sentences_have_equal_labels():
    found = predicted(learn(small_model()))
    assert found[0] == found[1]


@pytest.mark.parametrize("settings", [{"batch_size": 1}, {"n_process": 2, "batch_size": 2}])
def test_batches_and_processes_change_nothing(trained, settings):
    assert predicted(trained, **settings) == EXPECTED


def test_a_pipeline_is_the_same_after_disk_and_bytes(trained, tmp_path):
    trained.to_disk(tmp_path)
    again = make_nlp(context_model()).from_bytes(trained.to_bytes())
    for nlp in (spacy.load(tmp_path), again):
        assert predicted(nlp) == EXPECTED


@pytest.mark.parametrize("text", ["", "Leeds", "  ", "Leeds \n Leeds"])
def test_odd_texts_are_annotated(trained, text):
    assert len(trained(text)) == len(trained.make_doc(text))
