"""What the parser adds to spans, tokens and docs, read from gold trees."""

import itertools
import subprocess
import sys

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span, Token

from spacy_psa.pipeline.parser.extensions import (
    NonConstituentException,
    register_extensions,
    remove_extensions,
)
from tests.helpers.trees import BRACKETS, flat, parse_tree, tree_doc

TEXT = BRACKETS[1]


@pytest.fixture
def doc():
    register_extensions()
    return tree_doc(spacy.blank("en").vocab, TEXT, *BRACKETS)


def texts(spans):
    return [span.text for span in spans]


def test_labels_are_those_of_a_unary_chain_from_outside_in(doc):
    assert doc[0:5]._.labels == ("S",)
    assert doc[0:2]._.labels == ("S", "VP")
    assert doc[1:2]._.labels == ("NP",)
    assert doc[2:3]._.labels == () == doc[2]._.labels
    assert doc[1]._.labels == ("NP",)


def test_parse_string_of_a_sentence_is_the_tree_that_was_read(doc):
    found = [sentence._.parse_string for sentence in doc.sents]
    assert found == [TEXT, *BRACKETS] == [flat(tree) for tree in doc._.parse_trees]


def test_parse_string_of_a_part_is_its_subtree(doc):
    assert doc[0:2]._.parse_string == "(S (VP (VBG Reading) (NP (NNS books))))"
    assert doc[2]._.parse_string == "(VBZ helps)"
    assert doc[1]._.parse_string == "(NP (NNS books))"


def test_constituents_are_all_nodes_in_preorder_each_once(doc):
    assert texts(doc[0:5]._.constituents) == [
        "Reading books helps Ada .", "Reading books", "Reading", "books", "helps Ada", "helps",
        "Ada", ".",
    ]  # fmt: skip
    assert texts(doc[3]._.constituents) == ["Ada"]


def test_children_and_parent_are_each_others_inverse(doc):
    for sentence in doc.sents:
        assert sentence._.parent is None
        for node in sentence._.constituents:
            for child in node._.children:
                assert child._.parent == node
            found = list(node._.children)
            assert bool(found) == (len(node) > 1)
            assert not found or (found[0].start, found[-1].end) == (node.start, node.end)
            assert all(a.end == b.start for a, b in itertools.pairwise(found))
    assert doc[1]._.parent.text == "Reading books"
    assert texts(doc[0]._.children) == []


def test_sentence_that_is_no_constituent_is_the_parent_of_its_parts(doc):
    letter = next(s for s in doc.sents if s.text.startswith("The letter"))
    assert letter._.labels == ()
    assert letter._.parse_string == "(TOP (NP (DT The) (NN letter)) (. !))"
    assert texts(letter._.children) == ["The letter", "!"]
    assert letter[0:2]._.parent == letter == letter[2]._.parent


GETTERS = ["labels", "parse_string", "constituents", "children", "parent", "constituent_confidence",
           "head_token"]  # fmt: skip


def test_spans_and_tokens_have_the_same_attributes_until_they_are_removed():
    register_extensions()
    kinds = (Span, Token)
    assert all(kind.has_extension(name) for kind in kinds for name in GETTERS)
    remove_extensions()
    assert not any(kind.has_extension(name) for kind in kinds for name in GETTERS)
    register_extensions()


@pytest.mark.parametrize("name", GETTERS)
@pytest.mark.parametrize("sentence", [0, 1])
@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(1, 5, "NP")], r"'b \. C d' \(tokens 1 to 5\) crosses the (end|start) of the sentence"),
        ([(0, 3, "S"), (1, 5, "NP"), (3, 6, "S")], r"'b \. C d' \(tokens 1 to 5\) crosses the"),
    ],
)
def test_boundaries_that_cut_a_constituent_are_an_error_that_names_it(
    spans, message, sentence, name
):
    register_extensions()
    doc = Doc(spacy.blank("en").vocab, words=["A", "b", ".", "C", "d", "."])
    doc.spans["constituents"] = [Span(doc, *span) for span in spans]
    for token in doc:
        token.is_sent_start = token.i in (0, 3)
    with pytest.raises(ValueError, match=message):
        getattr(list(doc.sents)[sentence]._, name)
    with pytest.raises(ValueError, match=message):
        _ = doc._.parse_trees


def test_constituents_that_cross_are_an_error_that_names_them():
    register_extensions()
    doc = Doc(spacy.blank("en").vocab, words=["A", "b", "c"])
    doc.spans["constituents"] = [Span(doc, 0, 2, "X"), Span(doc, 1, 3, "Y")]
    message = r"'b c' \(tokens 1 to 3\) crosses the constituent 'A b'"
    with pytest.raises(ValueError, match=message):
        _ = doc[:]._.parse_string
    with pytest.raises(ValueError, match=message):
        _ = doc[1]._.parent


@pytest.mark.parametrize(("start", "end"), [(1, 3), (0, 3), (0, 6), (4, 7)])
def test_span_that_is_no_constituent_is_an_error_that_names_it(doc, start, end):
    span = doc[start:end]
    for name in ("labels", "parse_string", "constituents", "parent", "children"):
        with pytest.raises(NonConstituentException, match=f"tokens {start} to {end}"):
            getattr(span._, name)


def test_doc_without_trees_is_an_error_that_says_what_is_missing(doc):
    bare = Doc(doc.vocab, words=["a", "b"])
    for use in (lambda: bare[:]._.labels, lambda: bare[0]._.parent, lambda: bare._.parse_trees):
        with pytest.raises(ValueError, match="constituency_parser"):
            use()


def test_white_space_is_no_part_of_a_tree():
    register_extensions()
    words = ["\n", "Ada", " ", "met", "Evans", "\n\n"]
    doc = Doc(spacy.blank("en").vocab, words=words, tags=["_SP", "A", "_SP", "B", "C", "_SP"])
    doc.spans["constituents"] = [Span(doc, 1, 5, "S"), Span(doc, 3, 5, "VP")]
    assert doc[:]._.parse_string == "(S (A Ada) (VP (B met) (C Evans)))" == doc[1:5]._.parse_string
    assert doc[2:6]._.labels == ("VP",)
    assert texts(doc[:]._.constituents) == [doc[1:5].text, "Ada", doc[3:5].text, "met", "Evans"]
    for blank in (doc[0], doc[2:3]):
        assert (blank._.labels, blank._.parse_string, blank._.parent) == ((), "", None)
        assert list(blank._.children) == list(blank._.constituents) == []
    assert str(doc._.parse_trees[0]) == "(S (A Ada) (VP (B met) (C Evans)))"


def test_brackets_in_words_and_missing_tags_leave_readable_trees():
    register_extensions()
    words = [":-)", "[sic]", "a\u00a0b", "{"]
    doc = Doc(spacy.blank("en").vocab, words=words, tags=["$(", "", "NN", "-LRB-"])
    doc.spans["constituents"] = [Span(doc, 0, 4, "NP")]
    (tree,) = doc._.parse_trees
    assert doc[:]._.parse_string == " ".join(str(tree).split())
    parsed = parse_tree(doc[:]._.parse_string)
    assert parsed.tags == ["$-LRB-", "X", "NN", "-LRB-"]
    assert parsed.words[3] == "{" and parsed.words[0] == ":--RRB-"


def test_confidence_is_read_by_label_and_absent_without_scores(doc):
    group = doc.spans["constituents"]
    assert doc[0:5]._.constituent_confidence is None
    group.attrs["scores"] = [0.5 + i / 100 for i in range(len(group))]
    assert doc[0:5]._.constituent_confidence == 0.5
    assert doc[0:2]._.constituent_confidence == 0.51
    assert Span(doc, 0, 2, "VP")._.constituent_confidence == 0.52
    assert doc[2]._.constituent_confidence is None


def test_trees_are_read_from_a_docbin_without_a_parser(doc, tmp_path):
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    code = (
        "import sys, spacy; from spacy.tokens import DocBin\n"
        "from spacy_psa.pipeline.parser.extensions import register_extensions\n"
        "register_extensions()\n"
        "(doc,) = DocBin().from_disk(sys.argv[1]).get_docs(spacy.blank('en').vocab)\n"
        "print(next(doc.sents)._.parse_string)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a.spacy")]
    assert subprocess.run(command, capture_output=True, text=True).stdout.strip() == TEXT


def test_attribute_of_another_package_stays_with_a_warning(doc):
    held = Span.get_extension("children")[2]
    Span.set_extension("children", getter=len, force=True)
    try:
        with pytest.warns(UserWarning, match=r"Span\._\.children is another package's"):
            register_extensions()
        assert doc[0:2]._.children == 2
    finally:
        Span.set_extension("children", getter=held, force=True)


def test_noun_chunks_are_the_lowest_noun_phrases_with_their_possessives():
    tree = (
        "(S (NP-SBJ (NP (NP (NNP Ada) (POS 's)) (NN dog)) (PP (IN of) (NP (NN hers)))) "
        "(VP (VBD saw) (NP (NP (NNP Bob)))))"
    )
    register_extensions()
    doc = tree_doc(spacy.blank("en").vocab, tree)
    assert texts(doc._.noun_chunks) == ["Ada 's dog", "hers", "Bob"]
