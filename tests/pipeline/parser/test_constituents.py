"""From constituents on docs to trees of the chart and back."""

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

from spacy_psa.errors import InputError
from spacy_psa.pipeline.parser.constituents import (
    bracketed,
    gold_trees,
    token_nodes,
    word_sentences,
)
from tests.helpers.trees import bracketings, flat, parse_tree

VOCAB = spacy.blank("en").vocab


def trees(doc):
    return gold_trees(doc, doc)


def marked(words, spans, **attributes):
    doc = Doc(VOCAB, words=words, **attributes)
    doc.spans["constituents"] = [Span(doc, *span) for span in spans]
    return doc


@settings(max_examples=60)
@given(st.lists(bracketings(), min_size=1, max_size=3), st.data())
def test_trees_survive_the_way_to_the_chart_and_back(texts, data):
    """With white space put between the words at random, and several sentences a doc."""
    words, tags, starts, spans = [], [], [], []
    for text in texts:
        parsed = parse_tree(text)
        place = []
        for i, word in enumerate(parsed.words):
            starts.append(i == 0)
            place.append(len(words))
            words.append(word)
            tags.append(parsed.tags[i])
            if data.draw(st.integers(0, 3)) == 0:
                words.append(data.draw(st.sampled_from([" ", "\n\n", "\t"])))
                tags.append("_SP")
                starts.append(False)
        spans += [(place[s], place[e - 1] + 1, label) for s, e, label in parsed.constituents]
    doc = marked(words, spans, tags=tags, sent_starts=starts)
    charts, sentences = trees(doc), word_sentences(doc)
    assert len(charts) == len(sentences) == len(texts)
    back = []
    for text, chart, (_, _, places) in zip(texts, charts, sentences, strict=True):
        assert chart[0][:2] == (0, len(places))
        assert len({node[:2] for node in chart}) == len(chart)
        nodes = [node for chain in token_nodes(chart, places) for node in chain]
        back += nodes
        assert flat(bracketed(doc, places, nodes)) == text
    assert back == spans


def test_unary_chains_are_one_label():
    doc = marked(["go", "now"], [(0, 2, "S"), (0, 2, "VP"), (0, 1, "NP"), (0, 1, "NP")])
    assert trees(doc) == [[(0, 2, "S VP"), (0, 1, "NP NP")]]


def test_sentence_that_is_no_constituent_has_top():
    assert trees(marked(["a", "b", "!"], [(0, 2, "NP")])) == [[(0, 3, "TOP"), (0, 2, "NP")]]
    assert trees(marked(["Yes"], [])) == [[(0, 1, "TOP")]]


@pytest.mark.parametrize("root", ["TOP", "ROOT", "S1"])
def test_root_of_a_treebank_is_no_part_of_a_chain(root):
    assert trees(marked(["go", "!"], [(0, 2, root), (0, 2, "S")])) == [[(0, 2, "S")]]
    assert trees(marked(["go", "!"], [(0, 2, root), (0, 1, "S")])) == [[(0, 2, "TOP"), (0, 1, "S")]]


def test_groups_need_not_be_in_order():
    spans = [(1, 3, "VP"), (2, 3, "NP"), (0, 3, "S"), (0, 1, "NP"), (0, 3, "X")]
    expected = [[(0, 3, "S X"), (0, 1, "NP"), (1, 3, "VP"), (2, 3, "NP")]]
    assert trees(marked(["a", "b", "c"], spans)) == expected


def test_white_space_at_the_ends_of_a_constituent_is_no_part_of_it():
    doc = marked([" ", "a", "\n", "b", "  "], [(0, 5, "S"), (1, 3, "NP"), (2, 3, "X")])
    assert trees(doc) == [[(0, 2, "S"), (0, 1, "NP")]]
    (sentence,) = word_sentences(doc)
    assert sentence.words.tolist() == [1, 3]
    assert token_nodes([(0, 2, "S VP")], sentence.words) == [[(1, 4, "S"), (1, 4, "VP")]]


@pytest.mark.parametrize("words", [[], [" "], ["\n", " "]])
def test_sentence_without_words_has_no_tree(words):
    assert trees(marked(words, [(0, len(words), "S")] if words else [])) == [None]


def test_doc_without_the_group_has_no_trees():
    assert trees(Doc(VOCAB, words=["a", "b"])) == [None]


@pytest.mark.parametrize(
    ("spans", "reason"),
    [
        ([(0, 2, "NP"), (1, 3, "VP")], "'VP' over 'b c' crosses the constituent 'NP'"),
        ([(2, 5, "NP")], "'NP' over 'c d e' crosses the end of its sentence"),
        ([(0, 4, "S VP")], "'S VP'.*holds a blank or a bracket"),
        ([(0, 4, "NP(x")], r"'NP\(x'.*holds a blank or a bracket"),
        ([(0, 4, "NP\tx")], r"'NP\\tx'.*holds a blank or a bracket"),
        ([(0, 4, "")], "''.*is empty"),
    ],
)
def test_what_is_no_tree_is_an_error_that_names_doc_and_words(spans, reason):
    words = ["a", "b", "c", "d", "e", "f"]
    doc = marked(words, spans, sent_starts=[True, False, False, False, True, False])
    doc.user_data["document"] = "wsj_0001"
    with pytest.raises(InputError, match=rf"^wsj_0001: 'a b c d e f': the constituent {reason}"):
        trees(doc)


# Other tokens, other sentences


def test_trees_are_found_over_other_tokens():
    reference = marked(
        ["New", "York", "is", "n't", "far"], [(0, 5, "S"), (0, 2, "NP"), (2, 5, "VP")]
    )
    predicted = Doc(VOCAB, words=["NewYork", " ", "isn't", "f", "ar"])
    assert gold_trees(reference, predicted) == [[(0, 4, "S"), (0, 1, "NP"), (1, 4, "VP")]]


def test_constituent_that_ends_inside_a_token_is_left_out():
    reference = marked(["a", "b", "c"], [(0, 3, "S"), (0, 2, "NP"), (2, 3, "VP")])
    assert gold_trees(reference, Doc(VOCAB, words=["a", "bc"])) == [[(0, 2, "S")]]


def test_only_sentences_of_the_same_words_have_trees():
    reference = marked(
        ["a", "b", "c", "d"], [(0, 2, "S"), (2, 4, "NP")], sent_starts=[True, False, True, False]
    )
    whole = Doc(VOCAB, words=["a", "b", "c", "d"])
    assert gold_trees(reference, whole) == [None]
    same = Doc(VOCAB, words=["ab", "c", "d"], sent_starts=[True, True, False])
    assert gold_trees(reference, same) == [[(0, 1, "S")], [(0, 2, "NP")]]
    other = Doc(VOCAB, words=["a", "b", "c", "d"], sent_starts=[True, False, True, True])
    assert gold_trees(reference, other) == [[(0, 2, "S")], None, None]
