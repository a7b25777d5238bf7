"""Sentences that break other parsers: blanks, brackets, no words, too many words."""

import warnings

import pytest
from spacy.tokens import Doc
from spacy.training import Example

from spacy_psa.errors import InputError
from tests.helpers.parsers import (
    chart_model,
    make_listening_parser,
    make_parser,
    random_parser,
    train_parser,
    tree_examples,
)
from tests.helpers.trees import BRACKETS, constituents, flat, parse_tree, tree_doc

ENCODERS = ["BiLSTM", "FactoredTransformer"]

ODD = [
    [" "],
    ["\n\n"],
    [" ", "Yes", "\n"],
    ["Ada", "  ", "met", "\n", "Evans", " "],
    ["."],
    ["!", "?", "...", "-"],
    ["(", ")", "[", "]", "{", "}"],
    [":-)", "(a)", "-LRB-", "\U0001f642", "\u200b", "caf\u00e9"],
    ["New York", "in\n", "a\u00a0b"],
]


@pytest.mark.parametrize("words", [[], *ODD])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_odd_sentence_is_parsed_and_read_back_from_its_brackets(encoder, words):
    nlp = random_parser(chart_model(encoder), confidence=True)
    doc = nlp(Doc(nlp.vocab, words=words))
    filled = [word for word in words if word.strip()]
    assert len(doc._.parse_trees) == bool(filled)
    for tree in doc._.parse_trees:
        parsed = parse_tree(flat(tree))
        assert len(parsed.words) == len(filled)
        assert doc[:]._.parse_string == flat(tree) or len(filled) == 1
    for span in doc.spans["constituents"]:
        assert doc[span.start].text.strip() and doc[span.end - 1].text.strip()
        assert 0 <= span._.constituent_confidence <= 1.0001


def test_white_space_does_not_part_the_tree_of_the_words(parsing):
    text = "Ada met Evans in Bath ."
    expected = parsing(Doc(parsing.vocab, words=text.split()))
    words = ["\n", "Ada", "met", " ", "Evans", "in", "Bath", "\n\n", "."]
    parser = parsing.get_pipe("parser")
    (tree,) = parser(Doc(parsing.vocab, words=words))._.parse_trees
    assert tree.leaves() == expected._.parse_trees[0].leaves()


def test_white_space_takes_no_part_in_training():
    nlp = make_parser(loss="log_likelihood")
    reference = tree_doc(nlp.vocab, BRACKETS[0])
    words = ["Ada", " ", "met", "\n", "Evans", "in", "Bath", " ", "."]
    example = Example(Doc(nlp.vocab, words=words), reference)
    train_parser(nlp, 40, 0.02, [example])
    doc = nlp(Doc(nlp.vocab, words=words))
    assert constituents(doc) == [
        (0, 9, "S"), (0, 1, "NP"), (2, 7, "VP"), (4, 5, "NP"), (5, 7, "PP"), (6, 7, "NP"),
    ]  # fmt: skip


@pytest.mark.parametrize("encoder", ENCODERS)
def test_long_sentence_is_parsed_up_to_max_length(encoder):
    nlp = random_parser(chart_model(encoder))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doc = nlp(Doc(nlp.vocab, words=["Ada", "met", "Leeds"] * 100))
    assert len(doc.spans["constituents"]) > 100


def test_too_long_sentence_gets_one_constituent_and_a_warning_that_names_the_doc():
    nlp = random_parser(confidence=True)
    parser = nlp.get_pipe("parser")
    words = [" ", *["Ada", "met", "Leeds"] * 1000, "."]
    doc = Doc(nlp.vocab, words=words)
    with pytest.warns(UserWarning, match="'Ada met Leeds.*3002 tokens.*max_length = 1000.*'S'"):
        nlp(doc)
    assert constituents(doc) == [(1, 3002, "S")]
    assert doc.spans["constituents"].attrs["scores"].tolist() == [0.0]
    short = Doc(nlp.vocab, words=["Ada", "met"])
    with pytest.warns(UserWarning, match="3002 tokens"):
        assert parser.kbest(doc, 2) == [(0.0, [])]
        assert len(parser.distribution([doc, short]).lengths) == 1
    del doc.spans["constituents"]
    with pytest.warns(UserWarning, match="3002 tokens"):
        docs = list(nlp.pipe([short, doc]))
    assert len(docs[0].spans["constituents"]) > 0 and len(docs[1].spans["constituents"]) == 1


def test_sentence_boundaries_bound_the_trees():
    nlp = random_parser()
    parser = nlp.get_pipe("parser")
    joined = nlp(tree_doc(nlp.vocab, *BRACKETS, key="gold"))
    found, first = [], 0
    for text in BRACKETS:
        alone = parser(tree_doc(nlp.vocab, text, key="gold"))
        found += [(first + s, first + e, label) for s, e, label in constituents(alone)]
        first += len(alone)
    assert constituents(joined) == found
    assert len(joined._.parse_trees) == len(BRACKETS)
    assert len(parser.analyses([joined])[0].best) == len(BRACKETS)


# Quotation marks


def test_quotation_marks_of_text_are_seen_as_those_of_the_treebank():
    brackets = [
        "(S (`` ``) (S (VP (VB Go))) ('' '') (NP (PRP she)) (VP (VBD said)))",
        "(S (NP (PRP she)) (VP (VBD said) (`` ``) (S (VP (VB Go))) ('' '')))",
    ]
    nlp = make_parser(loss="log_likelihood", quotes="treebank")
    train_parser(nlp, 40, examples=tree_examples(nlp, brackets))
    treebank, straight, curly = (
        [constituents(nlp(Doc(nlp.vocab, words=words))) for words in sentences]
        for sentences in (
            [parse_tree(text).words for text in brackets],
            [['"', "Go", '"', "she", "said"], ["she", "said", '"', "Go", '"']],
            [["“", "Go", "”", "she", "said"], ["she", "said", "“", "Go", "”"]],
        )
    )
    assert treebank == straight == curly
    doc = nlp("“Go” she said")
    assert [token.text for token in doc] == ["“", "Go", "”", "she", "said"]
    assert constituents(doc) == treebank[0]


def test_quotation_marks_do_not_reach_a_shared_component():
    with pytest.raises(InputError, match="quotes = 'treebank' does not reach"):
        make_listening_parser(chart_model(), quotes="treebank")
