"""Quotation marks and spaces, from the treebank to text and back."""

import pytest
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_psa.corpora.quotes import STYLES, as_text, text_quotes, text_spaces, treebank_quotes

TREEBANK = ["``", "Do", "n't", "go", ",", "''", "she", "said", ":", "``", "Stay", ".", "''"]
TAGS = ["``", "VB", "RB", "VB", ",", "''", "PRP", "VBD", ":", "``", "VB", ".", "''"]


def joined(words, spaces):
    return "".join(word + " " * space for word, space in zip(words, spaces, strict=True))


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("straight", '"Don\'t go," she said: "Stay."'),
        ("curly", "“Don't go,” she said: “Stay.”"),
    ],
)
def test_a_sentence_of_the_treebank_reads_as_text(style, text):
    words = text_quotes(TREEBANK, TAGS, style)
    assert joined(words, text_spaces(words, TAGS)) == text


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("known", [True, False])
def test_marks_of_text_are_those_of_the_treebank_again(style, known):
    words = text_quotes(TREEBANK, TAGS, style)
    spaces = text_spaces(words, TAGS) if known else None
    assert treebank_quotes(words, spaces) == TREEBANK


def test_a_high_mark_closes_after_a_low_one():
    words = ["„", "Ja", "“", ",", "“", "yes", "”", "„", "Nein", "”"]
    opening, closing = "``", "''"
    found = [opening, "Ja", closing, ",", opening, "yes", closing, opening, "Nein", closing]
    assert treebank_quotes(words) == found


@pytest.mark.parametrize("line", ["\n", "\n\n"])
def test_a_mark_after_a_line_break_opens(line):
    """A quotation that goes on in a new paragraph has no closing mark before it."""
    words = ['"', "Go", ".", line, '"', "Stop", ".", '"', line, "He"]
    opening, closing = "``", "''"
    found = [opening, "Go", ".", line, opening, "Stop", ".", closing, line, "He"]
    assert treebank_quotes(words, [False] * 10) == found


def test_a_high_single_mark_closes_after_a_low_one():
    words = ["‚", "Ja", "‘", ",", "‘", "yes", "’"]
    assert treebank_quotes(words) == ["‚", "Ja", "'", ",", "`", "yes", "’"]


def test_apostrophes_stay_and_closing_single_marks_do_not():
    words, tags = ["dogs", "'", "`", "yes", "'"], ["NNS", "POS", "``", "UH", "''"]
    assert text_quotes(words, tags, "curly") == ["dogs", "'", "‘", "yes", "’"]


@pytest.mark.parametrize(
    "text",
    [
        "It cost $5 (or less), 10%.",
        "I'm gonna say we cannot.",
        "Ada's dogs' bowls: two.",
    ],
)
def test_spaces_are_those_of_text(text):
    tokens = {
        "It cost $5 (or less), 10%.": "It cost $ 5 ( or less ) , 10 % .",
        "I'm gonna say we cannot.": "I 'm gon na say we can not .",
        "Ada's dogs' bowls: two.": "Ada 's dogs ' bowls : two .",
    }[text].split()
    assert joined(tokens, text_spaces(tokens)) == text


def test_docs_keep_trees_tags_and_sentences():
    doc = Doc(Vocab(), words=TREEBANK, tags=TAGS, sent_starts=[True] + [False] * 12)
    doc.spans["constituents"] = [Span(doc, 0, 13, "S"), Span(doc, 1, 4, "VP")]
    (text,) = as_text([doc], "straight", spaces=True)
    assert text.text == '"Don\'t go," she said: "Stay."'
    assert [token.tag_ for token in text] == TAGS and len(list(text.sents)) == 1
    assert [(s.start, s.end, s.label_) for s in text.spans["constituents"]] == [
        (0, 13, "S"), (1, 4, "VP"),
    ]  # fmt: skip
    assert not doc.has_annotation("ENT_IOB") and not text.has_annotation("ENT_IOB")


def test_mixed_marks_take_turns_and_other_docs_stay_the_same_objects():
    docs = [Doc(Vocab(), words=TREEBANK, tags=TAGS) for _ in range(3)]
    bare = Doc(Vocab(), words=["Go", "!"])
    found = list(as_text([docs[0], bare, *docs[1:]], "mixed", spaces=False))
    assert [doc[0].text for doc in found] == ["``", "Go", '"', "“"]
    assert found[1] is bare and found[0] is docs[0]
