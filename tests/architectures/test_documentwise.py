"""What holds for each layer over whole documents."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc

from spacy_psa.architectures import documentwise
from spacy_psa.architectures.document_memory import document_memory
from spacy_psa.architectures.sentence_context import sentence_context
from spacy_psa.errors import InputError
from tests.helpers.documents import LINES, initialized, make_tok2vec
from tests.helpers.layers import torch_modules
from tests.helpers.words import docs_of, joined

VOCAB = spacy.blank("en").vocab


@pytest.fixture(params=[document_memory, sentence_context])
def layer(request):
    return request.param


@pytest.fixture
def model(layer):
    return initialized(layer, VOCAB)


@pytest.fixture
def doc():
    return joined(docs_of(VOCAB, *LINES))


def assert_close(found, expected):
    numpy.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def named(*names):
    """The sentences, each a Doc of the document that is named; "" is a Doc without tokens."""
    lines = iter(docs_of(VOCAB, *LINES))
    docs = []
    for name in names:
        docs.append(next(lines) if name else Doc(VOCAB))
        docs[-1].user_data["document"] = name or None
    return docs


def test_docs_that_follow_each_other_see_each_other_if_they_name_one_document(model, doc):
    docs = docs_of(VOCAB, *LINES)
    apart = numpy.concatenate(model.predict(docs))
    for sentence in docs:
        sentence.user_data["document"] = "D1"
    together = numpy.concatenate(model.predict(docs))
    [whole] = model.predict([doc])
    assert_close(together, whole)
    assert not numpy.allclose(apart, whole, atol=1e-5)


def test_a_doc_without_tokens_that_names_no_document_ends_the_one_before(model):
    one, _, *rest = model.predict(named("D1", "", "D1", "D1"))
    assert_close(one, model.predict(named("D1"))[0])
    expected = model.predict(named("D2", "D1", "D1"))[1:]
    assert_close(numpy.concatenate(rest), numpy.concatenate(expected))


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


def test_weights_and_predictions_survive_bytes(layer, model, doc):
    other = initialized(layer, VOCAB, seed=1)
    assert not numpy.allclose(other.predict([doc])[0], model.predict([doc])[0], atol=1e-5)
    other.from_bytes(model.to_bytes())
    numpy.testing.assert_array_equal(other.predict([doc])[0], model.predict([doc])[0])


def test_an_encoder_with_rows_for_start_and_stop_is_refused(layer):
    encoder = {
        "@architectures": "spacy-psa.FactoredTransformer.v1",
        "width": 8,
        "heads": 2,
        "head_width": 4,
        "feedforward": 8,
        "boundaries": True,
    }
    with pytest.raises(InputError, match=r"boundaries = true is for ChartParser\.v1"):
        layer(make_tok2vec(encoder=encoder))


def test_in_the_place_of_an_encoder_it_says_where_it_stands(layer):
    embed = spacy.registry.architectures.get("spacy.MultiHashEmbed.v2")(
        width=8, attrs=["NORM"], rows=[20], include_static_vectors=False
    )
    whole = spacy.registry.architectures.get("spacy.Tok2Vec.v2")(embed, layer(make_tok2vec()))
    with pytest.raises(InputError, match=r"takes docs, .* around the whole tok2vec"):
        whole.initialize(X=docs_of(VOCAB, *LINES))
