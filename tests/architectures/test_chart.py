"""ChartParser.v1: what it gives for docs, its gradients and its weights."""

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import Adam

from spacy_psa.architectures.chart import chart_parser
from spacy_psa.errors import InputError
from tests.helpers.embedders import LISTENER
from tests.helpers.layers import learns_everywhere
from tests.helpers.pipelines import TEXTS, small_encoder, small_model
from tests.helpers.words import joined

LABELS = 5
FACTORED = {
    "@architectures": "spacy-psa.FactoredTransformer.v1",
    "width": 16,
    "heads": 2,
    "head_width": 8,
    "layers": 1,
    "feedforward": 16,
    "attention_dropout": 0.0,
    "relu_dropout": 0.0,
    "residual_dropout": 0.0,
}
ENCODERS = {"own rows": {**FACTORED, "boundaries": True}, "words alone": FACTORED, "bilstm": None}


def resolved(encoder, **options):
    config = small_model(encoder=encoder)
    config = {"tok2vec": config["tok2vec"], "hidden": 8, **options}
    return registry.resolve({"m": {"@architectures": "spacy-psa.ChartParser.v1", **config}})["m"]


def built(encoder, **options):
    torch.manual_seed(0)
    model = resolved(encoder, **options)
    model.set_dim("nO", LABELS)
    vocab = Vocab()
    docs = [Doc(vocab, words=text.split()) for text in TEXTS[:3]]
    model.initialize(X=docs)
    model.begin_update(docs)  # meets the words
    return model, docs


def spans(n):
    return n * (n + 1) // 2


@pytest.mark.parametrize("name", ENCODERS)
def test_scores_for_each_span_of_each_doc(name):
    model, docs = built(ENCODERS[name])
    docs = [docs[0], Doc(docs[0].vocab), *docs[1:], Doc(docs[0].vocab, words=["one"])]
    arrays = model.predict(docs)
    assert [array.shape for array in arrays] == [(spans(len(doc)), LABELS) for doc in docs]
    assert [array.shape for array in model.predict([Doc(docs[0].vocab)])] == [(0, LABELS)]


@pytest.mark.parametrize("name", ENCODERS)
def test_doc_with_sentence_boundaries_gives_the_arrays_of_its_sentences(name):
    model, docs = built(ENCODERS[name])
    apart, together = model.predict(docs), model.predict([joined(docs)])
    for a, b in zip(apart, together, strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ENCODERS)
def test_update_changes_every_part_of_the_model(name):
    model, docs = built(ENCODERS[name])
    assert learns_everywhere(model, docs)


@pytest.mark.parametrize("name", ENCODERS)
def test_weights_come_back_from_bytes_without_initialization(name):
    model, docs = built(ENCODERS[name])
    loaded = resolved(ENCODERS[name]).from_bytes(model.to_bytes())
    for a, b in zip(model.predict(docs), loaded.predict(docs), strict=True):
        numpy.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("over", [None, "own rows", "bilstm"])
def test_a_shared_tok2vec_feeds_the_chart_and_learns_from_it(over):
    tok2vec = LISTENER
    if over:
        encode = ENCODERS[over] or small_encoder()
        tok2vec = {"@architectures": "spacy.Tok2Vec.v2", "embed": LISTENER, "encode": encode}
    shared = {**small_model(encoder=FACTORED)["tok2vec"]}
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": shared})
    chart = {"@architectures": "spacy-psa.ChartParser.v1", "tok2vec": tok2vec}
    nlp.add_pipe("constituency_parser", config={"model": chart})
    examples = []
    for text in TEXTS[:3]:
        gold = Doc(nlp.vocab, words=text.split())
        gold.spans["constituents"] = [Span(gold, 0, len(gold), "S"), Span(gold, 0, 1, "NP")]
        examples.append(Example(Doc(nlp.vocab, words=text.split()), gold))
    optimizer = nlp.initialize(lambda: examples, sgd=Adam(0.01))
    history = []
    for _ in range(6):
        losses = nlp.update(examples, sgd=optimizer)
        history.append(losses["constituency_parser"])
    assert history[-1] < history[0]
    arrays = nlp.get_pipe("constituency_parser").model.predict
    docs = [nlp.get_pipe("tok2vec")(eg.predicted.copy()) for eg in examples]
    assert [len(array) for array in arrays(docs)] == [spans(len(doc)) for doc in docs]


def test_the_sides_reach_the_head():
    by_parity = resolved(None).get_ref("head").shims[0].cfg
    by_half = resolved(None, sides="halves").get_ref("head").shims[0].cfg
    assert (by_parity["sides"], by_half["sides"]) == ("even_odd", "halves")
    assert by_parity["boundaries"] is False
    own = resolved(ENCODERS["own rows"]).get_ref("head").shims[0].cfg
    assert own["boundaries"] is True and own["hidden"] == 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 0}, "hidden is 0"),
        ({"tag_hidden": 0}, "tag_hidden is 0"),
        ({"sides": "left"}, "sides is 'left'.*halves"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    tok2vec = registry.resolve({"m": small_model()["tok2vec"]})["m"]
    with pytest.raises(InputError, match=rf"^ChartParser\.v1: {message}"):
        chart_parser(tok2vec, **options)
