"""Heads: what they give for docs, and their gradients."""

import numpy
import pytest
import torch
from spacy.tokens import Doc
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import SGD

from spacy_psa.architectures.crf import crf, softmax
from spacy_psa.architectures.sentencewise import listens
from spacy_psa.errors import InputError

K = 5


def tok2vec(tools):
    return registry.resolve({"model": tools.small_model()["tok2vec"]})["model"]


def built(tools, make, **options):
    torch.manual_seed(0)
    model = make(tok2vec(tools), **options)
    model.set_dim("nO", K)
    vocab = Vocab()
    docs = [Doc(vocab, words=text.split()) for text in tools.texts[:3]]
    model.initialize(X=docs)
    return model, docs


@pytest.mark.parametrize(
    ("make", "options", "width"),
    [
        (crf, {"potentials": "label_pair"}, K * K),
        (crf, {"potentials": "transition"}, K * K),
        (softmax, {}, K),
    ],
)
def test_head_gives_potentials_for_each_token_of_each_doc(tools, make, options, width):
    model, docs = built(tools, make, **options)
    docs = [docs[0], Doc(docs[0].vocab), *docs[1:]]
    arrays = model.predict(docs)
    assert [array.shape for array in arrays] == [(len(doc), width) for doc in docs]
    assert model.get_ref("head").get_dim("nO") == K


def test_softmax_gives_log_probabilities(tools):
    model, docs = built(tools, softmax)
    for array in model.predict(docs):
        numpy.testing.assert_allclose(numpy.exp(array).sum(1), 1.0, rtol=1e-5)


def test_doc_with_sentence_boundaries_gives_an_array_for_each_sentence(tools):
    model, docs = built(tools, crf)
    joined = Doc(
        docs[0].vocab,
        words=[token.text for doc in docs for token in doc],
        sent_starts=[token.i == 0 for doc in docs for token in doc],
    )
    apart, together = model.predict(docs), model.predict([docs[0], joined])
    assert len(together) == 1 + len(docs)
    for a, b in zip([apart[0], *apart], together, strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_gradients_of_sentences_add_up_to_those_of_docs(tools):
    model, docs = built(tools, crf)
    joined = Doc(
        docs[0].vocab,
        words=[token.text for doc in docs for token in doc],
        sent_starts=[token.i == 0 for doc in docs for token in doc],
    )
    model.begin_update(docs)  # meets the words

    def gradients(batch):
        potentials, backprop = model.begin_update(batch)
        backprop([numpy.ones_like(array) for array in potentials])
        modules = [shim.module for node in model.walk() for shim in node.shims]
        found = [p.grad.clone() for module in modules for p in module.parameters()]
        for module in modules:
            module.zero_grad()
        return found

    for a, b in zip(gradients(docs), gradients([joined]), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_update_changes_every_part_of_the_model(tools):
    model, docs = built(tools, crf, potentials="transition")
    model.begin_update(docs)

    def weights():
        modules = [shim.module for node in model.walk() for shim in node.shims]
        return [p.detach().clone() for module in modules for p in module.parameters()]

    before = weights()
    potentials, backprop = model.begin_update(docs)
    rng = numpy.random.default_rng(0)
    backprop([rng.normal(size=array.shape).astype("float32") for array in potentials])
    model.finish_update(SGD(0.1, grad_clip=0.0, L2=0.0))
    assert not any(torch.equal(a, b) for a, b in zip(before, weights(), strict=True))


def test_unknown_potentials_are_an_error(tools):
    with pytest.raises(InputError, match=r"'pairs'.*label_pair"):
        crf(tok2vec(tools), potentials="pairs")


def test_prediction_has_nothing_to_backpropagate(tools):
    model, docs = built(tools, crf)
    potentials, backprop = model(docs, is_train=False)
    with pytest.raises(ValueError, match="prediction"):
        backprop(potentials)


def test_listening_models_are_told_from_others(tools):
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16, "upstream": "*"}
    assert listens(crf(registry.resolve({"model": listener})["model"]))
    assert not listens(crf(tok2vec(tools)))
