"""Encoders in the places that spaCy has for them: its own `tagger` and `ner`, its own
embedders, and a shared `tok2vec` with listeners."""

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed, registry
from thinc.api import Adam

from spacy_psa.architectures.encoders import psa_bilstm
from tests.helpers.embedders import LISTENER
from tests.helpers.layers import torch_weights
from tests.helpers.pipelines import (
    MARKED,
    TEXTS,
    entities,
    hash_embed,
    make_examples,
    make_nlp,
    read_marked,
    small_encoder,
    small_model,
)

ENCODERS = ["PSABiLSTM", "BiLSTM"]
TAGGER = {"@architectures": "spacy.Tagger.v2", "nO": None, "normalize": False}
PARSER = {
    "@architectures": "spacy.TransitionBasedParser.v2",
    "state_type": "ner",
    "extra_state_tokens": False,
    "hidden_width": 16,
    "maxout_pieces": 2,
    "use_upper": True,
    "nO": None,
}


def tok2vec(encoder, embed=None):
    return {
        "@architectures": "spacy.Tok2Vec.v2",
        "embed": embed or hash_embed(),
        "encode": small_encoder(encoder),
    }


def tagged_examples(nlp):
    """The shared sentences, with a tag for each token beside the entities."""
    examples = make_examples(nlp)
    for example in examples:
        for token in example.reference:
            token.tag_ = "NNP" if token.text[0].isupper() else "NN"
    return examples


def learn(nlp, examples, steps=25):
    fix_random_seed(0)
    optimizer = nlp.initialize(lambda: examples, sgd=Adam(0.02))
    return [nlp.update(examples, sgd=optimizer) for _ in range(steps)]


@pytest.mark.parametrize(
    "slots",
    [
        ("attention", "bilstm", "attention"),
        ("none", "bilstm", "none"),
        ("attention", "attention", "bilstm"),
        ("bilstm", "none", "attention"),
        ("none", "attention", "none"),
    ],
)
@pytest.mark.parametrize("version", ["journal", "arxiv"])
def test_each_arrangement_of_slots_gives_gradients_to_its_input(slots, version):
    rng = numpy.random.default_rng(0)
    options = dict.fromkeys(("lstm_input_dropout", "lstm_output_dropout", "attention_dropout"), 0.0)
    model = psa_bilstm(
        hidden=8,
        **dict(zip(("bottom", "middle", "top"), slots)),
        version=version,
        width=6,
        **options,
    )
    torch.manual_seed(0)
    inputs = [rng.normal(size=(n, 6)).astype("float32") for n in (4, 0, 1, 7)]
    model.initialize(X=inputs)
    outputs, backprop = model.begin_update(inputs)
    assert [array.shape for array in outputs] == [(n, model.get_dim("nO")) for n in (4, 0, 1, 7)]
    weights = [rng.normal(size=array.shape).astype("float32") for array in outputs]
    gradients = backprop(weights)
    step = 1e-2
    for i in (0, 2, 3):
        direction = rng.normal(size=inputs[i].shape).astype("float32")
        direction /= numpy.linalg.norm(direction)

        def total(sign, i=i, direction=direction):
            moved = [*inputs[:i], inputs[i] + sign * step * direction, *inputs[i + 1 :]]
            return sum(float((w * y).sum()) for w, y in zip(weights, model.predict(moved)))

        slope = (total(1) - total(-1)) / (2 * step)
        assert slope == pytest.approx(float((gradients[i] * direction).sum()), rel=0.02, abs=2e-3)


@pytest.mark.parametrize("name", ENCODERS)
def test_dropout_acts_in_training_alone(name):
    options = small_encoder(name)
    options = {key: 0.5 if key.endswith("dropout") else value for key, value in options.items()}
    model = registry.resolve({"encode": options})["encode"]
    inputs = [numpy.random.default_rng(0).normal(size=(9, 6)).astype("float32")]
    model.initialize(X=inputs)
    assert numpy.array_equal(model.predict(inputs)[0], model.predict(inputs)[0])
    first, second = (model.begin_update(inputs)[0][0] for _ in range(2))
    assert not numpy.array_equal(first, second)


@pytest.mark.parametrize("name", ENCODERS)
def test_tagger_of_spacy_learns_over_the_encoder(name):
    nlp = spacy.blank("en")
    nlp.add_pipe("tagger", config={"model": {**TAGGER, "tok2vec": tok2vec(name)}})
    examples = tagged_examples(nlp)
    losses = [loss["tagger"] for loss in learn(nlp, examples)]
    assert losses[-1] < 0.2 * losses[0]
    for text, example in zip(TEXTS, examples, strict=True):
        words = Doc(nlp.vocab, words=text.split())
        assert [t.tag_ for t in nlp(words)] == [t.tag_ for t in example.reference]
    again = spacy.blank("en")
    again.add_pipe("tagger", config={"model": {**TAGGER, "tok2vec": tok2vec(name)}})
    again.from_bytes(nlp.to_bytes())
    assert [t.tag_ for t in again(TEXTS[0])] == [t.tag_ for t in nlp(TEXTS[0])]


@pytest.mark.parametrize("name", ENCODERS)
def test_ner_of_spacy_learns_over_the_encoder(name):
    nlp = spacy.blank("en")
    nlp.add_pipe("ner", config={"model": {**PARSER, "tok2vec": tok2vec(name)}})
    losses = [loss["ner"] for loss in learn(nlp, make_examples(nlp), 60)]
    assert losses[-1] < 0.3 * losses[0]
    found = [entities(nlp(Doc(nlp.vocab, words=text.split()))) for text in TEXTS]
    gold = [read_marked(line)[1] for line in MARKED]
    assert sum(a == b for a, b in zip(found, gold)) >= 4


@pytest.mark.parametrize("name", ENCODERS)
def test_crf_ner_learns_over_an_embedder_of_spacy(name):
    model = small_model(encoder=small_encoder(name), embed=hash_embed())
    nlp = make_nlp(model)
    losses = [loss["ner"] for loss in learn(nlp, make_examples(nlp), 40)]
    assert losses[-1] < 0.1 * losses[0]
    assert entities(nlp(TEXTS[0])) == read_marked(MARKED[0])[1]


# A shared tok2vec


def shared(encoder, *pipes, embed=None):
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": tok2vec(encoder, embed)})
    if "tagger" in pipes:
        nlp.add_pipe("tagger", config={"model": {**TAGGER, "tok2vec": LISTENER}})
    if "crf_ner" in pipes:
        model = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": LISTENER}
        nlp.add_pipe("crf_ner", config={"model": model})
    return nlp


@pytest.mark.parametrize("name", ENCODERS)
def test_tagger_and_crf_ner_learn_over_a_shared_encoder(name):
    nlp = shared(name, "tagger", "crf_ner")
    examples = tagged_examples(nlp)
    losses = learn(nlp, examples, 60)
    for pipe in ("tagger", "crf_ner"):
        assert losses[-1][pipe] < 0.2 * losses[0][pipe]
    doc = nlp(TEXTS[0])
    assert entities(doc) == read_marked(MARKED[0])[1]
    assert [t.tag_ for t in doc] == [t.tag_ for t in examples[0].reference]
    again = shared(name, "tagger", "crf_ner").from_bytes(nlp.to_bytes())
    assert entities(again(TEXTS[0])) == entities(doc)


@pytest.mark.parametrize("pipe", ["tagger", "crf_ner"])
def test_gradients_reach_the_weights_of_the_shared_encoder(pipe):
    words = small_model()["tok2vec"]["embed"]
    nlp = shared("PSABiLSTM", pipe, embed=words)
    examples = tagged_examples(nlp)
    optimizer = nlp.initialize(lambda: examples, sgd=Adam(0.01))
    for _ in range(3):  # the tagger's weights start at zero, and give no gradient at first
        nlp.update(examples, sgd=optimizer)
    before = torch_weights(nlp.get_pipe("tok2vec").model)
    nlp.update(examples, sgd=optimizer)
    after = torch_weights(nlp.get_pipe("tok2vec").model)
    changed = [not torch.equal(a, b) for a, b in zip(before, after, strict=True)]
    assert all(changed)


def test_batch_without_tokens_does_not_stop_a_shared_encoder():
    nlp = shared("BiLSTM", "crf_ner")
    examples = make_examples(nlp)
    optimizer = nlp.initialize(lambda: examples, sgd=Adam(0.01))
    empty = [Example(nlp.make_doc(""), nlp.make_doc(""))]
    for batch in (examples, empty, examples, [*examples[:2], *empty]):
        nlp.update(batch, sgd=optimizer)
    assert [len(doc) for doc in nlp.pipe(["", "Ada left", ""])] == [0, 2, 0]


def test_sentence_boundaries_bound_the_crf_and_not_the_shared_encoder():
    nlp = shared("PSABiLSTM", "crf_ner")
    nlp.add_pipe("sentencizer", first=True)
    examples = make_examples(nlp, MARKED[:3])
    for example in examples:
        for token in example.predicted:
            token.is_sent_start = token.i == 0
    learn(nlp, examples, 30)
    text = " ".join(TEXTS[:3])
    doc = nlp(text)
    assert len(list(doc.sents)) == 3
    ner = nlp.get_pipe("crf_ner")
    chain = ner.distribution(
        [nlp.get_pipe("tok2vec")(nlp.get_pipe("sentencizer")(nlp.make_doc(text)))]
    )
    assert chain.lengths.tolist() == [len(sentence) for sentence in doc.sents]
    closes = ner.scheme.legal().end
    for sentence, row in zip(doc.sents, chain.argmax, strict=True):
        assert closes[row[len(sentence) - 1]]


def test_update_with_sentence_boundaries_reaches_the_shared_encoder():
    nlp = shared("PSABiLSTM", "crf_ner")
    words = [word for line in MARKED[:3] for word in read_marked(line)[0]]
    examples = make_examples(nlp, [" ".join(MARKED[:3])])
    for token in examples[0].predicted:
        token.is_sent_start = token.i == 0 or words[token.i - 1] == "."
    assert len(list(examples[0].predicted.sents)) == 3
    losses = [loss["crf_ner"] for loss in learn(nlp, examples, 25)]
    assert losses[-1] < 0.3 * losses[0]
