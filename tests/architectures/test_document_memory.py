"""`DocumentMemory.v1` around models that give token vectors."""

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc
from spacy.util import registry

from spacy_psa.architectures import documentwise
from spacy_psa.architectures.crf import crf
from spacy_psa.architectures.document_memory import document_memory
from spacy_psa.architectures.sentencewise import listens
from spacy_psa.errors import InputError
from spacy_psa.sentences import split_sentences
from tests.helpers.embedders import LISTENER
from tests.helpers.layers import torch_modules
from tests.helpers.pipelines import make_examples, small_encoder, small_model
from tests.helpers.words import docs_of, joined

VOCAB = spacy.blank("en").vocab
LINES = ["Ada met Babbage in Leeds .", "The ada class sailed .", "Leeds saw Ada", "Nobody came"]


def tok2vec(**options):
    return registry.resolve({"model": small_model(**options)["tok2vec"]})["model"]


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = document_memory(tok2vec(), width=4, dropout=0.0)
    docs = docs_of(VOCAB, *LINES)
    model.initialize(X=docs)
    model.begin_update(docs)  # meets the words
    return model


@pytest.fixture
def doc():
    return joined(docs_of(VOCAB, *LINES))


def assert_close(found, expected):
    numpy.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def changed(model, doc):
    """The texts of the tokens whose vectors are not those of their sentences alone."""
    below = numpy.concatenate(model.layers[0].predict(split_sentences([doc])))
    [found] = model.predict([doc])
    differs = ~numpy.isclose(found, below, rtol=1e-4, atol=1e-5).all(1)
    return {token.text for token, differ in zip(doc, differs, strict=True) if differ}


def test_words_that_stand_elsewhere_in_the_document_change(model, doc):
    assert changed(model, doc) == {"Ada", "ada", "Leeds", "."}


def test_docs_that_follow_each_other_share_a_memory_if_they_name_one_document(model, doc):
    docs = docs_of(VOCAB, *LINES)
    apart = numpy.concatenate(model.predict(docs))
    for sentence in docs:
        sentence.user_data["document"] = "D1"
    together = numpy.concatenate(model.predict(docs))
    [whole] = model.predict([doc])
    assert_close(together, whole)
    assert not numpy.allclose(apart, whole, atol=1e-5)


def test_documents_do_not_see_each_other(model, doc):
    other = joined(docs_of(VOCAB, "Ada ran", "Leeds won ."))
    [alone], [first, _] = model.predict([doc]), model.predict([doc, other])
    assert_close(first, alone)


def test_annotation_in_small_batches_gives_the_same(model, doc, monkeypatch):
    expected = model.predict([doc, doc])
    monkeypatch.setattr(documentwise, "TOKENS", 5)
    for found, array in zip(model.predict([doc, doc]), expected, strict=True):
        assert_close(found, array)


def test_training_and_annotation_compute_the_same(model, doc):
    docs = [doc, Doc(VOCAB), docs_of(VOCAB, LINES[0])[0]]
    trained, _ = model.begin_update(docs)
    for a, b in zip(trained, model.predict(docs), strict=True):
        assert_close(a, b)


def test_gradients_are_finite_differences(model, doc):
    module = model.shims[0].module
    [output], backprop = model.begin_update([doc])
    weights = numpy.linspace(-1, 1, output.size, dtype="f").reshape(output.shape)
    backprop([weights])
    below = torch_modules(model.layers[0])[0]
    for parameter in (module.project.weight, module.query.bias, next(below.parameters())):
        flat, gradient = parameter.data.view(-1), parameter.grad.view(-1)
        place, step = int(gradient.abs().argmax()), 1e-2
        before = float(flat[place])
        sums = []
        for moved in (before + step, before - step):
            flat[place] = moved
            sums.append(float((model.predict([doc])[0] * weights).sum()))
        flat[place] = before
        expected = (sums[0] - sums[1]) / (2 * step)
        assert float(gradient[place]) == pytest.approx(expected, rel=0.05, abs=1e-2)


def test_empty_docs_have_empty_arrays(model, doc):
    empty = Doc(VOCAB)
    assert [array.shape for array in model.predict([empty])] == [(0, 16)]
    assert [len(array) for array in model.predict([empty, doc])] == [0, len(doc)]


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


def test_an_encoder_with_rows_for_start_and_stop_is_refused():
    encoder = {
        "@architectures": "spacy-psa.FactoredTransformer.v1",
        "width": 8,
        "heads": 2,
        "head_width": 4,
        "feedforward": 8,
        "boundaries": True,
    }
    with pytest.raises(InputError, match=r"boundaries = true is for ChartParser\.v1"):
        document_memory(tok2vec(encoder=encoder))


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
        document_memory(tok2vec(encoder=small_encoder()), **settings)
