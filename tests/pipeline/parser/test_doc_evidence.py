"""Constituents and tags on a doc before it is parsed."""

import pytest
from spacy.tokens import Doc, Span

from spacy_psa.errors import InputError
from tests.helpers.parsers import chart_model, random_parser
from tests.helpers.trees import constituents

WORDS = ["Ada", "met", "Evans", "in", "Bath", "."]


@pytest.fixture(scope="module")
def nlp():
    """A parser whose trees have nothing to do with the sentences."""
    return random_parser(loss="log_likelihood", confidence=True)


@pytest.fixture
def parser(nlp):
    parser = nlp.get_pipe("parser")
    parser.overwrite = False
    return parser


def given(nlp, *spans, words=WORDS):
    doc = Doc(nlp.vocab, words=words)
    doc.spans["constituents"] = [Span(doc, *span) for span in spans]
    return doc


SOME = [(0, 4, "NP"), (1, 3, "S"), (1, 3, "VP"), (5, 6, "PP")]


@pytest.mark.parametrize("spans", [SOME[:1], SOME[1:2], SOME[1:3], SOME, [(0, 6, "PP")]])
def test_constituents_on_the_doc_are_in_the_best_tree(nlp, parser, spans):
    free = constituents(parser(Doc(nlp.vocab, words=WORDS)))
    assert not set(spans) <= set(free)
    doc = parser(given(nlp, *spans))
    assert set(spans) <= set(constituents(doc))
    assert len(doc._.parse_trees) == 1
    scores = dict(zip(constituents(doc), doc.spans["constituents"].attrs["scores"]))
    assert [scores[span] for span in spans] == pytest.approx([1.0] * len(spans))


def test_a_span_without_a_label_is_some_constituent(nlp, parser):
    bare = [(0, 2), (2, 5), (1, 2)]
    free = {span[:2] for span in constituents(parser(Doc(nlp.vocab, words=WORDS)))}
    assert not set(bare) <= free
    doc = parser(given(nlp, *bare))
    assert all(doc[start:end]._.labels for start, end in bare)
    assert all(span.label_ for span in doc.spans["constituents"])


def test_labels_that_the_parser_does_not_know_stay(nlp, parser):
    spans = [(0, 2, "NEW"), (2, 5, "S"), (2, 5, "NEW"), (0, 6, "ROOTLIKE")]
    doc = parser(given(nlp, *spans))
    assert set(spans) <= set(constituents(doc))
    assert doc[2:5]._.labels == ("S", "NEW")  # nothing is predicted beside them
    assert doc[:]._.labels == ("ROOTLIKE",)


def test_own_predictions_are_no_evidence_and_others_are(nlp, parser):
    doc = parser(Doc(nlp.vocab, words=WORDS))
    free = constituents(doc)
    doc.spans["constituents"].append(Span(doc, 0, 4, "NP"))
    again = constituents(parser(doc))
    assert (0, 4, "NP") in again
    assert constituents(parser(doc)) == again  # also the second time
    assert constituents(parser(Doc(nlp.vocab, words=WORDS))) == free
    back = Doc(nlp.vocab).from_bytes(parser(Doc(nlp.vocab, words=WORDS)).to_bytes())
    back.spans["constituents"] = [*back.spans["constituents"], Span(back, 0, 4, "NP")]
    assert constituents(parser(back)) == again


def test_overwrite_replaces_what_is_on_the_doc(nlp, parser):
    free = constituents(parser(Doc(nlp.vocab, words=WORDS)))
    parser.overwrite = True
    assert constituents(parser(given(nlp, *SOME))) == free


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(0, 3, "NP"), (2, 5, "VP")], "'Evans in Bath' crosses the constituent 'NP'"),
        ([(0, 3, "N P")], "has a label that is empty, or holds a blank or a bracket"),
        ([(0, 3, "NP(x")], r"'NP\(x' over .* holds a blank or a bracket"),
        ([(0, 3, "N\tP")], "has a label that is empty, or holds a blank or a bracket"),
        ([(2, 5, "VP")], "crosses the end of its sentence"),
    ],
)
def test_evidence_that_is_no_tree_is_one_error_that_names_it(nlp, parser, spans, message):
    doc = given(nlp, *spans)
    for token in doc:
        token.is_sent_start = token.i in ((0, 3) if "sentence" in message else (0,))
    with pytest.raises(InputError, match=message):
        parser(doc)


def test_too_long_sentence_keeps_its_constituents(nlp, parser):
    parser.max_length, before = 3, parser.max_length
    try:
        with pytest.warns(UserWarning, match="max_length"):
            doc = parser(given(nlp, (0, 2, "NP")))
    finally:
        parser.max_length = before
    assert constituents(doc) == [(0, 6, parser.labels[0]), (0, 2, "NP")]


def test_given_tags_stay_unless_they_are_overwritten():
    nlp = random_parser(chart_model(tag_hidden=8), overwrite_tags=False)
    parser = nlp.get_pipe("parser")
    doc = Doc(nlp.vocab, words=WORDS)
    predicted = [token.tag_ for token in parser(doc)]
    assert all(predicted)
    some = Doc(nlp.vocab, words=WORDS, tags=["", "GIVEN", "", "", "", ""])
    assert [t.tag_ for t in parser(some)] == [predicted[0], "GIVEN", *predicted[2:]]
    doc[2].tag_ = "CORRECTED"
    assert [t.tag_ for t in parser(doc)] == [*predicted[:2], "CORRECTED", *predicted[3:]]
    parser.overwrite_tags = True
    assert [t.tag_ for t in parser(doc)] == predicted
