"""Heads of chains: what they give for docs, and what they learn."""

import numpy
import pytest
import torch
from spacy.tokens import Doc
from spacy.util import registry
from spacy.vocab import Vocab

from spacy_psa.architectures.crf import crf, softmax
from spacy_psa.errors import InputError
from tests.helpers.layers import learns_everywhere, module_of
from tests.helpers.pipelines import TEXTS, small_model

K = 5


def tok2vec(encoder=None):
    return registry.resolve({"model": small_model(encoder=encoder)["tok2vec"]})["model"]


def built(make, **options):
    torch.manual_seed(0)
    model = make(tok2vec(), **options)
    model.set_dim("nO", K)
    vocab = Vocab()
    docs = [Doc(vocab, words=text.split()) for text in TEXTS[:3]]
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
def test_head_gives_potentials_for_each_token_of_each_doc(make, options, width):
    model, docs = built(make, **options)
    docs = [docs[0], Doc(docs[0].vocab), *docs[1:]]
    arrays = model.predict(docs)
    assert [array.shape for array in arrays] == [(len(doc), width) for doc in docs]
    assert model.get_ref("head").get_dim("nO") == K


@pytest.mark.parametrize(("make", "name"), [(crf, "CRF.v1"), (softmax, "Softmax.v1")])
def test_precision_is_that_of_the_config_also_for_saved_weights(make, name, monkeypatch):
    monkeypatch.setattr("spacy_psa.modules.products.ROWS", 4)  # these docs are short
    model, docs = built(make, precision="bfloat16")
    for precision in ("bfloat16", "float32"):
        other, _ = built(make, precision=precision)
        other.from_bytes(model.to_bytes())
        assert module_of(other.get_ref("head")).precision == precision
        found = numpy.concatenate(other.predict(docs))
        same = numpy.array_equal(found, numpy.concatenate(model.predict(docs)))
        assert same == (precision == "bfloat16")
    with pytest.raises(InputError, match=f"{name}: precision is 'half'"):
        make(model.get_ref("tok2vec"), precision="half")


def test_softmax_gives_log_probabilities():
    model, docs = built(softmax)
    for array in model.predict(docs):
        numpy.testing.assert_allclose(numpy.exp(array).sum(1), 1.0, rtol=1e-5)


def test_update_changes_every_part_of_the_model():
    model, docs = built(crf, potentials="transition")
    assert learns_everywhere(model, docs)


def test_prediction_has_nothing_to_backpropagate():
    model, docs = built(crf)
    potentials, backprop = model(docs, is_train=False)
    with pytest.raises(ValueError, match="prediction"):
        backprop(potentials)


def test_unknown_potentials_are_an_error():
    with pytest.raises(InputError, match=r"^CRF\.v1: potentials is 'pairs'.*label_pair"):
        crf(tok2vec(), potentials="pairs")


@pytest.mark.parametrize(("make", "name"), [(crf, "CRF"), (softmax, "Softmax")])
def test_boundary_rows_are_refused_where_every_row_must_be_a_token(make, name):
    encoder = {
        "@architectures": "spacy-psa.FactoredTransformer.v1",
        "layers": 1,
        "boundaries": True,
    }
    message = rf"^{name}\.v1: boundaries = true is for ChartParser\.v1"
    with pytest.raises(InputError, match=message):
        make(tok2vec(encoder))
