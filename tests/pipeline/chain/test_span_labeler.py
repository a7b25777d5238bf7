"""Labelled spans, shown on `crf_ner`: evidence on docs, missing annotation, confidences."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Adam

from tests.helpers.analyses import agrees, enumerate_doc
from tests.helpers.pipelines import (
    TEXTS,
    entities,
    make_nlp,
    randomize,
    scored,
    small_model,
    summed_loss,
    train,
)

WORDS = ["Ada", "met", "Evans", "in", "Bath"]
LABELS = ["LOC", "ORG", "PER"]


@pytest.fixture(scope="module")
def pipelines():
    """Random pipelines: of both schemes, of potentials that are far from each other."""
    made = {}
    for scheme in ("BIOES", "BIO"):
        nlp = make_nlp(scheme=scheme)
        train(nlp, steps=0)
        randomize(nlp.get_pipe("ner"), seed=2)
        made[scheme] = nlp
    return made


@st.composite
def evidence(draw):
    """Spans that do not overlap and blocked tokens, of a doc of up to five."""
    n = draw(st.integers(1, 5))
    spans, blocked, i = [], [], 0
    while i < n:
        kind = draw(st.sampled_from(["free", "free", "span", "blocked"]))
        end = i + 1
        if kind == "span":
            end = draw(st.integers(i + 1, n))
            spans.append((i, end, draw(st.sampled_from(LABELS))))
        elif kind == "blocked":
            blocked.append(i)
        i = end
    return n, spans, blocked


# Evidence


@pytest.mark.parametrize("scheme", ["BIOES", "BIO"])
@settings(max_examples=25)
@given(case=evidence())
def test_result_is_the_best_analysis_that_agrees_with_the_evidence(pipelines, scheme, case):
    n, spans, blocked = case
    nlp = pipelines[scheme]
    ner = nlp.get_pipe("ner")
    bare = Doc(nlp.vocab, words=WORDS[:n])
    truth = enumerate_doc(ner, bare).where(agrees(spans, blocked))
    doc = Doc(nlp.vocab, words=WORDS[:n])
    doc.set_ents(
        [Span(doc, *span) for span in spans],
        blocked=[doc[i : i + 1] for i in blocked],
        default="missing",
    )
    assert ner.entropy(doc) == pytest.approx(truth.entropy, abs=1e-6)
    asked = [Span(doc, s, e, x) for s in range(n) for e in range(s + 1, n + 1) for x in LABELS]
    expected = [truth.of((span.start, span.end, span.label_)) for span in asked]
    numpy.testing.assert_allclose(ner.posterior(asked), expected, atol=1e-8)
    ner(doc)
    assert tuple(entities(doc)) == truth.best
    assert [t.i for t in doc if t.ent_iob == 3 and not t.ent_type] == blocked
    ner(doc)  # its own prediction is no evidence: again, the same
    assert tuple(entities(doc)) == truth.best


def test_overwrite_ignores_what_stands_on_the_doc(trained_bytes):
    nlp = make_nlp(overwrite=True).from_bytes(trained_bytes)
    expected = entities(nlp(TEXTS[0]))
    doc = nlp.make_doc(TEXTS[0])
    doc.set_ents([Span(doc, 0, 3, "ORG")], blocked=[doc[4:5]])
    assert entities(nlp.get_pipe("ner")(doc)) == expected != []
    assert all(t.ent_type or t.ent_iob == 2 for t in doc)


def test_evidence_has_the_confidence_one(trained_bytes):
    nlp = make_nlp(confidence=True).from_bytes(trained_bytes)
    doc = nlp.make_doc(TEXTS[0])
    doc.ents = [Span(doc, 2, 3, "ORG"), Span(doc, 3, 5, "UNKNOWN")]
    doc = nlp.get_pipe("ner")(doc)
    found = {ent.label_: ent._.confidence for ent in doc.ents}
    assert found["ORG"] == found["UNKNOWN"] == 1.0 and len(doc.spans["ner"]) == len(doc.ents)


# Partial annotation


@pytest.mark.parametrize("scheme", ["BIOES", "BIO"])
@settings(max_examples=15)
@given(case=evidence())
def test_loss_is_the_marginal_likelihood_of_what_is_known(pipelines, scheme, case):
    n, spans, outside = case
    nlp = pipelines[scheme]
    doc = Doc(nlp.vocab, words=WORDS[:n])
    gold = Doc(nlp.vocab, words=WORDS[:n])
    gold.set_ents(
        [Span(gold, *span) for span in spans],
        outside=[gold[i : i + 1] for i in outside],
        default="missing",
    )
    truth = enumerate_doc(nlp.get_pipe("ner"), doc)
    keep = agrees(spans, outside)
    known = truth.share(keep)
    loss, _ = summed_loss(nlp, [Example(doc, gold)])
    assert loss == pytest.approx(-numpy.log(known), abs=1e-3)


def test_hyphens_of_an_example_are_missing_annotation(pipelines):
    nlp = pipelines["BIOES"]
    doc = Doc(nlp.vocab, words=WORDS[:4])
    truth = enumerate_doc(nlp.get_pipe("ner"), doc)
    example = Example.from_dict(doc, {"entities": ["-", "O", "U-PER", "-"]})
    keep = agrees([(2, 3, "PER")], [1])
    known = truth.share(keep)
    assert summed_loss(nlp, [example])[0] == pytest.approx(-numpy.log(known), abs=1e-3)
    nothing = Example.from_dict(doc, {"entities": ["-"] * 4})
    loss, (gradient,) = summed_loss(nlp, [nothing])
    assert loss == pytest.approx(0.0, abs=1e-4) and abs(gradient).max() < 1e-5


def test_misaligned_entities_are_missing_annotation(pipelines):
    """The reference splits a token in the middle of its entity: nothing is known of it."""
    nlp = pipelines["BIOES"]
    doc = Doc(nlp.vocab, words=["Ada", "metEvans", "in"], spaces=[True, True, False])
    gold = Doc(nlp.vocab, words=["Ada", "met", "Evans", "in"], spaces=[True, False, True, False])
    gold.ents = [Span(gold, 0, 1, "PER"), Span(gold, 2, 3, "PER")]
    truth = enumerate_doc(nlp.get_pipe("ner"), doc)
    keep = agrees([(0, 1, "PER")], [2])
    known = truth.share(keep)
    assert summed_loss(nlp, [Example(doc, gold)])[0] == pytest.approx(-numpy.log(known), abs=1e-3)


# Confidences and settings


def test_confidence_is_off_unless_asked_for(unsure):
    doc = unsure()(TEXTS[0])
    assert not doc.spans


@pytest.mark.parametrize("scheme", ["BIOES", "BIO"])
@pytest.mark.parametrize("head", ["label_pair", "softmax"])
def test_predicted_spans_have_the_probability_of_enumeration(scheme, head):
    nlp = make_nlp(small_model(head), scheme=scheme, confidence=True)
    train(nlp, 20, Adam(0.05))
    ner = nlp.get_pipe("ner")
    seen = 0
    for text in ["Ada met Evans", "Acme", "in Bath Leeds ."]:
        doc = nlp(text)
        truth = enumerate_doc(ner, nlp.make_doc(text))
        found = scored(doc)
        assert list(found) == entities(doc) == list(truth.best)
        for span, probability in found.items():
            assert probability == pytest.approx(truth.of(span), abs=1e-6)
        assert doc._.ner_uncertainty == pytest.approx(truth.entropy, abs=1e-5)
        assert ner.entropy(doc) == pytest.approx(truth.entropy, abs=1e-9)
        seen += len(found)
    assert seen


def test_docs_without_spans_or_tokens_have_an_empty_group(unsure):
    nlp = unsure(confidence=True)
    for doc in nlp.pipe(["", " ", "Nobody came ."]):
        assert len(doc.spans["ner"].attrs["scores"]) == len(doc.spans["ner"]) == len(doc.ents)
        assert doc._.ner_uncertainty >= 0.0
    assert nlp("")._.ner_uncertainty == 0.0


def test_confidence_is_that_of_each_sentence(unsure):
    """Of a doc of two sentences, and of each of them alone."""
    nlp = unsure(confidence=True)
    words = [TEXTS[0].split(), TEXTS[2].split()]
    starts = [i == 0 for part in words for i in range(len(part))]
    whole = nlp(Doc(nlp.vocab, words=words[0] + words[1], sent_starts=starts))
    parts = [nlp(Doc(nlp.vocab, words=part)) for part in words]
    expected = {**scored(parts[0])}
    for (start, end, label), p in scored(parts[1]).items():
        expected[start + len(words[0]), end + len(words[0]), label] = p
    assert scored(whole) == pytest.approx(expected, abs=1e-6)
    total = sum(part._.ner_uncertainty for part in parts)
    assert whole._.ner_uncertainty == pytest.approx(total, abs=1e-5)
    ner = nlp.get_pipe("ner")
    assert ner.marginals(whole).shape == (len(whole), len(ner.tags))
    assert ner.posterior([Span(whole, len(words[0]) - 1, len(words[0]) + 1, "PER")]) == [0.0]
