from collections import Counter

import pytest
from hypothesis import given, settings

from spacy_psa.corpora.bracketing import read_trees
from spacy_psa.corpora.trees import build_tree
from tests.helpers.trees import bracketings, flat, parse_tree


@settings(max_examples=60)
@given(bracketings())
def test_a_tree_survives_the_way_through_spans(text):
    assert flat(build_tree(*parse_tree(text))) == text


def test_constituents_are_in_preorder_with_unary_chains_from_outside_in():
    text = "(TOP (S (NP (NP (PRP We))) (VP (VBD saw) (NP (DT a) (NN dog))) (. .)))"
    parsed = parse_tree(text)
    assert parsed.words == ["We", "saw", "a", "dog", "."]
    assert parsed.tags == ["PRP", "VBD", "DT", "NN", "."]
    assert parsed.constituents == [
        (0, 5, "S"), (0, 1, "NP"), (0, 1, "NP"), (1, 4, "VP"), (2, 4, "NP"),
    ]  # fmt: skip


def test_a_root_without_label_is_no_constituent():
    assert parse_tree("( (S (NN dog)))").constituents == [(0, 1, "S")]


def test_a_bare_word_under_the_root_has_no_constituents():
    parsed = parse_tree("(TOP (UH Yes))")
    assert parsed.constituents == []
    assert flat(build_tree(*parsed)) == "(TOP (UH Yes))"


def test_several_trees_side_by_side_stand_under_top():
    tree = build_tree(["a", "b"], ["X", "Y"], [(0, 1, "NP"), (1, 2, "VP")])
    assert flat(tree) == "(TOP (NP (X a)) (VP (Y b)))"


def test_brackets_are_words_outside_and_escaped_inside_trees():
    parsed = parse_tree("(PRN (-LRB- -LRB-) (NN x) (-RRB- -RRB-))")
    assert parsed.words == ["(", "x", ")"]
    assert "(-LRB- -LRB-)" in flat(build_tree(*parsed))


@pytest.mark.parametrize("text", ["(S (NP a)", "(S dog (NN cat))", "(S )", "", "(S (NP ))"])
def test_broken_trees_are_refused(text):
    with pytest.raises(ValueError):
        parse_tree(text)


@pytest.mark.parametrize(
    "constituents",
    [
        [(0, 2, "A"), (1, 3, "B")],
        [(1, 2, "A"), (0, 3, "B")],
        [(1, 1, "A")],
        [(0, 4, "A")],
        [(0, 1, "A"), (0, 2, "B")],
    ],
)
def test_constituents_that_form_no_tree_are_refused(constituents):
    with pytest.raises(ValueError, match="crosses another or is out of order"):
        build_tree(["a", "b", "c"], ["X"] * 3, constituents)


def test_brackets_inside_tags_survive():
    tree = build_tree(["(", "x"], ["$(", "-LRB-"], [(0, 2, "S")])
    ((_, found),) = read_trees("a", [(1, str(tree).replace("\n", " "))], Counter())
    assert (found.words, found.tags) == (["(", "x"], ["$(", "-LRB-"])


def test_only_parentheses_are_escaped_inside_words():
    words = ["ra}iys", "[1]", "{", "f(x)"]
    leaves = build_tree(words, ["X"] * 4, [(0, 4, "S")]).leaves()
    assert leaves == ["ra}iys", "[1]", "-LCB-", "f-LRB-x-RRB-"]
