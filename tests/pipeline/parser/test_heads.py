"""Head words and dependencies of docs."""

import pytest
import spacy
from hypothesis import given
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_psa.corpora.head_rules import collins, find_heads, universal
from spacy_psa.errors import SettingError
from spacy_psa.pipeline.parser.extensions import NonConstituentException, register_extensions
from spacy_psa.pipeline.parser.heads import dependencies, head_token
from tests.helpers.trees import bracketings, parse_tree, tree_doc

WORDS = ["Ada", "\n", "will", "leave", ".", " ", "Go", "home"]
TAGS = ["NNP", "_SP", "MD", "VB", ".", "_SP", "VB", "NN"]
NODES = [(0, 5, "S"), (0, 1, "NP"), (2, 4, "VP"), (3, 4, "VP"), (6, 8, "S"), (6, 8, "VP"),
         (7, 8, "NP")]  # fmt: skip


@pytest.fixture
def doc():
    register_extensions()
    return made("en")


def made(lang):
    doc = Doc(
        spacy.blank(lang).vocab, words=WORDS, tags=TAGS, sent_starts=[i in (0, 6) for i in range(8)]
    )
    doc.spans["constituents"] = [Span(doc, *node) for node in NODES]
    return doc


def test_heads_of_constituents_words_and_sentences(doc):
    found = {(s, e): doc[s:e]._.head_token.text for s, e, _ in NODES}
    assert found == {(0, 5): "will", (0, 1): "Ada", (2, 4): "will", (3, 4): "leave",
                     (6, 8): "Go", (7, 8): "home"}  # fmt: skip
    assert [sentence._.head_token.text for sentence in doc.sents] == ["will", "Go"]
    assert doc[2:3]._.head_token.i == 2


def test_the_head_of_a_token_is_the_token(doc):
    assert [token._.head_token for token in doc] == [
        token if token.text.strip() else None for token in doc
    ]


@given(bracketings())
@pytest.mark.parametrize("rules", [collins, universal])
def test_heads_are_those_that_are_found_in_the_whole_tree(rules, text):
    heads = find_heads(parse_tree(text), rules)
    doc = tree_doc(Vocab(), text)
    nodes = doc.spans["constituents"]
    assert [head_token(node, rules=rules.__name__).i for node in nodes] == heads.constituents
    assert [head.i for head in dependencies(doc, rules=rules.__name__)] == heads.words
    assert head_token(doc[:], rules=rules.__name__).i == heads.root


def test_white_space_has_no_head_and_depends_on_itself(doc):
    assert doc[1:2]._.head_token is None
    assert [head.i for head in dependencies(doc)] == [2, 1, 2, 2, 2, 5, 6, 6]


def test_a_sentence_that_is_no_constituent_has_a_head():
    register_extensions()
    doc = Doc(spacy.blank("en").vocab, words=["Ada", "!"], tags=["NNP", "."])
    doc.spans["constituents"] = [Span(doc, 0, 1, "NP")]
    assert doc[:]._.head_token.i == 0


def test_languages_have_their_rules_and_an_argument_chooses_others(doc):
    assert head_token(doc[0:5]).text == "will"
    assert head_token(doc[0:5], rules="universal").text == "leave"
    assert head_token(made("de")[0:5]).text == "leave"
    assert head_token(made("de")[0:5], rules="collins").text == "will"
    with pytest.raises(SettingError, match="rules is 'cfg'"):
        dependencies(doc, rules="cfg")


def test_a_span_that_is_no_constituent_is_an_error(doc):
    with pytest.raises(NonConstituentException):
        _ = doc[0:3]._.head_token


def test_another_span_group_is_read(doc):
    doc.spans["other"] = [Span(doc, 0, 5, "NP")]
    assert head_token(doc[0:5], key="other").text == "Ada"
    assert dependencies(doc, key="other")[3].text == "Ada"


def test_dependencies_go_into_a_doc_of_spacy(doc):
    heads = [head.i for head in dependencies(doc)]
    other = Doc(doc.vocab, words=WORDS, heads=heads, deps=["dep"] * len(heads))
    assert [token.text for token in other[2].children] == ["Ada", "leave", "."]
