"""Heads over token vectors, sentence by sentence."""

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import Model

from spacy_psa.architectures.crf import crf
from spacy_psa.architectures.sentencewise import (
    has_boundaries,
    listeners,
    listens,
    sentence_scores,
    upstream_name,
)
from spacy_psa.sentences import SplitDocs
from tests.helpers.embedders import LISTENER
from tests.helpers.layers import torch_modules
from tests.helpers.pipelines import TEXTS, make_examples, small_model
from tests.helpers.words import joined


def tok2vec(**options):
    return registry.resolve({"model": small_model(**options)["tok2vec"]})["model"]


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = crf(tok2vec())
    model.set_dim("nO", 5)
    return model


@pytest.fixture
def docs(model):
    vocab = Vocab()
    docs = [Doc(vocab, words=text.split()) for text in TEXTS[:3]]
    model.initialize(X=docs)
    model.begin_update(docs)  # meets the words
    return docs


def test_doc_with_sentence_boundaries_gives_an_array_for_each_sentence(model, docs):
    apart, together = model.predict(docs), model.predict([docs[0], joined(docs)])
    assert len(together) == 1 + len(docs)
    for a, b in zip([apart[0], *apart], together, strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_gradients_of_sentences_add_up_to_those_of_docs(model, docs):
    def gradients(batch):
        potentials, backprop = model.begin_update(batch)
        backprop([numpy.ones_like(array) for array in potentials])
        modules = torch_modules(model)
        found = [p.grad.clone() for module in modules for p in module.parameters()]
        for module in modules:
            module.zero_grad()
        return found

    for a, b in zip(gradients(docs), gradients([joined(docs)]), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_chosen_sentences_have_the_arrays_that_they_have_among_all(model, docs):
    whole = [joined(docs), Doc(docs[0].vocab), docs[1]]
    scores = sentence_scores(model, SplitDocs(whole))
    expected = model.predict(whole)
    for numbers in ([0, 1, 2, 3, 4], [4, 1], [3, 2]):
        for found, number in zip(scores(numbers), numbers, strict=True):
            numpy.testing.assert_allclose(found, expected[number], rtol=1e-4, atol=1e-5)


def test_chosen_sentences_over_a_listener_have_the_arrays_that_they_have_among_all():
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": small_model()["tok2vec"]})
    chain = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": LISTENER}
    nlp.add_pipe("crf_ner", name="ner", config={"model": chain})
    nlp.initialize(lambda: make_examples(nlp))
    docs = [Doc(nlp.vocab, words=text.split()) for text in TEXTS[:3]]
    whole = [nlp.get_pipe("tok2vec")(doc) for doc in (joined(docs), docs[1])]
    model = nlp.get_pipe("ner").model
    scores, expected = sentence_scores(model, SplitDocs(whole)), model.predict(whole)
    for numbers in ([0, 1, 2, 3], [3, 1]):
        for found, number in zip(scores(numbers), numbers, strict=True):
            numpy.testing.assert_allclose(found, expected[number], rtol=1e-4, atol=1e-5)


def test_listening_models_are_told_from_others():
    assert listens(crf(registry.resolve({"model": LISTENER})["model"]))
    assert not listens(crf(tok2vec()))


def test_a_listener_of_curated_transformers_gets_whole_docs(docs):
    """It is a plain model, and computes zeros of docs that the transformer has not seen."""

    def forward(model, docs, is_train):
        seen.append([len(doc) for doc in docs])
        return [model.ops.alloc2f(len(doc), 8) for doc in docs], lambda d_vectors: []

    seen = []
    attrs = {"_upstream_name": "transformer", "_TRANSFORMER_LISTENER": True}
    listener = Model("last_transformer_layer_listener", forward, dims={"nO": 8}, attrs=attrs)
    model = crf(listener)
    model.set_dim("nO", 5)
    model.initialize(X=docs)
    assert listeners(model) == [listener] and upstream_name(listener) == "transformer"
    seen.clear()
    assert [len(array) for array in model.predict([joined(docs)])] == [len(doc) for doc in docs]
    assert seen == [[sum(map(len, docs))]]


@pytest.mark.parametrize("boundaries", [True, False])
def test_encoders_with_boundary_rows_are_told_from_others(boundaries):
    encoder = {
        "@architectures": "spacy-psa.FactoredTransformer.v1",
        "layers": 1,
        "boundaries": boundaries,
    }
    assert has_boundaries(tok2vec(encoder=encoder)) == boundaries
    assert not has_boundaries(tok2vec())
