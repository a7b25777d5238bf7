"""The reader of the sample corpus."""

import json

import pytest
import spacy

from spacy_psa.corpora.jsonl import read_docs
from spacy_psa.corpora.trees import build_tree
from spacy_psa.errors import InputError
from tests.helpers.corpora import input_error_at
from tests.helpers.paths import SAMPLE
from tests.helpers.trees import constituents


def test_text_looks_like_text():
    docs = list(read_docs(SAMPLE / "train.jsonl", spacy.blank("en").vocab))
    text = "\n".join(doc.text for doc in docs)
    for wrong in (" .", " ,", " 's", " n't", "( ", " )", ",,", ",."):
        assert wrong not in text
    assert "didn't" in text
    assert any(doc.text.startswith('"') and ',"' in doc.text for doc in docs)
    assert any(token.text == "an" for doc in docs for token in doc)


def test_docs_hold_every_layer():
    records = [json.loads(line) for line in (SAMPLE / "dev.jsonl").open()]
    docs = list(read_docs(SAMPLE / "dev.jsonl", spacy.blank("en").vocab))
    assert len(docs) == len(records)
    for doc, record in zip(docs, records, strict=True):
        layers = {"ents": doc.ents, "chunks": doc.spans["chunks"]}
        for name, group in layers.items():
            assert [[s.start, s.end, s.label_] for s in group] == record[name]
        assert [t.tag_ for t in doc] == record["tags"]
        words = [token.text for token in doc]
        rebuilt = build_tree(words, record["tags"], constituents(doc))
        assert str(rebuilt).split() == record["tree"].split()


GOOD = {
    "words": ["I", "saw", "May"], "spaces": [True, True, False], "tags": ["PRP", "VBD", "NNP"],
    "chunks": [[0, 1, "NP"]], "ents": [[2, 3, "PER"]],
    "tree": "(S (NP (PRP I)) (VP (VBD saw) (NP (NNP May))))",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tree": "(S (NP (PRP I))"}, ""),
        ({"tree": "(S (NP (PRP I)))"}, "other words"),
        ({"tree": 3}, ""),
        ({"ents": [[2, 4, "PER"]]}, "outside"),
        ({"ents": [[1, 3, "PER"], [2, 3, "LOC"]]}, "overlaps"),
        ({"ents": [[2, "PER"]]}, "is not a list [start, end, label]"),
        ({"ents": 4}, ""),
        ({"chunks": [["0", 1, "NP"]]}, "is not a list [start, end, label]"),
        ({"tags": ["PRP"]}, "tags is not a list of 3"),
        ({"spaces": None}, "spaces is not a list of 3"),
        ({"words": []}, ""),
        ({"words": ["I", "", "May"]}, "not empty"),
        ({"words": 5}, ""),
    ],
)
def test_a_record_that_contradicts_itself_is_named_by_file_and_line(
    tmp_path, vocab, change, reason
):
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps(GOOD | change) + "\n")
    with input_error_at(path, 2, reason):
        list(read_docs(path, vocab))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "Expecting"),
        ("[]", "not a JSON object"),
        ("{}", "no words"),
        ("[" * 100_000, "recursion"),
        ("1" * 5000, "digits"),
    ],
)
def test_a_line_that_is_no_record_is_named(tmp_path, line, reason):
    path = tmp_path / "in.jsonl"
    path.write_text(line)
    with pytest.raises(InputError, match=f":1: .*{reason}"):
        list(read_docs(path, spacy.blank("en").vocab))


def test_an_empty_file_is_named(tmp_path):
    (tmp_path / "in.jsonl").write_text("\n")
    with pytest.raises(InputError, match="no sentences"):
        list(read_docs(tmp_path / "in.jsonl", spacy.blank("en").vocab))
