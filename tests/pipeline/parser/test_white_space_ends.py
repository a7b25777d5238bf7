"""Constituents with white space at their ends, as treebanks with no-break spaces or users give."""

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_psa.pipeline.parser import extensions
from spacy_psa.pipeline.parser.heads import dependencies
from spacy_psa.pipeline.written import follow_tokens

WORDS = ["\n", "Ada", "\u00a0", "came", "\n", "\n", "Yes"]


def make_doc(*nodes, scores=None):
    """Two sentences, "Ada came" and "Yes"."""
    doc = Doc(spacy.blank("en").vocab, words=WORDS, sent_starts=[1, 0, 0, 0, 0, 1, 0])
    doc.spans["constituents"] = [Span(doc, *node) for node in nodes]
    if scores:
        doc.spans["constituents"].attrs["scores"] = scores
    return doc


ENDS = [(0, 5, "S"), (0, 3, "NP"), (2, 5, "VP"), (5, 7, "NP")]


@pytest.mark.parametrize("nodes", [ENDS, ENDS[::-1]])
def test_it_makes_no_difference(nodes):
    first, second = extensions.parse_trees(make_doc(*nodes))
    assert str(first) == "(S (NP (X Ada)) (VP (X came)))"
    assert str(second) == "(NP (X Yes))"
    doc = make_doc(*nodes)
    assert extensions.parse_string(doc[0:5]) == "(S (NP (X Ada)) (VP (X came)))"
    assert extensions.labels(make_doc(*nodes)[6:7]) == ("NP",)
    doc = make_doc(*nodes)
    assert extensions.labels(doc[1:2]) == extensions.labels(doc[0:3]) == ("NP",)
    doc = make_doc(*nodes)
    assert [head.i for head in dependencies(doc)] == [0, 3, 2, 3, 4, 5, 6]
    assert extensions.parent(make_doc(*nodes)[3:4]).text == "Ada \u00a0 came"


def test_a_constituent_of_white_space_alone_is_none_and_scores_stay_with_the_others():
    doc = make_doc(
        (1, 4, "S"), (1, 2, "NP"), (2, 3, "NP"), (3, 4, "VP"), scores=[0.9, 0.8, 0.7, 0.6]
    )
    assert extensions.parse_string(doc[1:4]) == "(S (NP (X Ada)) (VP (X came)))"
    found = [extensions.constituent_confidence(doc[i : i + 1]) for i in (1, 3)]
    assert found == [0.8, 0.6]
    assert extensions.labels(doc[2:3]) == ()


def test_of_two_that_become_one_span_the_longer_one_is_the_outer_one():
    doc = make_doc((1, 2, "NP"), (0, 3, "S"))
    assert extensions.labels(doc[1:2]) == ("S", "NP")


def test_spans_of_a_user_keep_their_white_space_when_a_doc_is_written():
    doc = make_doc((1, 4, "S"))
    doc.spans["notes"] = [Span(doc, 0, 2, "NOTE"), Span(doc, 4, 5, "NOTE")]
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[5:7])
    found = follow_tokens(doc, "notes")
    assert [(span.start, span.end) for span in found] == [(0, 2), (4, 5)]
