"""Head rules, on trees made by hand and on random ones."""

import pytest
from hypothesis import given

from benchmarks.spans.corpus import count_heads
from spacy_psa.corpora.head_rules import TABLE_A1, collins, find_head, find_heads, universal
from tests.helpers.trees import bracketings, parse_tree


def arrows(text, choose=collins):
    """ "dependent<-head" for each word; the head of the sentence hangs at itself."""
    tree = parse_tree(text)
    heads = find_heads(tree, choose)
    return [f"{word}<-{tree.words[head]}" for word, head in zip(tree.words, heads.words)]


def test_a_sentence_by_collins():
    assert arrows(
        "(TOP (S (NP (DT The) (NN cat)) (VP (MD will) (VP (VB see) (NP (NP (DT a) (NN mouse)) "
        "(PP (IN in) (NP (NNP Rome)))))) (. .)))"
    ) == [
        "The<-cat", "cat<-will", "will<-will", "see<-will", "a<-mouse", "mouse<-see", "in<-mouse",
        "Rome<-in", ".<-will",
    ]  # fmt: skip


def test_a_sentence_by_universal_rules_hangs_at_words_with_content():
    assert arrows(
        "(S (NP (DT The) (NN cat)) (VP (MD will) (VP (VB see) (NP (DT a) (NN mouse)) (PP (IN in) "
        "(NP (NNP Rome))))) (. .))",
        universal,
    ) == [
        "The<-cat", "cat<-see", "will<-see", "see<-see", "a<-mouse", "mouse<-see", "in<-Rome",
        "Rome<-see", ".<-see",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("parent", "children", "head"),
    [
        ("NP", "NNP POS", 1),
        ("NP", "DT JJ NN NN PP", 3),
        ("NP", "NP PP SBAR", 0),
        ("NP", "$ CD", 0),
        ("NP", "CD JJ", 0),
        ("NP", "DT JJ", 1),
        ("NP", "DT", 0),
        ("NP", "NP , NP CC NP", 0),
        ("NP", "NN CC NN", 0),
        ("NP-SBJ", "DT NN-X", 1),
        ("NML", "NN NN", 1),
        ("VP", "VBD NP", 0),
        ("VP", "ADVP VBD NP", 1),
        ("VP", "TO VP", 0),
        ("VP", "VBD CC VBD", 0),
        ("VP", "X Y", 0),
        ("S", "`` S '' VP .", 3),
        ("S", "S CC S", 0),
        ("SBAR", "IN S", 0),
        ("PP", "ADVP IN NP", 1),
        ("ADVP", "RB RB", 1),
        ("PRN", "-LRB- NP -RRB-", 1),
        ("INTJ", ", UH", 1),
        ("FRAG", "NP PP .", 1),
        ("NP", ", .", 1),
        ("QP", "$ CD CD", 0),
        ("WHNP", "WP NN", 0),
    ],
)
def test_the_table_of_collins(parent, children, head):
    assert collins(parent, children.split()) == head


@pytest.mark.parametrize(
    ("parent", "children", "head"),
    [
        ("NP", "ART ADJA NN $,", 2),
        ("S", "NP VVFIN NP $.", 1),
        ("CS", "S KON S", 0),
        ("CNP", "NP KON NP", 0),
        ("NP", "NN KON NN", 0),
        ("NP", "DT JJ NN NN , NN CC NN", 3),
        ("NP", "JJ CC JJ NN", 3),
        ("NP", "NP NP", 0),
        ("NP", "NP POS NN", 2),
        ("VP", "VBD NP CC VBD NP", 0),
        ("VP", "MD VP", 1),
        ("VP", "VBZ NP-PRD", 1),
        ("VP", "VBZ NP", 0),
        ("S", "SBAR-ADV NP VP", 2),
        ("S", "CC NP VP", 2),
        ("WHNP", "WDT NN", 1),
        ("ADJP", "RB JJ PP", 1),
        ("IP", "NP VP PU", 1),
        ("PP", "APPR NP", 1),
        ("XP", "A B", 1),
        ("XP", "PUNCT PUNCT", 1),
    ],
)
def test_universal_rules(parent, children, head):
    assert universal(parent, children.split()) == head


def test_labels_without_a_rule_by_collins():
    assert "X" not in TABLE_A1
    assert collins("X", ["XX", "VB", "NP"]) == 0
    assert collins("XP", ["A", "VB", "NP"]) == 1


def test_a_conjunction_depends_on_the_conjunct_after_it():
    assert arrows("(NP (NN tea) (, ,) (NN ham) (CC and) (RB then) (NNS eggs))", universal) == [
        "tea<-tea", ",<-tea", "ham<-tea", "and<-then", "then<-tea", "eggs<-tea",
    ]  # fmt: skip
    assert arrows("(S (CC And) (NP (NN rain)) (VP (VBD fell)))", universal)[0] == "And<-fell"


def test_universal_heads_agree_with_the_dependencies_of_gum(corpora):
    """All words but punctuation, of all documents; conjuncts and conjunctions by themselves."""
    right, total = count_heads(corpora / "gum" / "gum.tar.xz", "functions")
    assert total["all"] > 230_000
    shares = {kind: right[kind] / total[kind] for kind in ("all", "conj", "cc", "root")}
    assert min(shares["all"], shares["cc"]) > 0.85 and min(shares["conj"], shares["root"]) > 0.75


@given(bracketings())
@pytest.mark.parametrize("choose", [collins, universal])
def test_heads_make_a_projective_dependency_tree(choose, text):
    tree = parse_tree(text)
    heads = find_heads(tree, choose)
    assert [i for i, head in enumerate(heads.words) if head == i] == [heads.root]
    assert find_head(tree, choose) == heads.root
    for (start, end, _), head in zip(tree.constituents, heads.constituents, strict=True):
        inside = range(start, end)
        # All words of a constituent but its head depend on words within it.
        outside = [i for i in inside if heads.words[i] not in inside or heads.words[i] == i]
        assert outside == [head]
    for word in range(len(tree.words)):
        steps = 0
        while heads.words[word] != word:
            word, steps = heads.words[word], steps + 1
            assert steps <= len(tree.words)
