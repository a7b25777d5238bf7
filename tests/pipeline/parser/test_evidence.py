"""Trees under evidence: compared with the enumeration of all trees."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span
from spacy.util import fix_random_seed

from spacy_psa.errors import InputError
from spacy_psa.pipeline.parser.chart import Constraints, constrain
from spacy_psa.pipeline.parser.constituents import KEY
from spacy_psa.structs.tree import SpanTree
from tests.helpers.parsers import chart_model, make_listening_parser, make_parser, train_parser
from tests.helpers.pipelines import parameters, randomize
from tests.helpers.trees import flat, parse_tree

WORDS = ["the", " ", "old", "man"]  # the second is white space
BOUNDS = [(0, 4), (0, 1), (0, 3), (2, 4), (2, 3), (3, 4), (0, 2)]
NODES = [(s, e, x) for s, e in BOUNDS for x in ("", "S", "NP")]


def constituents(tree):
    """The constituents of an nltk tree, with (start, end, label) over words."""
    return set(parse_tree(flat(tree)).constituents)


@pytest.fixture(scope="module")
def parsed():
    nlp = make_parser(required_spans_key="yes", forbidden_spans_key="no")
    parser = nlp.get_pipe("parser")
    for label in ("S", "NP", "S NP"):
        parser.add_label(label)
    fix_random_seed(0)
    nlp.initialize()
    randomize(parser)
    for parameter in parameters(parser):
        parameter.data.mul_(0.2)  # so that no tree is certain
    doc = Doc(nlp.vocab, words=WORDS)
    truth = [(math.exp(p), tree, constituents(tree)) for p, (tree,) in parser.kbest(doc, 2000)]
    assert sum(p for p, _, _ in truth) == pytest.approx(1.0, abs=1e-5)
    return parser, doc, truth


def given_evidence(parser, doc, **evidence):
    (analyses,) = parser.analyses([doc])
    return analyses.given(**evidence)


def over_words(span):
    at = {0: 0, 1: 1, 2: 1, 3: 2, 4: 3}
    return at[span[0]], at[span[1]], span[2]


def dict_of(kept):
    return {tree: p for p, tree in kept}


def has(nodes, span):
    start, end, label = over_words(span)
    return any((s, e) == (start, end) and label in ("", x) for s, e, x in nodes)


@settings(max_examples=40)
@given(
    require=st.lists(st.sampled_from(NODES), max_size=2),
    forbid=st.lists(st.sampled_from(NODES), max_size=4),
)
def test_trees_under_evidence_are_those_of_enumeration(parsed, require, forbid):
    parser, doc, truth = parsed
    kept = [
        (p, str(tree))
        for p, tree, nodes in truth
        if all(has(nodes, span) for span in require)
        and not any(has(nodes, span) for span in forbid)
    ]
    if not kept:
        with pytest.raises(InputError, match=r"parser: .*agree"):
            given_evidence(parser, doc, require=require, forbid=forbid)
        return
    total = sum(p for p, _ in kept)
    analyses = given_evidence(parser, doc, require=require, forbid=forbid)
    assert analyses.log_evidence == pytest.approx(math.log(total), abs=1e-3)
    ranked = analyses.kbest(4)
    assert len(ranked) == len(kept[:4])
    posterior = {}
    for p, _, nodes in truth:
        agree = all(has(nodes, one) for one in require) and not any(has(nodes, o) for o in forbid)
        for node in nodes if agree else ():
            posterior[node] = posterior.get(node, 0.0) + p / total
    (sentence,) = analyses.sentences
    at = {0: 0, 2: 1, 3: 2}, {1: 1, 3: 2, 4: 3}
    for start, end, label, confidence in (
        node for _, nodes in sentence.scored(4) for node in nodes
    ):
        expected = posterior[at[0][start], at[1][end], label]
        assert confidence == pytest.approx(expected, abs=1e-3)
        assert analyses.posterior([(start, end, label)]) == pytest.approx([expected], abs=1e-3)
    for (log_prob, (tree,)), (p, _) in zip(ranked, kept):  # equally good ones have no order
        assert math.exp(log_prob) == pytest.approx(p / total, rel=1e-3)
        assert math.exp(log_prob) == pytest.approx(dict_of(kept)[str(tree)] / total, rel=1e-3)


def test_span_groups_are_evidence_when_a_parser_predicts(parsed):
    parser, _, _ = parsed
    doc = Doc(parser.vocab, words=[*WORDS, *WORDS], sent_starts=[1, 0, 0, 0] * 2)
    free = [(span.start, span.end, span.label_) for span in parser(doc).spans[KEY]]
    label = free[0][2]
    doc.spans["yes"] = [Span(doc, 0, 3, "NP"), Span(doc, 4, 7)]
    doc.spans["no"] = [Span(doc, 0, 4, label)]
    parser(doc)
    got = {(span.start, span.end, span.label_) for span in doc.spans[KEY]}
    assert (0, 3, "NP") in got
    assert (0, 4, label) not in got
    assert any((start, end) == (4, 7) for start, end, _ in got)
    doc.spans["yes"], doc.spans["no"] = [], [doc[i : i + 1] for i in range(8)]
    assert all(len(span) > 1 for span in parser(doc).spans[KEY])
    doc.spans["no"] = []  # what groups have required was predicted, and is not evidence
    assert [(span.start, span.end, span.label_) for span in parser(doc).spans[KEY]] == free


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        (
            {"require": [(0, 3, "NP"), (2, 4, "S")]},
            r"\(NP\) and 'old man' \(S\) cross and are both required",
        ),
        ({"require": [(2, 4, "NP")], "forbid": [(2, 4)]}, r"\(NP\) is required and forbidden"),
        ({"require": [(1, 2, "NP")]}, "has no word"),
        ({"require": [(2, 4, "NP")], "forbid": [(2, 4, "NP")]}, "is required and forbidden"),
        ({"require": [(2, 4, "ART")]}, "label 'ART'"),
        ({"require": [(2, 4, "S NP")]}, "label 'S NP', which is not among"),
        ({"require": "NP"}, "'N' is not a span"),
        ({"allow": {0: "NP"}}, "allow is for labels of tokens"),
        *[({"forbid": [s]}, "not a span of a doc of 4 tokens") for s in [(1, 1), (0, 9), (-1, 2)]],
    ],
)
def test_a_contradiction_is_named(parsed, evidence, why):
    parser, doc, _ = parsed
    with pytest.raises(InputError, match=why):
        given_evidence(parser, doc, **evidence)
    with pytest.raises(InputError, match="'the' is a span of another doc"):
        given_evidence(parser, doc, require=[Doc(parser.vocab, words=WORDS)[0:1]])


@pytest.mark.parametrize("bounds", [(2, 4), (0, 4)])
def test_a_label_that_the_chart_lacks_stands_for_all_that_the_chart_has_there(parsed, bounds):
    parser, plain, truth = parsed
    doc = Doc(parser.vocab, words=WORDS)
    doc.spans[KEY] = [Span(doc, *bounds, "QP")]
    start, end, _ = node = over_words((*bounds, "QP"))
    sums = {}
    for p, _, nodes in truth:
        if not any(a < start < b < end or start < a < end < b for a, b, _ in nodes):
            key = frozenset({n for n in nodes if n[:2] != (start, end)} | {node})
            sums[key] = sums.get(key, 0.0) + p
    found = {
        frozenset(constituents(tree)): math.exp(log_prob)
        for log_prob, (tree,) in parser.kbest(doc, 2000)
    }
    expected = {key: p / sum(sums.values()) for key, p in sums.items()}
    assert found == pytest.approx(expected, rel=1e-3)
    assert not plain.spans


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        ({"require": [(2, 4, "NP")]}, "'old man' is the constituent 'QP' .* NP is required"),
        ({"forbid": [(2, 4)]}, r"'old man' \(QP\) is required and forbidden"),
    ],
)
def test_a_label_that_the_chart_lacks_is_not_overruled(parsed, evidence, why):
    parser, _, _ = parsed
    doc = Doc(parser.vocab, words=WORDS)
    doc.spans[KEY] = [Span(doc, 2, 4, "QP")]
    with pytest.raises(InputError, match=why):
        given_evidence(parser, doc, **evidence)
    (tree,) = given_evidence(parser, doc, require=[(2, 4)], forbid=[(2, 4, "NP")]).best
    assert (1, 3, "QP") in constituents(tree)
    doc.spans["no"] = [Span(doc, 2, 4)]
    with pytest.raises(InputError, match="is required and forbidden"):
        parser(doc)


def test_a_doc_that_the_upstream_has_not_seen_is_an_error():
    nlp = make_listening_parser(chart_model())
    train_parser(nlp)
    parser, unseen = nlp.get_pipe("parser"), nlp.make_doc("Ann left")
    for ask in (
        lambda: parser.kbest(unseen, 1),
        lambda: parser.analyses([unseen]),
        lambda: parser.distribution([unseen]),
        lambda: parser(unseen),
    ):
        with pytest.raises(InputError, match=r"parser: it listens to .*, which has not seen"):
            ask()
    tree = nlp("Ann left")._.parse_trees[0]
    nlp.replace_listeners("tok2vec", "parser", ["model.tok2vec"])
    assert parser.parse(["Ann", "left"]) == tree


def test_evidence_on_a_sentence_that_is_too_long_is_named():
    nlp = make_parser(max_length=3)
    train_parser(nlp)
    doc = Doc(nlp.vocab, words=["a", "b", "c", "d"])
    with (
        pytest.warns(UserWarning, match="max_length"),
        pytest.raises(InputError, match="max_length = 3 tokens and is not parsed"),
    ):
        given_evidence(nlp.get_pipe("parser"), doc, require=[(0, 2, "NP")])


def test_forbidden_words_are_no_constituent_of_any_label():
    """Also not with the label of sentences that are no constituent, which is one inside of them."""
    trees = SpanTree(torch.zeros(1, 4, 4, 3), torch.tensor([3]))
    given = constrain(trees, [Constraints([], [(0, 2, "")])], ["TOP", "NP"])
    for _, tree in given.kbest(100)[0]:
        assert (0, 2) not in {node[:2] for node in tree}
    assert len(given.kbest(100)[0]) > 10


def test_evidence_in_groups_follows_merged_tokens_and_keeps_its_ids(parsed):
    parser, *_ = parsed
    doc = Doc(parser.vocab, words=["the", "old", "man", "left"])
    doc.spans["yes"] = [Span(doc, 2, 4, "NP")]
    doc.spans[KEY] = [Span(doc, 0, 4, "S", kb_id="Q1", span_id="s1")]
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[:2])
    parser(doc)
    found = {(s.start, s.end, s.label_): (s.kb_id_, s.id_) for s in doc.spans[KEY]}
    assert (1, 3, "NP") in found and found[0, 3, "S"] == ("Q1", "s1")


@pytest.mark.parametrize("span", [(0, 1, 3), (0.5, 1, "S")])
def test_what_is_no_span_is_an_error(parsed, span):
    parser, doc, _ = parsed
    with pytest.raises(InputError, match="is not a span"):
        given_evidence(parser, doc, require=[span])


def test_a_label_may_be_none(parsed):
    parser, doc, _ = parsed
    without, none = (given_evidence(parser, doc, require=[s]) for s in ((2, 4), (2, 4, None)))
    assert without.log_evidence == none.log_evidence < 0
