"""Texts and rows for timing pipelines."""

import pytest

from spacy_psa.errors import InputError
from spacy_psa.laboratory.performance.pipelines import (
    long_text,
    named_rows,
    of_length,
    open_pipelines,
    read_words,
)


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


def test_a_missing_config_is_told_before_the_first_pipeline_is_opened(tmp_path):
    """The first is no pipeline at all: opening it would be another error."""
    config = tmp_path / "missing.cfg"
    paths = {"first": str(tmp_path / "nothing"), "second": str(config)}
    with pytest.raises(InputError, match=r"missing\.cfg: there is no such config"):
        open_pipelines(paths, tmp_path / "train.spacy", None)
    with pytest.raises(InputError, match=r"missing\.cfg: a config needs training data"):
        open_pipelines(paths, None, None)
