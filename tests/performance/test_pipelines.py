"""Texts and rows for timing pipelines."""

import pytest

from spacy_psa.errors import InputError
from spacy_psa.performance.pipelines import long_text, named_rows, of_length, read_words


def test_words_are_cut_and_repeated():
    sentences = [["a", "b", "c"], ["d"]]
    assert long_text(sentences, 6) == ["a", "b", "c", "d", "a", "b"]
    assert of_length(sentences, 2, 6) == [["a", "b"], ["c", "d"], ["a", "b"]]


def test_rows_have_names_of_their_own():
    assert named_rows(["a=x/y", "z"]) == {"a": "x/y", "z": "z"}
    with pytest.raises(InputError, match="two rows have this name"):
        named_rows(["a=x", "a=y"])


def test_what_is_no_spacy_file_is_an_error(tmp_path):
    (tmp_path / "no.spacy").write_bytes(b"words")
    with pytest.raises(InputError, match=r"not a \.spacy file"):
        read_words(tmp_path / "no.spacy", 10)
