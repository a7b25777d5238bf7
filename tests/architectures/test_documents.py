"""Layers over whole documents, around models of token vectors."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc

from spacy_psa.architectures import documents
from spacy_psa.architectures.crf import crf
from spacy_psa.architectures.documents import document_memory, sentence_context
from spacy_psa.architectures.sentencewise import listens
from spacy_psa.errors import InputError
from spacy_psa.sentences import split_sentences
from tests.helpers.documents import LINES, initialized, make_tok2vec
from tests.helpers.embedders import LISTENER
from tests.helpers.layers import torch_modules
from tests.helpers.pipelines import make_examples, small_model
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


def assert_close(ours, theirs):
    numpy.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


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
    first, _, *rest = model.predict(named("D1", "", "D1", "D1"))
    assert_close(first, model.predict(named("D1"))[0])
    expected = model.predict(named("D2", "D1", "D1"))[1:]
    assert_close(numpy.concatenate(rest), numpy.concatenate(expected))


def test_documents_do_not_see_each_other(model, doc):
    other = joined(docs_of(VOCAB, "Ada ran", "Leeds won ."))
    [by_itself], [first, _] = model.predict([doc]), model.predict([doc, other])
    assert_close(first, by_itself)


def test_annotation_in_small_batches_gives_the_same(model, doc, monkeypatch):
    expected = model.predict([doc, doc])
    monkeypatch.setattr(documents, "TOKENS", 5)
    for ours, array in zip(model.predict([doc, doc]), expected, strict=True):
        assert_close(ours, array)


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


def test_in_the_place_of_an_encoder_it_names_its_place(layer):
    embed = spacy.registry.architectures.get("spacy.MultiHashEmbed.v2")(
        width=8, attrs=["NORM"], rows=[20], include_static_vectors=False
    )
    whole = spacy.registry.architectures.get("spacy.Tok2Vec.v2")(embed, layer(make_tok2vec()))
    with pytest.raises(InputError, match=r"needs docs, .* around the whole tok2vec"):
        whole.initialize(X=docs_of(VOCAB, *LINES))


@pytest.mark.parametrize(
    ("layer", "settings", "message"),
    [
        (document_memory, {"occurrences": 0}, "DocumentMemory.v1: occurrences is 0"),
        (document_memory, {"width": -1}, "DocumentMemory.v1: width is -1"),
        (document_memory, {"scoring": "max"}, "DocumentMemory.v1: scoring is 'max'"),
        (sentence_context, {"window": -1}, "SentenceContext.v1: window is -1"),
        (sentence_context, {"width": 0}, "SentenceContext.v1: width is 0"),
        (sentence_context, {"scoring": "max"}, "SentenceContext.v1: scoring is 'max'"),
    ],
)
def test_bad_settings_are_named(layer, settings, message):
    with pytest.raises(InputError, match=message):
        layer(make_tok2vec(), **settings)


# Other occurrences of words


def changed_words(model, doc):
    """The texts of the tokens whose vectors are not only those of their sentences."""
    below = numpy.concatenate(model.layers[0].predict(split_sentences([doc])))
    [vectors] = model.predict([doc])
    differs = ~numpy.isclose(vectors, below, rtol=1e-4, atol=1e-5).all(1)
    return {token.text for token, differ in zip(doc, differs, strict=True) if differ}


def test_words_that_occur_elsewhere_in_the_document_change(doc):
    memory = initialized(document_memory, VOCAB)
    assert changed_words(memory, doc) == {"Ada", "ada", "Leeds", "."}


def test_with_content_words_stop_words_and_punctuation_keep_their_vectors():
    memory = initialized(document_memory, VOCAB, content_words=True)
    doc = joined(docs_of(VOCAB, "The US , the BBC .", "the us , The bbc of US ."))
    assert changed_words(memory, doc) == {"The", "US", "BBC", "bbc"}


def test_it_works_around_a_listener():
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": small_model()["tok2vec"]})
    memory = {"@architectures": "spacy-psa.DocumentMemory.v1", "tok2vec": LISTENER, "width": 4}
    chain = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": memory}
    ner = nlp.add_pipe("crf_ner", name="ner", config={"model": chain})
    ner.add_label("PER")
    nlp.initialize(lambda: make_examples(nlp))
    doc = nlp.get_pipe("tok2vec")(joined(docs_of(nlp.vocab, *LINES)))
    [vectors] = ner.model.get_ref("tok2vec").predict([doc])
    differs = ~numpy.isclose(vectors, doc.tensor, atol=1e-6).all(1)
    assert {token.text for token in doc if differs[token.i]} == {"Ada", "ada", "Leeds", "."}


def test_a_component_over_it_gets_whole_docs(model):
    assert listens(crf(model))


# Sentences around a sentence


def changed_sentences(model, doc, other):
    """The numbers of the sentences whose vectors differ in two docs of like sentences."""
    [ours], [theirs] = model.predict([doc]), model.predict([other])
    return [
        i
        for i, (a, b) in enumerate(zip(doc.sents, other.sents, strict=True))
        if not numpy.allclose(ours[a.start : a.end], theirs[b.start : b.end], atol=1e-5)
    ]


def test_a_sentence_sees_its_neighbours_and_no_others(doc):
    model = initialized(sentence_context, VOCAB, window=1)
    other = joined(docs_of(VOCAB, "Babbage in Leeds came .", *LINES[1:]))
    [ours], [theirs] = model.predict([doc]), model.predict([other])
    numpy.testing.assert_allclose(ours[-5:], theirs[-5:], atol=1e-5)  # the last two sentences
    assert not numpy.allclose(ours[6:10], theirs[5:9], atol=1e-5)


@pytest.mark.parametrize(("window", "changed"), [(0, [0]), (2, [0, 1, 2])])
def test_a_window_is_the_number_of_sentences_on_each_side(doc, window, changed):
    other = joined(docs_of(VOCAB, "Babbage met Ada in Leeds !", *LINES[1:]))
    model = initialized(sentence_context, VOCAB, window=window)
    assert changed_sentences(model, doc, other) == changed


def test_it_works_around_a_document_memory(doc):
    memory = document_memory(make_tok2vec(), width=4, dropout=0.0)
    model = initialized(sentence_context, VOCAB, memory)
    [output], backprop = model.begin_update([doc])
    backprop([numpy.ones_like(output)])
    assert output.shape == (len(doc), 16)
    for layer in (model, memory):
        module = layer.shims[0].module
        assert all(part.weight.grad.abs().sum() > 0 for part in (module.query, module.project))
