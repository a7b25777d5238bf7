"""The files .spacy, and the JSON lines of the sample corpus."""

import gzip
import json
import zlib

import pytest
import spacy
import srsly
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab
from srsly.msgpack import msgpack_decoders

from spacy_psa.annotation.input import Reading, open_source
from spacy_psa.corpora import lines
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import codecs_known, read_docbin, write_docbin
from spacy_psa.corpora.jsonl import read_docs
from spacy_psa.corpora.trees import build_tree
from spacy_psa.errors import InputError
from tests.helpers.corpora import input_error_at
from tests.helpers.paths import SAMPLE
from tests.helpers.trees import constituents


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path):
    path = tmp_path / "out.spacy"
    path.write_text("old")

    def docs():
        yield Doc(spacy.blank("en").vocab, words=["a"])
        raise InputError("in:1: broken")

    with pytest.raises(InputError, match="broken"):
        write_docbin(docs(), path)
    assert [file.name for file in tmp_path.iterdir()] == ["out.spacy"]
    assert path.read_text() == "old"


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_unpacks_to_far_more_than_docs_do_is_one_error(tmp_path, monkeypatch, packed):
    monkeypatch.setattr(lines, "HARMLESS", 10_000)
    content = zlib.compress(bytes(10**7))
    path = tmp_path / f"bomb.spacy{'.gz' * packed}"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(InputError, match=r"bomb.spacy.*: unpacks to more than 200 times its size"):
        if packed:
            open_source(path, Reading("spacy")).__enter__()
        else:
            read_docbin(path, Vocab())


def test_no_docs_leave_no_file(tmp_path):
    with pytest.raises(InputError, match="nothing to write"):
        write_docbin([], tmp_path / "out.spacy")
    assert list(tmp_path.iterdir()) == []


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"must end in \.spacy"):
        write_docbin([], tmp_path / "out.bin")


def test_missing_folders_are_made(tmp_path):
    write_docbin([Doc(spacy.blank("en").vocab, words=["a"])], tmp_path / "new" / "out.spacy")
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["out.spacy"]


def test_a_target_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "out"):
        with pytest.raises(InputError, match=path.name), atomic_path(path):
            pass


def test_the_file_shows_only_when_it_is_whole(tmp_path):
    path = tmp_path / "out.txt"
    with atomic_path(path) as temporary:
        temporary.write_text("whole")
        assert temporary.parent == path.parent
        assert not path.exists()
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]


def test_docs_come_back_with_their_span_groups(tmp_path):
    vocab = spacy.blank("en").vocab
    doc = Doc(vocab, words=["Ada", "met", "Bob"])
    doc.spans["chunks"] = [Span(doc, 0, 1, "NP"), Span(doc, 2, 3, "NP")]
    write_docbin([doc, Doc(vocab)], tmp_path / "out.spacy")
    first, second = read_docbin(tmp_path / "out.spacy", vocab)
    assert [(span.text, span.label_) for span in first.spans["chunks"]] == [
        ("Ada", "NP"),
        ("Bob", "NP"),
    ]
    assert len(second) == 0


def test_what_is_no_docbin_is_named(tmp_path):
    path = tmp_path / "in.spacy"
    with pytest.raises(InputError, match=r"in\.spacy: cannot be read"):
        read_docbin(path, spacy.blank("en").vocab)
    path.write_bytes(b"no zlib")
    with pytest.raises(InputError, match=r"in\.spacy: is not a \.spacy file"):
        read_docbin(path, spacy.blank("en").vocab)


@pytest.mark.parametrize(
    ("layer", "change"),
    [
        ("lengths", lambda lengths: lengths[:4]),
        ("cats", lambda cats: cats[:1]),
        ("spaces", lambda spaces: spaces[:-1]),
        ("tokens", lambda tokens: tokens[: len(tokens) // 2]),
        ("span_groups", lambda groups: groups[:1]),
        ("strings", lambda strings: []),
        ("attrs", lambda attrs: attrs[1:]),
        ("user_data", lambda data: [b"\xc1"] * len(data)),
    ],
)
def test_a_docbin_that_is_damaged_inside_is_one_error_and_loses_no_doc(tmp_path, layer, change):
    vocab = spacy.blank("en").vocab
    docs = [Doc(vocab, words=["Ada", "met", "Bob"], tags=["A", "B", "A"]) for _ in range(2)]
    path = tmp_path / "in.spacy"
    write_docbin(docs, path)
    content = srsly.msgpack_loads(zlib.decompress(path.read_bytes()))
    content[layer] = change(content[layer])
    path.write_bytes(zlib.compress(srsly.msgpack_dumps(content)))
    with pytest.raises(InputError, match=r"in\.spacy: is not a \.spacy file, or is broken"):
        read_docbin(path, spacy.blank("en").vocab)


def test_codecs_of_other_packages_are_asked_for_again_afterwards(monkeypatch):
    monkeypatch.delattr(msgpack_decoders, "get_all", raising=False)  # of tests.helpers.registries
    with pytest.raises(ZeroDivisionError), codecs_known():
        _ = 1 / 0
    monkeypatch.setattr(msgpack_decoders, "get_entry_points", lambda: {"other": print})
    assert msgpack_decoders.get_all()["other"] is print


def test_codecs_of_other_packages_are_not_left_out(monkeypatch):
    monkeypatch.delattr(msgpack_decoders, "get_all", raising=False)
    monkeypatch.setattr(msgpack_decoders, "get_entry_points", lambda: {"other": print})
    with codecs_known():
        assert msgpack_decoders.get_all()["other"] is print


def test_reading_a_file_while_another_is_written_keeps_the_codecs_known(monkeypatch):
    monkeypatch.delattr(msgpack_decoders, "get_all", raising=False)
    with codecs_known():
        known = msgpack_decoders.get_all
        with codecs_known():
            pass
        assert msgpack_decoders.get_all is known
    assert msgpack_decoders.get_all is not known


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
