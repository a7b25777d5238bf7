"""Pipelines for commands: a file that cannot be opened is one error that names it."""

import shutil
from pathlib import Path

import pytest

from spacy_psa.errors import InputError
from spacy_psa.loading import load_pipeline

FILES = [
    "config.cfg",
    "meta.json",
    "ner/cfg",
    "ner/model",
    "tokenizer",
    "vocab/lookups.bin",
    "vocab/strings.json",
]


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_named(trained_path: Path, tmp_path: Path, name: str):
    file = tmp_path / "model" / name
    shutil.copytree(trained_path, tmp_path / "model")
    content = file.read_bytes()
    for damaged in (b"", content[: len(content) // 2], b"\xff\x00other" * 20):
        file.write_bytes(damaged)
        with pytest.raises(InputError) as caught:
            load_pipeline(str(tmp_path / "model"))
        # spaCy's compiled code does not tell which file of a component it reads
        named = file.parent if name == "ner/model" else file
        assert str(caught.value).startswith(f"{named}: ")


def test_a_folder_that_is_no_pipeline_is_named(tmp_path: Path):
    with pytest.raises(InputError, match=f"{tmp_path}/none: no pipeline to open"):
        load_pipeline(str(tmp_path / "none"))
    with pytest.raises(InputError, match=f"{tmp_path}/meta.json: the pipeline cannot be opened"):
        load_pipeline(str(tmp_path))
