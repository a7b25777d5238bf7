"""Decoding with evidence: compared with the enumeration of all analyses."""

import itertools
import math

import numpy
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span
from thinc.api import Adam

from spacy_psa.errors import InputError
from tests.helpers.analyses import Truth, enumerate_doc
from tests.helpers.pipelines import make_nlp, random_nlp, small_model, train

LABELS = ["LOC", "ORG", "PER"]
WORDS = ["Ada", "met", "Evans", "Bath"]
SPANS = [(s, e, x) for s in range(4) for e in range(s + 1, 5) for x in [*LABELS, ""]]


@pytest.fixture(scope="module", params=["BIOES", "BIO", "softmax"])
def trained(request):
    head = "softmax" if request.param == "softmax" else "label_pair"
    scheme = "BIO" if request.param == "BIO" else "BIOES"
    nlp = make_nlp(small_model(head), scheme=scheme)
    train(nlp, 8, Adam(0.05))
    doc = Doc(nlp.vocab, words=WORDS)
    return nlp, doc, enumerate_doc(nlp.get_pipe("ner"), doc)


def has(analysis, span):
    start, end, label = span
    return any((s, e) == (start, end) and label in ("", x) for s, e, x in analysis)


def label_at(analysis, i):
    return next((label for s, e, label in analysis if s <= i < e), "O")


def agreeing(truth: Truth, require=(), forbid=(), allow=None) -> Truth | None:
    def keep(analysis):
        return (
            all(has(analysis, span) for span in require)
            and not any(has(analysis, span) for span in forbid)
            and all(label_at(analysis, i) in may for i, may in (allow or {}).items())
        )

    return truth.where(keep) if truth.share(keep) > 0 else None


def given_evidence(pipe, doc, **evidence):
    (analyses,) = pipe.analyses([doc])
    return analyses.given(**evidence)


def triples(spans):
    return tuple((span.start, span.end, span.label_) for span in spans)


@settings(max_examples=60)
@given(
    require=st.lists(st.sampled_from(SPANS), max_size=2),
    forbid=st.lists(st.sampled_from(SPANS), max_size=6),
    allow=st.dictionaries(
        st.integers(0, 3), st.sets(st.sampled_from([*LABELS, "O"]), min_size=1), max_size=2
    ),
)
def test_analyses_under_evidence_are_those_of_enumeration(trained, require, forbid, allow):
    nlp, doc, truth = trained
    ner = nlp.get_pipe("ner")
    expected = agreeing(truth, require, forbid, allow)
    if expected is None:
        with pytest.raises(InputError, match="ner: "):
            given_evidence(ner, doc, require=require, forbid=forbid, allow=allow)
        return
    analyses = given_evidence(ner, doc, require=require, forbid=forbid, allow=allow)
    ranked = analyses.kbest(6)
    order = numpy.argsort(-expected.probabilities, kind="stable")[:6]
    got = [math.exp(log_prob) for log_prob, _ in ranked]
    numpy.testing.assert_allclose(got, expected.probabilities[order], rtol=1e-5)
    for log_prob, spans in ranked:
        probability = expected.share(lambda analysis, spans=spans: analysis == triples(spans))
        assert probability == pytest.approx(math.exp(log_prob), rel=1e-5)
    assert len({triples(spans) for _, spans in ranked}) == len(got)
    assert triples(analyses.best) == triples(ranked[0][1])
    share = truth.share(lambda analysis: analysis in set(expected.values))
    assert analyses.log_evidence == pytest.approx(math.log(share), abs=1e-5)


@settings(max_examples=20)
@given(forbid=st.lists(st.sampled_from(SPANS), max_size=5, min_size=1))
def test_all_answers_take_account_of_forbidden_spans(trained, forbid):
    nlp, doc, truth = trained
    ner = nlp.get_pipe("ner")
    expected = agreeing(truth, forbid=forbid)
    analyses = given_evidence(ner, doc, forbid=forbid)
    spans = [span for span in SPANS if span[2]]
    values = analyses.posterior(spans)
    numpy.testing.assert_allclose(values, [expected.of(span) for span in spans], atol=1e-6)
    assert analyses.entropy == pytest.approx(expected.entropy, abs=1e-5)
    outside = [expected.share(lambda a, i=i: label_at(a, i) == "O") for i in range(len(doc))]
    numpy.testing.assert_allclose(analyses.marginals[:, 0], outside, atol=1e-6)
    numpy.testing.assert_allclose(analyses.marginals.sum(1), 1.0)


@pytest.mark.parametrize("head", ["label_pair", "softmax"])
@pytest.mark.parametrize("scheme", ["BIOES", "BIO"])
def test_spans_begin_and_end_with_words(scheme, head):
    """As in spaCy's `ner`: training data has no white space that could teach it."""
    nlp = random_nlp({"scheme": scheme}, head=head)
    ner = nlp.get_pipe("ner")
    doc = Doc(nlp.vocab, words=["\n", "Ada", " ", "Evans", "\n\n"])
    rows = ner.kbest(doc, 5000)
    assert sum(math.exp(log_prob) for log_prob, _ in rows) == pytest.approx(1.0)
    for _, spans in rows:
        assert not any(span[0].is_space for span in spans)
        assert scheme == "BIO" or not any(span[-1].is_space for span in spans)
    assert any((span.start, span.end) == (1, 4) for _, spans in rows for span in spans)
    assert ner.posterior([Span(doc, 0, 2, "PER")]).tolist() == [0.0]
    with pytest.raises(InputError, match="begins or ends with white space"):
        given_evidence(ner, doc, require=[(0, 2, "PER")])


def test_a_span_on_the_doc_keeps_its_white_space():
    nlp = random_nlp({"overwrite": False})
    doc = Doc(nlp.vocab, words=["\n", "Ada", "met", " "])
    doc.set_ents([Span(doc, 0, 2, "PER")], default="missing")
    assert triples(nlp.get_pipe("ner")(doc).ents)[0] == (0, 2, "PER")


@pytest.mark.parametrize(
    ("factory", "settings", "message"),
    [
        ("crf_ner", {"required_spans_key": "a", "forbidden_spans_key": "a"}, "required_spans_key"),
        ("crf_chunker", {"spans_key": ""}, "spans_key is '': .* name of a span group"),
        ("crf_chunker", {"required_spans_key": "chunks"}, "spans_key is 'chunks': required_span"),
        ("constituency_parser", {"forbidden_spans_key": "constituents"}, "spans_key is 'constit"),
    ],
)
def test_evidence_has_a_span_group_of_its_own(factory, settings, message):
    with pytest.raises(InputError, match=f"^pipe: {message}"):
        spacy.blank("en").add_pipe(factory, name="pipe", config=settings)


@pytest.mark.parametrize("decode", ["viterbi", "mbr", "threshold"])
@pytest.mark.parametrize("factory", ["crf_ner", "crf_chunker"])
def test_span_groups_are_evidence_in_a_pipeline(factory, decode):
    """Also beside a sentence without evidence, which has fewer tags."""
    nlp = spacy.blank("en")
    keys = {"required_spans_key": "yes", "forbidden_spans_key": "no"}
    config = {"model": small_model(), "decode": decode, "threshold": 0.05, "confidence": True}
    pipe = nlp.add_pipe(factory, name="pipe", config={**config, **keys})
    for label in LABELS:
        pipe.add_label(label)
    spacy.util.fix_random_seed(1)
    nlp.initialize()
    yes, no = [(1, 2, "PER")], [(2, 4, "ORG"), (2, 3, "LOC"), (2, 4, "PER"), (3, 4, "ORG")]
    truth = agreeing(enumerate_doc(pipe, Doc(nlp.vocab, words=WORDS)), yes, no)
    doc = Doc(nlp.vocab, words=[*WORDS, *WORDS], sent_starts=[1, 0, 0, 0] * 2)
    doc.spans["yes"] = [Span(doc, *span) for span in yes]
    doc.spans["no"] = [Span(doc, *span) for span in no]
    pipe(doc)
    group = doc.spans["pipe"]
    got = dict(zip(triples(group), group.attrs["scores"].tolist()))
    got = {span: score for span, score in got.items() if span[0] < 4}
    for span, score in got.items():
        assert score == pytest.approx(truth.of(span), abs=1e-6)
    assert got[1, 2, "PER"] == pytest.approx(1.0)
    assert not set(got) & set(no)
    if decode == "viterbi":
        assert tuple(got) == truth.best
    if decode == "threshold":
        every = {span for span in SPANS if span[2] and truth.of(span) >= 0.05}
        assert set(got) == every
    if decode == "mbr":

        def expected_f1(chosen):
            return sum(
                p * (2 * len(set(v) & set(chosen)) / (len(v) + len(chosen)) if v or chosen else 1)
                for v, p in zip(truth.values, truth.probabilities)
            )

        alone = Doc(nlp.vocab, words=WORDS)
        alone.spans["yes"] = [Span(alone, *span) for span in yes]
        alone.spans["no"] = [Span(alone, *span) for span in no]
        chosen = triples(pipe(alone).spans["pipe"])
        assert expected_f1(chosen) == pytest.approx(max(map(expected_f1, truth.values)))
        pipe(doc)  # its own predictions are no evidence
    before = triples(doc.spans["pipe"])
    assert triples(pipe(doc).spans["pipe"]) == before


def test_only_the_sentences_that_the_evidence_is_about_are_computed_anew(trained):
    nlp, _, truth = trained
    ner = nlp.get_pipe("ner")
    doc = Doc(nlp.vocab, words=WORDS * 3, sent_starts=[1, 0, 0, 0] * 3)
    (analyses,) = ner.analyses([doc])
    more = analyses.given(forbid=[(4, 6, "PER")], allow={5: "O"})
    same = [one is other for one, other in zip(analyses.sentences, more.sentences)]
    assert same == [True, False, True]
    again = more.given(require=[(6, 8, "ORG")])
    expected = agreeing(truth, [(2, 4, "ORG")], [(0, 2, "PER")], {1: "O"})
    one = [span for span in again.best if 4 <= span.start < 8]
    assert tuple((s - 4, e - 4, x) for s, e, x in triples(one)) == expected.best
    assert analyses.log_evidence == 0.0


def test_the_evidence_on_a_doc_counts_beside_what_is_asked(trained):
    nlp, _, truth = trained
    ner = nlp.get_pipe("ner")
    doc = Doc(nlp.vocab, words=WORDS)
    doc.set_ents([Span(doc, 0, 1, "ORG")], blocked=[doc[1:2]], default="missing")
    expected = agreeing(truth, [(0, 1, "ORG")], [(2, 4, "PER")], {1: "O"})
    more = given_evidence(ner, doc, forbid=[Span(doc, 2, 4, "PER")])
    assert triples(more.best) == expected.best
    for span, why in (((0, 2, "PER"), "overlap"), ((1, 3, "PER"), "token 1 may not have this")):
        with pytest.raises(InputError, match=why):
            given_evidence(ner, doc, require=[span])


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        (
            {"require": [(0, 2, "PER"), (1, 3, "ORG")]},
            r"'Ada met' \(PER\) and 'met Evans' \(ORG\) overlap and are both required",
        ),
        ({"require": [(0, 2, "PER"), (0, 2, "ORG")]}, "overlap and are both required"),
        (
            {"require": [(0, 2, "PER")], "forbid": [(0, 2, "PER")]},
            r"'Ada met' \(PER\) is required and forbidden",
        ),
        ({"require": [(0, 2, "PER")], "forbid": [(0, 2)]}, "is required and forbidden"),
        ({"require": [(0, 2, "PER")], "allow": {1: ["ORG", "O"]}}, "token 1 may not have this"),
        ({"allow": {0: []}}, "token 0 'Ada' has neither a label nor 'O' allowed"),
        (
            {"allow": {0: LABELS}, "forbid": [(0, e) for e in (1, 2, 3, 4)]},
            "no analysis of the sentence 'Ada met Evans Bath' agrees",
        ),
        ({"require": [(0, 1, "ART")]}, "'Ada' has the label 'ART', which is not among"),
        ({"forbid": [(0, 1, "ART")]}, "label 'ART'"),
        ({"allow": {2: "ART"}}, "token 2 'Evans' has the label 'ART'"),
        ({"allow": {4: "O"}}, "token 4 is not in the doc of 4 tokens"),
        ({"require": [(2, 2, "PER")]}, r"\(2, 2\) is not a span of a doc of 4 tokens"),
        ({"forbid": [(0, 9, "PER")]}, "is not a span"),
    ],
)
def test_a_contradiction_is_named(trained, evidence, why):
    nlp, doc, _ = trained
    with pytest.raises(InputError, match=why):
        given_evidence(nlp.get_pipe("ner"), doc, **evidence)


def test_a_required_span_across_sentences_is_named_and_a_forbidden_one_is_no_news(trained):
    nlp, *_ = trained
    ner = nlp.get_pipe("ner")
    doc = Doc(nlp.vocab, words=WORDS, sent_starts=[1, 0, 1, 0])
    with pytest.raises(InputError, match="a sentence ends inside"):
        given_evidence(ner, doc, require=[(1, 3, "PER")])
    assert given_evidence(ner, doc, forbid=[(1, 3, "PER")]).log_evidence == 0.0
    other = Doc(nlp.vocab, words=WORDS)
    with pytest.raises(InputError, match="of another doc"):
        given_evidence(ner, doc, require=[Span(other, 0, 1, "PER")])


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda ner, doc: ner.kbest(doc, 1.5), "k is 1.5: it must be a whole number"),
        (lambda ner, doc: ner.kbest(doc, True), "k is True: it must be a whole number"),
        (lambda ner, doc: ner.kbest(doc, 0), "k is 0"),
        (lambda ner, doc: ner.analyses([doc])[0].sample(0), "n is 0"),
        (lambda ner, doc: given_evidence(ner, doc, require=(0, 1, "PER")), "0 is not a span:"),
        (lambda ner, doc: given_evidence(ner, doc, forbid=["PER"]), "'PER' is not a span:"),
        (lambda ner, doc: ner.analyses([doc])[0].posterior([(0, 1)]), "'Ada' has the label ''"),
        (lambda ner, doc: ner.posterior([(0, 1, "PER")]), r"use analyses\(\[doc\]\)\[0"),
        (lambda ner, doc: ner.kbest("Ada", 1), "'Ada' is not a Doc: use nlp.make_doc"),
    ],
)
def test_what_is_asked_wrongly_is_one_error(trained, ask, why):
    nlp, doc, _ = trained
    with pytest.raises(InputError, match=why):
        ask(nlp.get_pipe("ner"), doc)


def test_a_doc_without_tokens_has_one_analysis(trained):
    nlp, *_ = trained
    (analyses,) = nlp.get_pipe("ner").analyses([Doc(nlp.vocab)])
    assert analyses.kbest(3) == [(0.0, [])] and analyses.sample(2) == [[], []]


def test_tags_under_evidence_are_those_of_enumeration():
    nlp = spacy.blank("en")
    keys = {"required_spans_key": "yes", "forbidden_spans_key": "no"}
    tagger = nlp.add_pipe("crf_tagger", config={"model": small_model(), **keys})
    tags = ["A", "B", "C"]
    for tag in tags:
        tagger.add_label(tag)
    nlp.initialize()
    doc = Doc(nlp.vocab, words=WORDS)
    rows = tagger.kbest(doc, 81)
    truth = {tuple(found): math.exp(log_prob) for log_prob, found in rows}
    assert set(truth) == set(itertools.product(tags, repeat=4))
    allow, forbid = {0: ["A", "B"], doc[2]: "C"}, [(0, 1, "A"), (1, 2, "B"), (1, 2, "C")]
    kept = {key: p for key, p in truth.items() if key[0] == "B" and key[1:3] == ("A", "C")}
    analyses = given_evidence(tagger, doc, allow=allow, forbid=forbid)
    ranked = analyses.kbest(9)
    assert [tuple(found) for _, found in ranked] == sorted(kept, key=lambda x: -kept[x])
    total = sum(kept.values())
    assert math.exp(ranked[0][0]) == pytest.approx(max(kept.values()) / total)
    assert math.exp(analyses.log_evidence) == pytest.approx(total)
    doc.spans["yes"] = [Span(doc, 2, 3, "C")]
    doc.spans["no"] = [Span(doc, 0, 1, "A"), Span(doc, 0, 2, "C"), Span(doc, 1, 2, "B")]
    assert [token.tag_ for token in tagger(doc)] == analyses.best
    other = Doc(nlp.vocab, words=WORDS)
    other.spans["yes"] = [Span(other, 1, 3, "C"), Span(other, 2, 4, "B")]
    with pytest.raises(InputError, match=r"'met Evans' \(C\) and 'Evans Bath' .* are both"):
        tagger(other)
    with pytest.raises(InputError, match="no tag is left for token 1 'met'"):
        given_evidence(tagger, doc, forbid=[(1, 2)])
    with pytest.raises(InputError, match="label 'D'"):
        given_evidence(tagger, doc, allow={1: "D"})


def test_a_name_assigned_to_decode_sets_the_way_to_choose_spans():
    ner = make_nlp(small_model()).get_pipe("ner")
    ner.decode = "mbr"
    assert (ner.decode, type(ner._decoder).__name__) == ("mbr", "ExpectedF1Decoder")
