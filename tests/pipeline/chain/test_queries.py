"""What can be asked of a component about a doc: marginals, posteriors, entropy, the k best."""

import math
from itertools import product

import numpy
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from thinc.api import Adam

from spacy_psa.errors import InputError
from tests.helpers.analyses import enumerate_doc, tag_path
from tests.helpers.pipelines import (
    TEXTS,
    entities,
    make_examples,
    make_nlp,
    random_nlp,
    small_model,
    spans_of,
    train,
)


def test_posterior_answers_for_any_span_and_label():
    nlp = random_nlp()
    ner = nlp.get_pipe("ner")
    doc = nlp("Ada met Mary Evans")
    truth = enumerate_doc(ner, nlp.make_doc(doc.text))
    spans = [Span(doc, s, e, x) for s in range(4) for e in range(s + 1, 5) for x in ner.labels]
    expected = [truth.of((span.start, span.end, span.label_)) for span in spans]
    numpy.testing.assert_allclose(ner.posterior(spans), expected, atol=1e-10)
    assert len(ner.posterior([])) == 0
    assert ner.posterior([Span(doc, 2, 2, "PER")]) == [0.0]


def test_marginals_are_those_of_enumeration():
    nlp = random_nlp()
    ner = nlp.get_pipe("ner")
    doc = nlp.make_doc("Ada met Evans")
    truth = enumerate_doc(ner, doc)
    expected = numpy.zeros((3, len(ner.tags)))
    for spans, probability in zip(truth.values, truth.probabilities):
        expected[range(3), tag_path(spans, 3, ner.tags)] += probability
    numpy.testing.assert_allclose(ner.marginals(doc), expected, atol=1e-10)
    assert ner.marginals(nlp.make_doc("")).shape == (0, len(ner.tags))
    assert ner.entropy(nlp.make_doc("")) == 0.0


def test_own_predictions_are_no_evidence(unsure):
    """What is asked of an annotated doc is what is asked of a bare one."""
    nlp = unsure()
    ner = nlp.get_pipe("ner")
    bare, done = nlp.make_doc(TEXTS[0]), nlp(TEXTS[0])
    numpy.testing.assert_array_equal(ner.marginals(done), ner.marginals(bare))
    assert ner.entropy(done) == ner.entropy(bare) > 0
    spans = [Span(bare, ent.start, ent.end, ent.label_) for ent in done.ents]
    assert ner.posterior(done.ents).tolist() == ner.posterior(spans).tolist()
    (through,) = DocBin(docs=[done], store_user_data=True).get_docs(nlp.vocab)
    assert ner.entropy(through) == ner.entropy(bare)
    done.ents = [*done.ents, Span(done, 1, 2, "ORG")]  # a user's own
    assert ner.posterior([Span(done, 1, 2, "ORG")]) == pytest.approx([1.0])
    assert max(ner.posterior(done.ents[:1])) < 1.0


def test_wrong_questions_are_one_error_each(unsure):
    nlp = unsure()
    ner = nlp.get_pipe("ner")
    doc, other = nlp.make_doc("Ada met Evans"), nlp.make_doc("Ada left")
    with pytest.raises(InputError, match=r"'Evans' has the label 'ART'.*LOC, ORG, PER"):
        ner.posterior([Span(doc, 2, 3, "ART")])
    with pytest.raises(InputError, match="label ''"):
        ner.posterior([doc[2:3]])
    with pytest.raises(InputError, match="'left' and 'Ada' are spans of different docs"):
        ner.posterior([Span(doc, 0, 1, "PER"), Span(other, 1, 2, "PER")])
    for k in (0, -1):
        with pytest.raises(InputError, match=f"k is {k}"):
            ner.kbest(doc, k)


@pytest.mark.parametrize("head", ["label_pair", "softmax"])
@pytest.mark.parametrize("scheme", ["BIOES", "BIO"])
def test_kbest_is_the_order_of_enumeration(head, scheme):
    nlp = make_nlp(small_model(head), scheme=scheme)
    train(nlp, 3, Adam(0.05))
    ner = nlp.get_pipe("ner")
    doc = nlp.make_doc("Ada met Evans")
    truth = enumerate_doc(ner, doc)
    best = sorted(zip(truth.probabilities, truth.values), reverse=True)
    for k in (1, 7, len(best), 10_000):
        found = ner.kbest(doc, k)
        assert len(found) == min(k, len(best))
        analyses = [tuple(spans_of(spans)) for _, spans in found]
        assert len(set(analyses)) == len(analyses)
        log_probs = [log_prob for log_prob, _ in found]
        expected = numpy.log([p for p, _ in best[:k]])
        numpy.testing.assert_allclose(log_probs, expected, atol=1e-6)
        assert log_probs == sorted(log_probs, reverse=True)
        for log_prob, analysis in zip(log_probs, analyses):
            of = truth.probabilities[truth.values.index(analysis)]
            assert log_prob == pytest.approx(math.log(of), abs=1e-6)
    assert sum(math.exp(log_prob) for log_prob, _ in found) == pytest.approx(1.0)


def test_kbest_of_a_doc_of_several_sentences_is_of_the_whole():
    nlp = random_nlp()
    ner = nlp.get_pipe("ner")
    parts = [["Ada", "left"], ["Evans"], ["in", "Bath"]]
    words = [word for part in parts for word in part]
    starts = [i == 0 for part in parts for i in range(len(part))]
    doc = Doc(nlp.vocab, words=words, sent_starts=starts)
    truths = [enumerate_doc(ner, Doc(nlp.vocab, words=part)) for part in parts]
    expected = {}
    for combined in product(*(zip(truth.values, truth.probabilities) for truth in truths)):
        offsets = (0, 2, 3)
        spans = tuple(
            (s + offset, e + offset, x)
            for offset, (value, _) in zip(offsets, combined)
            for s, e, x in value
        )
        expected[spans] = sum(math.log(max(p, 1e-300)) for _, p in combined)
    best = sorted(expected.values(), reverse=True)
    found = ner.kbest(doc, 40)
    numpy.testing.assert_allclose([log_prob for log_prob, _ in found], best[:40], atol=1e-4)
    for log_prob, spans in found:
        assert log_prob == pytest.approx(expected[tuple(spans_of(spans))], abs=1e-4)
        assert all(span.doc is doc for span in spans)
    assert len(ner.kbest(doc, 10**6)) == len(expected)


def test_kbest_of_many_docs_is_that_of_each():
    nlp = random_nlp()
    ner = nlp.get_pipe("ner")
    docs = [nlp.make_doc(text) for text in ["", *TEXTS[:4]]]
    together = [analyses.kbest(3) for analyses in ner.analyses(docs)]
    assert together[0] == [(0.0, [])]
    for doc, found in zip(docs, together, strict=True):
        alone = ner.kbest(doc, 3)
        assert [spans for _, spans in found] == [spans for _, spans in alone]
        assert [p for p, _ in found] == pytest.approx([p for p, _ in alone], abs=1e-5)
    assert entities(nlp(docs[1].text)) == spans_of(together[1][0][1])


WAYS = [{}, {"confidence": True}, {"decode": "mbr"}, {"decode": "threshold"}]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_impossible_sentence_is_named_and_the_other_docs_go_on(way):
    """A model may exclude everything."""
    nlp = make_nlp(**way)
    train(nlp, steps=0)
    ner = nlp.get_pipe("ner")
    predict = ner._scores

    def excluding(docs):
        return [
            numpy.full_like(array, -numpy.inf) if doc.text.startswith("Bad") else array
            for doc, array in zip(docs, predict(docs))
        ]

    ner._scores = excluding
    bad = nlp.make_doc("Bad luck")
    asked = [ner, ner.marginals, ner.entropy, lambda doc: ner.kbest(doc, 2)]
    asked.append(lambda doc: ner.posterior([Span(doc, 0, 1, "PER")]))
    for ask in asked:
        with pytest.raises(InputError, match="no legal analysis of the sentence 'Bad luck'"):
            ask(bad)
    failed = []
    nlp.set_error_handler(lambda name, proc, docs, error: failed.extend(docs))
    done = list(nlp.pipe(["Ada left", "Bad luck", "Evans"]))
    assert [doc.text for doc in done] == ["Ada left", "Evans"]
    assert [doc.text for doc in failed] == ["Bad luck"]


def test_a_doc_that_the_upstream_has_not_seen_is_an_error():
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec")
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "tok2vec"}
    model = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": listener}
    ner = nlp.add_pipe("crf_ner", name="ner", config={"model": model})
    nlp.initialize(lambda: make_examples(nlp))
    unseen = nlp.make_doc("Ann left")
    asked = [ner, lambda doc: ner.analyses([doc]), lambda doc: ner.distribution([doc])]
    for ask in (ner.marginals, ner.entropy, *asked):
        with pytest.raises(InputError, match="ner: it listens to tok2vec, which has not seen"):
            ask(unseen)
    assert ner.marginals(nlp("Ann left")).shape == (2, len(ner.tags))
