"""The numbers of mentions and distinct entities are those of all analyses, one by one."""

import math
import pickle

import numpy
import pytest

from spacy_psa.pipeline.chain import mention_counts
from spacy_psa.pipeline.chain.mention_counts import TextCounts, count_mentions
from tests.helpers.analyses import enumerate_doc
from tests.helpers.pipelines import random_nlp

TEXTS = ["Ada met Ada", "Bob Bob Bob", "Ada", "Leeds Bath"]


@pytest.fixture(scope="module")
def nlp():
    return random_nlp()


def numbers(truth, doc, label):
    """The number of mentions and the forms of each analysis, with its probability."""
    for analysis, probability in zip(truth.values, truth.probabilities):
        own = [doc[s:e].text for s, e, name in analysis if name == label]
        yield probability, len(own), {*own}


def test_the_moments_of_mentions_are_those_of_all_analyses(nlp):
    ner = nlp.get_pipe("ner")
    docs = [nlp.make_doc(text) for text in TEXTS]
    for doc, counts in zip(docs, count_mentions(ner, docs)):
        truth = enumerate_doc(ner, doc)
        for label in ner.labels:
            values = numpy.array([(p, n) for p, n, _ in numbers(truth, doc, label)])
            mean = values.prod(1).sum()
            variance = (values[:, 0] * (values[:, 1] - mean) ** 2).sum()
            assert counts.mentions[label] == pytest.approx((mean, variance), abs=1e-6)


def test_a_form_is_absent_with_its_exact_probability_however_often_it_occurs(nlp, monkeypatch):
    monkeypatch.setattr(mention_counts, "FLOOR", 0.0)
    ner = nlp.get_pipe("ner")
    docs = [nlp.make_doc(text) for text in TEXTS]
    for doc, counts in zip(docs, count_mentions(ner, docs)):
        truth = enumerate_doc(ner, doc)
        for (label, form), log_absent in counts.absent.items():
            share = sum(p for p, _, forms in numbers(truth, doc, label) if form not in forms)
            assert math.exp(log_absent) == pytest.approx(share, abs=1e-6)
        for label, (mean, _) in counts.distinct().items():
            values = [(p, len(forms)) for p, _, forms in numbers(truth, doc, label)]
            assert mean == pytest.approx(sum(p * n for p, n in values), abs=1e-6)


def test_forms_that_overlap_exclude_each_other():
    counts = TextCounts()
    counts.mentions["A"] = mention_counts.Moments(1.0, 0.0)
    for form in ("New", "New York"):  # one of the two is there for sure
        counts.absent["A", form] = math.log(0.5)
    assert counts.distinct()["A"] == pytest.approx((1.0, 0.5))
    counts.rivals[("A", "New"), ("A", "New York")] = -math.inf
    assert counts.distinct()["A"] == pytest.approx((1.0, 0.0))


def test_texts_add_up_in_any_order_and_can_be_pickled(nlp):
    ner = nlp.get_pipe("ner")
    each = count_mentions(ner, [nlp.make_doc(text) for text in [*TEXTS, "Ada"]])
    forward, backward = TextCounts(), TextCounts()
    for counts in each:
        forward.add(pickle.loads(pickle.dumps(counts)))
    for counts in each[::-1]:
        backward.add(counts)
    for label in ner.labels:
        assert forward.distinct()[label] == pytest.approx(backward.distinct()[label])
        assert forward.distinct()[label].mean < sum(each.distinct()[label].mean for each in each)
        total = sum(counts.mentions[label].mean for counts in each)
        assert forward.mentions[label].mean == pytest.approx(total)


def test_evidence_on_docs_counts():
    nlp = random_nlp({"forbidden_spans_key": "no"})
    ner = nlp.get_pipe("ner")
    doc = nlp.make_doc("Ada met Ada")
    doc.set_ents([doc.char_span(0, 3, label="PER")], default="unmodified")
    doc.spans["no"] = [doc.char_span(8, 11, label=label) for label in ner.labels]
    (counts,) = count_mentions(ner, [doc])
    truth = enumerate_doc(ner, nlp.make_doc("Ada met Ada"))
    truth = truth.where(lambda spans: (0, 1, "PER") in spans and spans[-1][:2] != (2, 3))
    for label in ner.labels:
        mean = sum(p * n for p, n, _ in numbers(truth, doc, label))
        assert counts.mentions[label].mean == pytest.approx(mean, abs=1e-6)
    assert counts.distinct()["PER"].mean >= 1 - 1e-6
