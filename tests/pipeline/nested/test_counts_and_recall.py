"""Counts of nested spans, promises of recall and redaction, compared with enumeration."""

import math

import numpy
import pytest

from spacy_psa.analysis.recall import features
from spacy_psa.pipeline.chain import mention_counts
from spacy_psa.pipeline.chain.mention_counts import count_mentions
from spacy_psa.pipeline.chain.redaction import redact, shown_spans, thresholds
from spacy_psa.pipeline.coverage import Promise
from tests.helpers.nested_pipelines import example, make
from tests.helpers.pipelines import randomize, spans_of

LAYERS = pytest.mark.parametrize("layers", ["one", "label"])
TEXT = "Ada saw Ada"
GOLD = [[(0, 3, "A"), (0, 3, "B")], [(0, 1, "A")], [(2, 3, "B")]]


def untrained(layers):
    """A component whose weights are random, and a doc."""
    nlp = make(layers=layers)
    nlp.initialize(lambda: [example(nlp, TEXT, spans) for spans in GOLD])
    pipe = nlp.get_pipe("crf_spans")
    pipe.model.begin_update([nlp.make_doc(TEXT)])  # the words get rows of their own
    randomize(pipe)
    return pipe, nlp.make_doc(TEXT)


def every(pipe, doc):
    """Each set of spans of a doc with its probability."""
    return [(math.exp(p), spans_of(own)) for p, own in pipe.kbest(doc, 10**5)]


@LAYERS
def test_mentions_and_distinct_forms_are_those_of_all_sets(layers, monkeypatch):
    monkeypatch.setattr(mention_counts, "FLOOR", 0.0)
    pipe, doc = untrained(layers)
    (counts,) = count_mentions(pipe, [doc])
    sets = every(pipe, doc)
    assert list(counts.mentions) == ["A", "B"]  # also if spans have both
    for label, moments in counts.mentions.items():
        values = numpy.array([(p, sum(x == label for *_, x in own)) for p, own in sets])
        mean = values.prod(1).sum()
        variance = (values[:, 0] * (values[:, 1] - mean) ** 2).sum()
        assert moments == pytest.approx((mean, variance), abs=1e-4)
    for (label, form), log_absent in counts.absent.items():
        forms = [(p, {doc[s:e].text for s, e, x in own if x == label}) for p, own in sets]
        assert math.exp(log_absent) == pytest.approx(
            sum(p for p, own in forms if form not in own), abs=1e-4
        )


@LAYERS
def test_only_forms_whose_spans_cannot_both_be_there_are_rivals(layers, monkeypatch):
    monkeypatch.setattr(mention_counts, "FLOOR", 0.0)
    monkeypatch.setattr(mention_counts, "JOINT", 0.0)
    pipe, doc = untrained(layers)
    (counts,) = count_mentions(pipe, [doc])
    for label in ("A", "B"):
        crossing = (label, "Ada saw"), (label, "saw Ada")
        nested = (label, "Ada saw"), (label, "saw")
        assert counts.rivals[crossing] < 0
        assert (nested in counts.rivals) == (layers == "label")


@LAYERS
def test_the_spans_of_a_promise_are_those_that_are_likely_enough(layers):
    pipe, doc = untrained(layers)
    (analyses,) = pipe.analyses([doc])
    chances = {
        (s, e, x): analyses.posterior([(s, e, x)])[0]
        for s in range(3) for e in range(s + 1, 4) for x in "AB"
    }  # fmt: skip
    least = sorted(chances.values())[5]
    pipe.calibrated.recall = {"": Promise(0.9, 0.95, least, 100)}
    assert set(thresholds(pipe, pipe._span_labels)) == {"A", "B"}
    for labels in (["B"], None):
        (shown,) = shown_spans(pipe, [doc], labels)
        likely = {s: p for s, p in chances.items() if p >= least and s[2] in (labels or "AB")}
        assert {(s.start, s.end, s.label_): p for s, p in shown} == pytest.approx(likely)
    assert redact(doc, shown, analyses.best).text in ("[A]", "[B]")  # all of it is in one of them


@LAYERS
def test_features_have_the_expected_number_of_spans_of_each_label(layers):
    pipe, doc = untrained(layers)
    (row,) = features(pipe, [doc])
    sets = every(pipe, doc)
    for label, value in zip("AB", row[1:3]):
        expected = sum(p * sum(x == label for *_, x in own) for p, own in sets)
        assert value == pytest.approx(expected / 3, abs=1e-4)
