import pytest
import spacy
from spacy.tokens import Doc, Span
from srsly.msgpack import msgpack_decoders

from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import codecs_known, read_docbin, write_docbin
from spacy_psa.errors import InputError


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


def test_codecs_of_other_packages_are_asked_for_again_afterwards():
    with pytest.raises(ZeroDivisionError), codecs_known():
        assert not msgpack_decoders.entry_points
        _ = 1 / 0
    assert msgpack_decoders.entry_points


def test_codecs_of_other_packages_are_not_left_out(monkeypatch):
    monkeypatch.setattr(msgpack_decoders, "get_entry_points", lambda: {"other": print})
    with codecs_known():
        assert msgpack_decoders.entry_points
