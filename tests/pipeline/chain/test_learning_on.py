"""Trained components that learn more: new labels, rehearsal, tags that tokens do not have."""

import itertools

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Span
from spacy.training import Example

from spacy_psa.errors import InputError
from tests.helpers.embedders import LISTENER
from tests.helpers.pipelines import hash_embed, small_model

ANNOTATED = {"crf_ner": "ents", "crf_chunker": "chunks", "crf_tagger": "tags"}
MODELS = {
    "label_pair": small_model(),
    "transition": {**small_model(), "potentials": "transition"},
    "softmax": {"@architectures": "spacy-psa.Softmax.v1", "tok2vec": small_model()["tok2vec"]},
}

# Each component and each model; entities and chunks only differ in where they are written.
LEARNERS = [
    *(("crf_ner", model) for model in MODELS),
    ("crf_chunker", "transition"),
    ("crf_tagger", "label_pair"),
    ("crf_tagger", "softmax"),
]


def example(nlp, factory, labels=("PER", "PER")):
    doc = nlp.make_doc("Ada met Bob")
    gold = doc.copy()
    spans = [Span(gold, 0, 1, labels[0]), Span(gold, 2, 3, labels[1])]
    gold.set_ents(spans)
    gold.spans["chunks"] = spans
    for token, tag in zip(gold, (labels[0], "VB", labels[1])):
        token.tag_ = tag
    return Example(doc, gold)


def trained(factory, model, updates=8):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe(factory, name="it", config={"model": MODELS[model]})
    one = example(nlp, factory)
    optimizer = nlp.initialize(lambda: [one])
    optimizer.learn_rate = 0.05
    for _ in range(updates):
        nlp.update([one], sgd=optimizer)
    return nlp, pipe, one


def scores(pipe, nlp, text="Ada met Bob again"):
    (scores,) = pipe.model.predict([nlp.make_doc(text)])
    return scores


@pytest.mark.parametrize(("factory", "model"), LEARNERS)
def test_a_trained_component_learns_a_new_label_and_keeps_the_others(factory, model, tmp_path):
    nlp, pipe, _ = trained(factory, model)
    doc = nlp.make_doc("Ada met Bob again")
    before = pipe.distribution([doc])
    tags, marginals = pipe.tags, before.marginals[0]
    assert pipe.add_label("ORG") == 1 and pipe.add_label("ORG") == 0
    after = pipe.distribution([doc])
    assert pipe.tags[: len(tags)] == tags and len(pipe.tags) > len(tags)
    assert [t.tolist() for t in after.argmax] == [t.tolist() for t in before.argmax]
    kept = after.marginals[0][:, : len(tags)]
    known = kept / kept.sum(1, keepdim=True)
    if model == "softmax":
        torch.testing.assert_close(known, marginals, rtol=1e-3, atol=1e-4)
    new = example(nlp, factory, ("PER", "ORG"))
    optimizer = nlp.resume_training()
    optimizer.learn_rate = 0.05
    for _ in range(30):
        nlp.update([new], sgd=optimizer)
    assert found(nlp("Ada met Bob"), factory) == ["PER", "ORG"]
    nlp.to_disk(tmp_path / "model")
    assert found(spacy.load(tmp_path / "model")("Ada met Bob"), factory) == ["PER", "ORG"]


def found(doc, factory):
    if factory == "crf_tagger":
        return [doc[0].tag_, doc[2].tag_]
    spans = doc.ents if factory == "crf_ner" else doc.spans["chunks"]
    return [span.label_ for span in spans]


@pytest.mark.parametrize("model", ["label_pair", "transition"])
def test_scores_of_the_analyses_without_the_new_label_stay(model):
    nlp, ner, _ = trained("crf_ner", model)
    doc = nlp.make_doc("Ada met Bob")
    before = dict(_analyses(ner, doc))
    ner.add_label("ORG")
    after = dict(_analyses(ner, doc))
    assert before.keys() < after.keys()
    first = next(iter(before))
    for analysis, score in before.items():
        assert after[analysis] - after[first] == pytest.approx(score - before[first], abs=1e-4)


def _analyses(ner, doc):
    """Each analysis of three tokens with its log probability, by enumeration."""
    chain = ner.distribution([doc])
    for tags in itertools.product(range(len(ner.tags)), repeat=len(doc)):
        value = float(chain.log_prob(torch.tensor([tags])))
        if numpy.isfinite(value):
            yield tuple(ner.tags[tag] for tag in tags), value


@pytest.mark.parametrize(("factory", "model"), LEARNERS)
def test_rehearsal_brings_back_what_the_model_said(factory, model):
    nlp, pipe, one = trained(factory, model)
    optimizer = nlp.resume_training()
    optimizer.learn_rate = 0.05
    wanted = pipe.distribution([nlp.make_doc("Ada met Bob")]).marginals.clone()
    forget(nlp, factory, optimizer)

    def distance():
        marginals = pipe.distribution([nlp.make_doc("Ada met Bob")]).marginals
        return float((marginals - wanted).abs().sum())

    forgotten = distance()
    losses = [nlp.rehearse([one], sgd=optimizer)["it"] for _ in range(20)]
    assert forgotten > 0.1 and distance() < 0.5 * forgotten
    assert losses[-1] < losses[0]


def forget(nlp, factory, optimizer):
    """Learn from the same text with other tags, or without spans."""
    other = example(nlp, factory, ("VB", "VB") if factory == "crf_tagger" else ("PER", "PER"))
    if factory != "crf_tagger":
        other.reference.set_ents([], default="outside")
        other.reference.spans["chunks"] = []
    for _ in range(5):
        nlp.update([other], sgd=optimizer)


def test_the_loss_of_rehearsal_is_the_cross_entropy_by_enumeration():
    nlp, ner, one = trained("crf_ner", "label_pair", updates=2)
    nlp.resume_training()
    asked = dict(_analyses(ner, one.predicted))
    for node in ner.model.walk():
        for shim in node.shims:
            for weights in shim.module.parameters():
                weights.data += 0.05 * torch.randn_like(weights)
    said = dict(_analyses(ner, one.predicted))
    wanted = -sum(numpy.exp(asked[analysis]) * said[analysis] for analysis in asked)
    losses = ner.rehearse([one], sgd=None)
    assert losses["it"] == pytest.approx(wanted, rel=1e-3)


def test_rehearsal_drops_out_in_spacys_layers():
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("crf_ner", name="it", config={"model": small_model(embed=hash_embed())})
    one = example(nlp, "crf_ner")
    nlp.initialize(lambda: [one])
    optimizer = nlp.resume_training()
    nlp.rehearse([one], sgd=optimizer, component_cfg={"it": {"drop": 0.3}})
    nodes = pipe.model.walk()
    assert {n.attrs["dropout_rate"] for n in nodes if "dropout_rate" in n.attrs} == {0.3}


def test_without_a_resumed_training_nothing_is_rehearsed():
    nlp, ner, one = trained("crf_ner", "label_pair", updates=1)
    before = ner.model.to_bytes()
    assert ner.rehearse([one], sgd=nlp.create_optimizer()) == {"it": 0.0}
    assert ner.model.to_bytes() == before


@pytest.mark.parametrize("factory", ANNOTATED)
def test_a_component_that_listens_is_rehearsed_with_an_encoder_of_its_own(factory):
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": small_model()["tok2vec"]})
    model = {**small_model(), "tok2vec": LISTENER}
    nlp.add_pipe(factory, name="it", config={"model": model})
    one = example(nlp, factory)
    nlp.initialize(lambda: [one])
    assert nlp.rehearse([one])["it"] == 0
    nlp.resume_training()
    with pytest.raises(InputError, match=r"it: it listens to .* nlp\.replace_listeners .*, then"):
        nlp.rehearse([one])
    nlp.replace_listeners("tok2vec", "it", ["model.tok2vec"])
    optimizer = nlp.resume_training()
    optimizer.learn_rate = 0.05
    forget(nlp, factory, optimizer)
    # Of several components that learn, spaCy rehearses the last one alone.
    losses = [nlp.rehearse([one], sgd=optimizer, exclude=["tok2vec"])["it"] for _ in range(10)]
    assert losses[-1] < 0.5 * losses[0]


# Tags that tokens do not have


def test_a_negative_tag_is_no_label_and_lowers_its_probability():
    nlp = spacy.blank("en")
    tagger = nlp.add_pipe("crf_tagger", config={"model": small_model()})
    known = Example.from_dict(nlp.make_doc("a b"), {"tags": ["N", "V"]})
    negative = Example.from_dict(nlp.make_doc("a b"), {"tags": ["!N", ""]})
    optimizer = nlp.initialize(lambda: [known, negative])
    assert tagger.labels == ("N", "V")
    optimizer.learn_rate = 0.05
    for _ in range(20):
        losses = nlp.update([negative], sgd=optimizer)
    assert losses["crf_tagger"] < 0.1 and nlp("a b")[0].tag_ == "V"


def test_the_loss_of_a_negative_tag_is_that_of_the_analyses_without_it():
    nlp = spacy.blank("en")
    tagger = nlp.add_pipe("crf_tagger", config={"model": small_model()})
    known = Example.from_dict(nlp.make_doc("a b c"), {"tags": ["N", "V", "P"]})
    nlp.initialize(lambda: [known])
    doc = nlp.make_doc("a b c")
    wanted = sum(
        numpy.exp(value)
        for tags, value in _analyses(tagger, doc)
        if tags[0] == "P" and tags[1] != "V"
    )
    eg = Example.from_dict(doc, {"tags": ["P", "!V", ""]})
    loss, _ = tagger.get_loss([eg], tagger.model.predict([doc]))
    assert numpy.exp(-loss) == pytest.approx(wanted, rel=1e-4)


def test_a_tag_of_the_component_is_what_it_is():
    nlp = spacy.blank("en")
    tagger = nlp.add_pipe("crf_tagger", config={"model": small_model(), "neg_prefix": ""})
    nlp.initialize(lambda: [Example.from_dict(nlp.make_doc("a b"), {"tags": ["!N", "!"]})])
    assert tagger.labels == ("!", "!N")


# Settings that are changed


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("decode", "mbr"),
        ("decode", "threshold"),
        ("confidence", True),
        ("overwrite", True),
        ("threshold", 0.2),
    ],
)
def test_a_setting_that_was_changed_is_saved(tmp_path, setting, value):
    nlp, ner, _ = trained("crf_ner", "label_pair", updates=1)
    setattr(ner, setting, value)
    nlp.to_disk(tmp_path / "model")
    assert getattr(spacy.load(tmp_path / "model").get_pipe("it"), setting) == value
    again = spacy.load(tmp_path / "model").from_bytes(nlp.to_bytes()).get_pipe("it")
    assert getattr(again, setting) == value
    loaded = spacy.load(tmp_path / "model")
    loaded.to_disk(tmp_path / "second")
    assert getattr(spacy.load(tmp_path / "second").get_pipe("it"), setting) == value


def test_a_config_that_says_something_else_wins(tmp_path):
    nlp, ner, _ = trained("crf_ner", "label_pair", updates=1)
    ner.threshold = 0.2
    nlp.to_disk(tmp_path / "model")
    config = {"components": {"it": {"threshold": 0.3}}}
    assert spacy.load(tmp_path / "model", config=config).get_pipe("it").threshold == 0.3


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("decode", "Threshold"),
        ("threshold", 7),
        ("threshold", -0.1),
        ("threshold", float("nan")),
        ("overwrite", "yes"),
        ("confidence", 1),
    ],
)
def test_a_value_that_is_not_possible_is_refused_at_once(setting, value):
    ner = spacy.blank("en").add_pipe("crf_ner")
    before = getattr(ner, setting)
    with pytest.raises(InputError, match=f"{setting} is {value!r}"):
        setattr(ner, setting, value)
    assert getattr(ner, setting) == before


# Gold spans over the bounds of sentences


@pytest.mark.parametrize("factory", ["crf_ner", "crf_chunker"])
def test_a_gold_span_over_a_bound_is_summed_out_counted_and_told_of_once(factory):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe(factory, config={"model": small_model()})
    doc = nlp.make_doc("in New York now")
    for token in doc:
        token.is_sent_start = token.i in (0, 2)
    gold = doc.copy()
    for token in gold:
        token.is_sent_start = token.i == 0
    spans = [Span(gold, 0, 1, "PER"), Span(gold, 1, 3, "LOC")]
    gold.set_ents(spans)
    gold.spans["chunks"] = spans
    eg = Example(doc, gold)
    nlp.initialize(lambda: [eg])
    with pytest.warns(UserWarning, match=r"'New York' \(LOC\) goes over the bounds") as caught:
        for _ in range(2):
            tags = pipe._gold_tags(eg, [(0, 2), (2, 4)])
    assert len(caught) == 1 and pipe._crossing == 2
    (first, second) = tags
    assert pipe.tags[first[0]] == "S-PER" and pipe.tags[second[1]] == "O"
    assert first[1] == second[0] == -1
