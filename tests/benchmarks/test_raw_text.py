"""What benchmarks/parser/raw_text.py counts and scores, on sentences made by hand."""

import pytest
import spacy
from spacy.tokens import Span

from benchmarks.parser.raw_text import WAYS, borders, measure, own_tokens, tokens
from spacy_psa.corpora.quotes import as_text
from spacy_psa.corpora.readers import make_doc

SENTENCES = [
    # spaCy has "co" and "founder" for one word here, and "Inc." for two.
    ("The co-founder left", "DT NN VBD", [(0, 3, "S"), (0, 2, "NP")]),
    ("He saw `` Acme Inc . ''", "PRP VBD `` NNP NNP . ''", [(0, 7, "S"), (3, 5, "NP")]),
    ("She left", "PRP VBD", [(0, 2, "S")]),
]


@pytest.fixture
def docs():
    vocab = spacy.blank("en").vocab
    return [make_doc(vocab, w.split(), t.split(), constituents=c) for w, t, c in SENTENCES]


def test_the_text_is_restored_and_cut_by_the_tokenizer(docs):
    gold = list(as_text(docs, "straight", spaces=True))
    assert [doc.text for doc in gold] == ["The co-founder left", 'He saw "Acme Inc."', "She left"]
    own = list(own_tokens(spacy.blank("en"), gold))
    assert [[t.text for t in doc] for doc in own] == [
        ["The", "co", "-", "founder", "left"],
        ["He", "saw", '"', "Acme", "Inc.", '"'],
        ["She", "left"],
    ]
    assert all(len(list(doc.sents)) == 1 for doc in own)


def test_split_and_joined_words_and_unreachable_constituents_are_counted(docs):
    gold = list(as_text(docs, "straight", spaces=True))
    own = list(own_tokens(spacy.blank("en"), gold))
    assert borders(own[2]) == borders(gold[2]) == [0, 3, 7]
    assert tokens(gold, own) == {
        "words": 12,
        "found": 9,
        "split": 1,
        "joined": 2,
        "sentences": 1,
        "constituents": 5,
        "reachable": 4,
    }


def test_a_parser_that_is_right_loses_only_what_tokens_cannot_reach(docs):
    """It knows the trees by the letters of the text."""
    known = {
        "".join(doc.text.split()): [
            (m[s.start], m[s.end], s.label_) for s in doc.spans["constituents"]
        ]
        for marks in ("treebank", "straight", "curly")
        for doc in as_text(docs, marks, spaces=True)
        for m in [borders(doc)]
    }

    class Knowing:
        _quotes = "as_they_are"

        def __call__(self, doc):
            place = {border: i for i, border in enumerate(borders(doc))}
            doc.spans["constituents"] = [
                Span(doc, place[a], place[b], label)
                for a, b, label in known["".join(doc.text.split())]
                if a in place and b in place
            ]
            return doc

    spacy.Language.factory("raw_text_parser", func=lambda nlp, name: Knowing())
    nlp = spacy.blank("en")
    nlp.add_pipe("raw_text_parser", name="parser")
    rows, counts = measure(nlp, docs)
    assert set(rows) == set(counts) == set(WAYS)
    assert rows["straight"]["treebank"] == rows["straight"]["treebank, differ"] == 1.0
    # NP over "Acme Inc" ends inside a token: 4 of 5 are found, and 3 of 4 where tokens differ.
    assert rows["straight"]["spacy"] == pytest.approx(8 / 9, abs=1e-4)
    assert rows["curly"]["spacy, differ"] == pytest.approx(6 / 7, abs=1e-4)
