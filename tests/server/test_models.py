"""The page shows what the pipeline computes, with all that a parser reads on a doc."""

import pytest
from spacy.language import Language
from spacy.tokens import Span

from spacy_psa.server.models import ServedModel
from tests.helpers.parsers import (
    chart_model,
    make_listening_parser,
    make_parser,
    random_parser,
    train_parser,
    tree_examples,
)
from tests.helpers.pipelines import randomize

EXACT = {"loss": "log_likelihood"}
TEXT = "the dog saw a cat . a cat ran in the park ."


@Language.component("test_boundaries")
def set_boundaries(doc):
    for token in doc:
        token.is_sent_start = token.i in (0, 6)
    return doc


@Language.component("test_tags")
def set_tags(doc):
    for token in doc:
        token.tag_ = ("NN", "DT", "VBD")[len(token) % 3]
    return doc


@Language.component("test_constituents")
def set_constituents(doc):
    doc.spans["constituents"] = [Span(doc, 1, 4, "NP")]
    return doc


@Language.component("test_required")
def set_required(doc):
    doc.spans["yes"] = [Span(doc, 7, 9, "VP")]
    return doc


def nodes(tree):
    """The constituents of a nested tree, and its first and last token."""
    label, probability, children = tree
    found, ends = [], []
    for child in children:
        if isinstance(child, int):
            ends += [child, child + 1]
        else:
            below, first, last = nodes(child)
            found += below
            ends += [first, last]
    start, end = ends[0], ends[-1]
    return [(start, end, label, probability), *found], start, end


def on_the_page(nlp):
    answer = ServedModel("m", nlp).analyse(TEXT, [], None, k=2)
    assert answer["count"] == 2
    trees = [one["components"]["parser"]["trees"][0]["tree"] for one in answer["sentences"]]
    return sorted(node for tree in trees for node in nodes(tree)[0])


def in_the_pipeline(nlp):
    doc = nlp(TEXT)
    group = doc.spans["constituents"]
    scores = group.attrs["scores"].tolist()
    return sorted((s.start, s.end, s.label_, p) for s, p in zip(group, scores, strict=True))


def assert_same(nlp):
    nlp.add_pipe("test_boundaries", first=True)
    shown = on_the_page(nlp)
    computed = in_the_pipeline(nlp)
    assert [node[:3] for node in shown] == [node[:3] for node in computed]
    assert [node[3] for node in shown] == pytest.approx([node[3] for node in computed], abs=1e-4)
    return computed


def test_a_parser_reads_the_tags_of_the_components_before_it():
    embed = {"@architectures": "spacy-psa.TagEmbed.v1", "width": 16}
    nlp = make_parser(chart_model(embed=embed), **EXACT)
    nlp.add_pipe("test_tags", first=True)
    examples = tree_examples(nlp)
    for eg in examples:
        set_tags(eg.predicted)
    train_parser(nlp, 1, examples=examples)  # a step in which the tags get rows
    randomize(nlp.get_pipe("parser"))
    with_tags = assert_same(nlp)
    with nlp.select_pipes(disable="test_tags"):
        assert in_the_pipeline(nlp) != with_tags


def test_a_parser_may_listen_to_another_component():
    nlp = make_listening_parser(chart_model(), **EXACT)
    train_parser(nlp)
    randomize(nlp.get_pipe("parser"))
    assert_same(nlp)


@pytest.mark.parametrize("settings", [{}, {"required_spans_key": "yes"}])
def test_constituents_on_a_doc_are_evidence(settings):
    nlp = random_parser(**settings, **EXACT)
    nlp.add_pipe("test_constituents", first=True)
    nlp.add_pipe("test_required", first=True)
    found = {node[:3] for node in assert_same(nlp)}
    assert (1, 4, "NP") in found
    assert not settings or (7, 9, "VP") in found


def test_a_parser_reads_what_an_earlier_parser_has_written():
    nlp = random_parser(required_spans_key="first", **EXACT)
    other = make_parser(**EXACT)
    train_parser(other, 20)
    nlp.add_pipe("parser", name="first", source=other, first=True)
    nlp.get_pipe("first").spans_key = "first"
    computed = {node[:3] for node in assert_same(nlp)}
    doc = nlp(TEXT)
    assert {(span.start, span.end, span.label_) for span in doc.spans["first"]} <= computed


def test_sentences_that_are_set_after_a_parser_are_those_of_the_page():
    nlp = random_parser(**EXACT)
    nlp.add_pipe("test_boundaries")
    answer = ServedModel("m", nlp).analyse(TEXT, [], None, k=1)
    ends = []
    for sentence in answer["sentences"]:
        (tree,) = sentence["components"]["parser"]["trees"]
        ends.append(nodes(tree["tree"])[1:])
    assert ends == [(0, 6), (6, 13)]
