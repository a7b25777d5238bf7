"""How useful a text is, against all of its analyses one by one; and the order of texts."""

import math

import pytest
import spacy
from spacy.tokens import Span

from spacy_psa.studio.active_learning.queue import Order, TextQueue, contradicted, usefulness
from spacy_psa.studio.active_learning.tokens import Tokens, split_into_sentences
from tests.helpers.pipelines import random_nlp, spans_of
from tests.helpers.served import served_pipeline

TEXTS = ["Ada met Bob", "Evans in Bath", "Leeds", "He left Acme"]
EVIDENCE = [
    {},
    {"require": [(0, 1, "PER")]},
    {"forbid": [(0, 1, "PER"), (0, 1, "ORG")]},
    {"allow": {0: "O"}},
]


@pytest.fixture(scope="module", params=["BIOES", "BIO"])
def nlp(request):
    return random_nlp({"scheme": request.param})


def analyses_of(ner, doc):
    (analyses,) = ner.analyses([doc])
    return analyses


def enumerated(ner, doc, evidence, order):
    """The same from all analyses of a doc with their probabilities."""
    ranked = analyses_of(ner, doc).given(**evidence).kbest(100_000)
    analyses = [(math.exp(log_prob), set(spans_of(spans))) for log_prob, spans in ranked]
    assert sum(p for p, _ in analyses) == pytest.approx(1)
    if order is Order.entropy:
        return -sum(p * math.log(p) for p, _ in analyses if p) / len(doc)
    best = analyses[0][1]
    return sum(p * len(best ^ spans) for p, spans in analyses)


@pytest.mark.parametrize("order", [Order.entropy, Order.errors])
@pytest.mark.parametrize("evidence", EVIDENCE, ids=str)
def test_usefulness_is_that_of_all_analyses_one_by_one(nlp, order, evidence):
    ner = nlp.get_pipe("ner")
    for text in TEXTS:
        doc = nlp.make_doc(text)
        useful = usefulness(analyses_of(ner, doc).given(**evidence), order)
        assert useful == pytest.approx(enumerated(ner, doc, evidence, order), rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("order", [Order.entropy, Order.errors])
def test_usefulness_of_tags_is_that_of_all_sequences_one_by_one(order):
    tagger = served_pipeline(steps=2).get_pipe("tagger")
    analyses = analyses_of(tagger, spacy.blank("en")("Ada met Bob")).given(forbid=[(0, 1, "WORD")])
    ranked = [(math.exp(log_prob), tags) for log_prob, tags in analyses.kbest(100)]
    best = ranked[0][1]
    if order is Order.entropy:
        expected = -sum(p * math.log(p) for p, _ in ranked if p) / 3
    else:
        expected = sum(p * sum(a != b for a, b in zip(best, tags)) for p, tags in ranked)
    assert usefulness(analyses, order) == pytest.approx(expected, rel=1e-5)


def test_a_text_of_several_sentences_counts_each():
    nlp = random_nlp()
    nlp.add_pipe("sentencizer", first=True)
    ner = nlp.get_pipe("ner")
    both = split_into_sentences(nlp, "ner", nlp.make_doc("Ada met Bob. Evans left."))
    assert Tokens.of(both).starts == (True, False, False, False, True, False, False)
    parts = [nlp.make_doc("Ada met Bob."), nlp.make_doc("Evans left.")]
    assert usefulness(analyses_of(ner, both), Order.errors) == pytest.approx(
        sum(usefulness(analyses_of(ner, part), Order.errors) for part in parts)
    )
    assert usefulness(analyses_of(ner, both), Order.entropy) == pytest.approx(
        sum(usefulness(analyses_of(ner, part), Order.entropy) * len(part) for part in parts) / 7
    )


def everything(queue):
    numbers = []
    while (number := queue.next(numbers)) is not None:
        numbers.append(number)
    return numbers


@pytest.mark.parametrize("order", [Order.entropy, Order.errors])
def test_the_most_useful_text_is_first(order):
    nlp = random_nlp()
    ner = nlp.get_pipe("ner")
    values = [enumerated(ner, nlp.make_doc(text), {}, order) for text in TEXTS]
    queue = TextQueue(range(4), order)
    for number in queue.stale():
        queue.put(number, usefulness(analyses_of(ner, nlp.make_doc(TEXTS[number])), order))
    assert everything(queue) == sorted(range(4), key=lambda i: -values[i])
    assert queue.stale() == []


def test_texts_whose_rules_the_model_contradicts_come_first():
    nlp = random_nlp({"suggested_spans": {"rules": 30.0, "bad": -1.0}})
    ner = nlp.get_pipe("ner")
    doc = nlp.make_doc("Ada met Bob")
    best = [(s.start, s.end, s.label_) for s in analyses_of(ner, doc).best]
    others = [(0, 3, x) for x in ner.labels if (0, 3, x) not in best]

    def contradicted_by(key, *spans, **evidence):
        doc.spans[key] = [Span(doc, *span) for span in spans]
        answer = contradicted(analyses_of(ner, doc).given(**evidence))
        del doc.spans[key]
        return answer

    assert best and others
    assert not contradicted_by("rules", *best)
    assert not contradicted_by("bad", others[0])
    assert not contradicted_by("rules", others[0], best[0])  # a rule agrees with the model
    assert contradicted_by("rules", others[0])  # however probable the rule makes it
    assert not contradicted_by("rules", others[0], forbid=[others[0]])  # a person has decided
    queue = TextQueue([1, 2, 3], Order.entropy)
    for number in (1, 2, 3):
        queue.put(number, 1.0 / number, first=number == 3)
    assert everything(queue) == [3, 1, 2]


def test_a_new_model_makes_all_values_stale_and_keeps_them_until_they_are_computed():
    queue = TextQueue([1, 2, 3], Order.entropy)
    for number, value in [(1, 0.1), (2, 0.9), (3, 0.5)]:
        queue.put(number, value)
    queue.renew()
    assert queue.stale() == [2, 3, 1]
    assert queue.stale(done=lambda number: number == 2) == [3, 1]
    queue.put(2, 0.2)
    assert queue.stale() == [3, 1]
    assert not queue.is_stale(2)
    assert everything(queue) == [3, 2, 1]


def test_the_texts_are_sorted_once_a_model(monkeypatch):
    """And not once for each of the few texts that are computed together."""
    queue = TextQueue(range(1000), Order.entropy)
    ranked = []
    rank = TextQueue._rank
    monkeypatch.setattr(TextQueue, "_rank", lambda self, n: ranked.append(n) or rank(self, n))
    for number in queue.stale():
        queue.put(number, 1 / (1 + number))
        assert queue.next([]) is not None
    assert len(ranked) <= 4 * 1000


def test_the_random_order_is_that_of_its_seed_and_needs_no_model():
    first, same, other = (TextQueue(range(50), Order.random, seed) for seed in (1, 1, 2))
    assert everything(first) == everything(same) != everything(other)
    assert sorted(everything(first)) == list(range(50)) != everything(first)
    assert first.stale() == []


def test_skipped_texts_come_last_in_the_order_of_skips_and_those_of_others_after_them():
    queue = TextQueue([1, 2, 3, 4], Order.entropy)
    for number in (1, 2, 3, 4):
        queue.put(number, -number)
    assert queue.next([], {1: 8, 2: 5}) == 3
    assert queue.next([3, 4], {1: 8, 2: 5}) == 2
    assert queue.next([3, 4], {1: 8, 2: 5}, avoided=lambda number: number == 2) == 1
    assert queue.next([1, 2, 3, 4]) is None
