"""`crf_ner`: labels, gold entities, what stands on docs, learning, scores."""

import random

import numpy
import pytest
import spacy
from seqeval.metrics import classification_report
from seqeval.scheme import IOB2, IOBES
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry
from thinc.api import Adam

from spacy_psa.errors import InputError
from spacy_psa.sentences import sentence_bounds
from spacy_psa.training.optimizers import sgd
from tests.helpers.pipelines import (
    MARKED,
    TEXTS,
    entities,
    make_examples,
    make_nlp,
    read_marked,
    small_encoder,
    small_model,
    train,
)

LABELS = ["LOC", "ORG", "PER"]


def favour(ner, tag, bonus=50.0):
    """Bend a component's weights so that it gives a tag wherever it may."""
    head = ner.model.get_ref("head").shims[0].module
    head.pair.bias.data[head.tag == ner.tags.index(tag)] += bonus
    ner.model.get_ref("head").shims[0].module.start.bias.data[ner.tags.index(tag)] += bonus


def initialized(**settings):
    nlp = make_nlp(**settings)
    train(nlp, steps=0)
    return nlp


# Settings


def test_default_model_is_that_of_the_paper():
    ner = spacy.blank("en").add_pipe("crf_ner")
    names = [node.name for node in ner.model.walk()]
    assert {"label_pair", "PSABiLSTM", "word_embed", "CharBiLSTM"} <= set(names)
    assert (ner.max_grad_norm, ner._reduction, ner.scheme.tag_format) == (5.0, "mean", "BIOES")


def test_embedders_of_a_config_are_the_only_ones():
    """A config's blocks must not be mixed with those of the default model."""
    model = small_model()
    words = {"@architectures": "spacy-psa.WordEmbed.v1", "width": 8}
    model["tok2vec"]["embed"]["*"] = {"mine": words}
    ner = make_nlp(model).get_pipe("ner")
    names = [node.name for node in ner.model.walk()]
    assert names.count("word_embed") == 1 and "CharBiLSTM" not in names


def test_unknown_setting_is_an_error_from_python_too():
    ner = make_nlp().get_pipe("ner")
    make = type(ner)
    with pytest.raises(InputError, match="IOB1"):
        make(ner.vocab, ner.model, "x", store=ner.store, scheme="IOB1")
    with pytest.raises(InputError, match="max"):
        make(ner.vocab, ner.model, "x", store=ner.store, reduction="max")
    with pytest.raises(InputError, match="pairs"):
        registry.architectures.get("spacy-psa.CRF.v1")(ner.model.layers[0], potentials="pairs")


# Labels


def test_labels_are_found_in_the_examples():
    ner = initialized().get_pipe("ner")
    assert ner.labels == tuple(LABELS)
    assert ner.label_data == LABELS
    assert ner.tags == ("O", *(f"{prefix}-{label}" for label in LABELS for prefix in "BIES"))


def test_labels_that_are_given_keep_their_order():
    nlp = make_nlp()
    given = ["PER", "MISC", "LOC", "ORG"]
    nlp.config["initialize"]["components"]["ner"] = {"labels": given}
    nlp.initialize(lambda: make_examples(nlp))
    assert nlp.get_pipe("ner").label_data == given
    assert all(label in nlp.vocab.strings for label in given)


@pytest.mark.parametrize("labels", [None, []])
def test_no_labels_is_an_error_that_says_what_to_do(labels):
    nlp = make_nlp()
    examples = make_examples(nlp, ["Nobody came ."])
    with pytest.raises(InputError, match=r"no labels.*initialize\.components\.ner\.labels"):
        nlp.get_pipe("ner").initialize(lambda: examples, nlp=nlp, labels=labels)


def test_initialize_without_a_token_is_an_error():
    nlp = make_nlp()
    examples = make_examples(nlp, ["", ""])
    with pytest.raises(ValueError, match="ner"):
        nlp.get_pipe("ner").initialize(lambda: examples, nlp=nlp, labels=["PER"])


def test_label_that_appears_only_after_initialize_is_an_error():
    nlp = initialized()
    with pytest.raises(InputError, match=r"'ART'.*LOC, ORG, PER"):
        nlp.update(make_examples(nlp, ["the [Mona Lisa|ART]"]), sgd=Adam(0.01))


def test_labels_can_be_added_before_initialize_and_after_it():
    nlp = make_nlp()
    ner = nlp.get_pipe("ner")
    assert (ner.add_label("ART"), ner.add_label("ART")) == (1, 0)
    with pytest.raises(ValueError):
        ner.add_label(3)
    train(nlp, steps=0)
    assert ner.labels == ("ART", *LABELS)
    assert ner.add_label("PER") == 0
    with pytest.raises(ValueError):
        ner.add_label(3)
    assert ner.add_label("DAY") == 1
    assert ner.labels == ("ART", *LABELS, "DAY")
    assert ner.model.get_dim("nO") == len(ner.tags)


# Learning

LEARNERS = [
    ("BIOES", "label_pair", "PSABiLSTM", "Adam"),
    ("BIOES", "label_pair", "BiLSTM", "SGD"),
    ("BIOES", "transition", "PSABiLSTM", "SGD"),
    ("BIOES", "softmax", "PSABiLSTM", "Adam"),
    ("BIO", "label_pair", "PSABiLSTM", "SGD"),
    ("BIO", "transition", "BiLSTM", "Adam"),
    ("BIO", "softmax", "BiLSTM", "SGD"),
]


@pytest.mark.parametrize(("scheme", "head", "encoder", "optimizer"), LEARNERS)
def test_sentences_are_learnt_by_heart(scheme, head, encoder, optimizer):
    model = small_model(head, small_encoder(encoder))
    nlp = make_nlp(model, scheme=scheme)
    rate = 0.5 if head == "softmax" else 0.2
    history = train(nlp, 60, Adam(0.03) if optimizer == "Adam" else sgd(rate, 0.9))
    assert history[-1] < 0.1 * history[0]
    for line, text in zip(MARKED, TEXTS, strict=True):
        assert entities(nlp(text)) == read_marked(line)[1]


def test_other_tokens_than_those_of_the_annotation_are_trained_on():
    nlp = make_nlp()
    words = ["Mary", "-", "Anne", "'s flat", "in", "St.", "Ives"]
    spaces = [False, False, False, True, True, False, False]
    text = "Mary-Anne's flat in St.Ives"
    reference = Doc(nlp.vocab, words=["Mary-Anne", *text[9:].split()], spaces=[0, 1, 1, 1, 0])
    reference.set_ents([Span(reference, 0, 1, "PER"), Span(reference, 4, 5, "LOC")])
    predicted = Doc(nlp.vocab, words=words, spaces=spaces)
    assert predicted.text == reference.text == text
    example = Example(predicted, reference)
    train(nlp, 40, Adam(0.03), [example])
    ner = nlp.get_pipe("ner")
    (gold,) = ner._gold_tags(example, sentence_bounds(predicted))
    names = [ner.tags[tag] for tag in gold]
    assert names == ["B-PER", "I-PER", "E-PER", "O", "O", "B-LOC", "E-LOC"]
    doc = ner(Doc(nlp.vocab, words=words, spaces=spaces))
    assert entities(doc) == [(0, 3, "PER"), (5, 7, "LOC")]


# What stands on a doc


@pytest.mark.parametrize("scheme", ["BIOES", "BIO"])
def test_entities_on_the_doc_are_kept(scheme):
    nlp = initialized(scheme=scheme)
    ner = nlp.get_pipe("ner")
    words = ["Ada", "met", "Babbage", "in", "old", "London", "town"]
    held = [(1, 3, "ORG"), (4, 5, "PER"), (5, 7, "LOC")]
    for wish in ner.tags:
        favour(ner, wish)
        doc = Doc(nlp.vocab, words=words)
        doc.set_ents([Span(doc, *entity, kb_id="Q7") for entity in held], default="missing")
        ner(doc)
        favour(ner, wish, -50.0)
        assert set(held) <= set(entities(doc))
        assert {ent.start for ent in doc.ents if ent.kb_id_ == "Q7"} == {1, 4, 5}


def test_types_that_the_model_does_not_know_are_kept():
    nlp = initialized()
    ner = nlp.get_pipe("ner")
    favour(ner, "S-PER")
    doc = Doc(nlp.vocab, words=["a", "b", "c", "d", "e"])
    doc.set_ents([Span(doc, 1, 3, "ART")], default="missing")
    ner(doc)
    assert entities(doc) == [(0, 1, "PER"), (1, 3, "ART"), (3, 4, "PER"), (4, 5, "PER")]


def test_entity_on_the_doc_may_cross_a_sentence_boundary():
    nlp = initialized()
    ner = nlp.get_pipe("ner")
    favour(ner, "S-LOC")
    doc = Doc(nlp.vocab, words=["a", "b", "c", "d"], sent_starts=[True, False, True, False])
    doc.set_ents([Span(doc, 1, 3, "ORG")], default="missing")
    ner(doc)
    assert entities(doc) == [(0, 1, "LOC"), (1, 3, "ORG"), (3, 4, "LOC")]


def test_entity_ruler_before_the_component_has_the_last_word(trained):
    ruler = trained.add_pipe("entity_ruler", before="ner")
    ruler.add_patterns(
        [{"label": "SHIP", "pattern": "London"}, {"label": "ORG", "pattern": "Charles Babbage"}]
    )
    doc = trained(TEXTS[0])
    assert {(0, 2, "PER"), (3, 5, "ORG"), (6, 7, "SHIP")} <= set(entities(doc))


# Scores


@pytest.mark.parametrize(("scheme", "grammar"), [("BIOES", IOBES), ("BIO", IOB2)])
def test_scores_equal_those_of_seqeval(scheme, grammar):
    """On gold entities that agree with the predictions in part."""
    nlp = initialized(scheme=scheme)
    ner = nlp.get_pipe("ner")
    rng = random.Random(0)
    words = [word for text in TEXTS for word in text.split()]
    head = ner.model.get_ref("head").shims[0].module
    head.pair.weight.data.mul_(5)
    head.pair.bias.data.normal_()
    examples, gold_tags, predicted_tags = [], [], []
    for _ in range(40):
        sentence = [rng.choice(words) for _ in range(rng.randint(1, 12))]
        found = entities(ner(Doc(nlp.vocab, words=sentence)))
        gold = []
        for start, end, label in found:
            fate = rng.random()
            if fate < 0.5:
                gold.append((start, end, label))
            elif fate < 0.7:
                gold.append((start, end, rng.choice(LABELS)))
            elif fate < 0.85:
                gold.append((start, start + 1, label))
        reference = Doc(nlp.vocab, words=sentence)
        reference.set_ents([Span(reference, *entity) for entity in gold])
        examples.append(Example(Doc(nlp.vocab, words=sentence), reference))
        for spans, rows in ((gold, gold_tags), (found, predicted_tags)):
            tags = ner.scheme.encode(len(sentence), spans)
            rows.append([ner.tags[tag] for tag in tags])
    scores = nlp.evaluate(examples)
    report = classification_report(
        gold_tags, predicted_tags, output_dict=True, mode="strict", scheme=grammar, zero_division=0
    )
    expected = {"p": "precision", "r": "recall", "f": "f1-score"}
    for short, long in expected.items():
        assert scores[f"ents_{short}"] == pytest.approx(report["micro avg"][long])
        for label in scores["ents_per_type"]:
            ours = scores["ents_per_type"][label][short]
            assert ours == pytest.approx(report[label][long])
    assert 0.2 < scores["ents_f"] < 0.9
    assert set(scores["ents_per_type"]) == set(report) - {"micro avg", "macro avg", "weighted avg"}


def test_component_takes_part_in_a_pipeline_of_spacy():
    """Boundaries set by a sentencizer before it bound the analysis."""
    nlp = make_nlp()
    nlp.add_pipe("sentencizer", first=True)
    train(nlp, 40, Adam(0.03))
    assert numpy.mean([len(nlp(text).ents) for text in TEXTS]) > 1
    doc = nlp(" ".join(TEXTS[:3]))
    assert len(list(doc.sents)) == 3
    entities = [(ent.text, ent.label_) for ent in doc.ents]
    apart = [(ent.text, ent.label_) for text in TEXTS[:3] for ent in nlp(text).ents]
    assert entities == apart
