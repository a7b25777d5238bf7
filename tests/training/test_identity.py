"""Which files and folders are a part of a training."""

from pathlib import Path

import pytest

from spacy_psa.training.identity import identity, named_files

EMPTY = {"nlp": {}, "components": {}, "corpora": {}, "initialize": {}, "training": {}}
TRANSFORMER = {"@architectures": "spacy-transformers.TransformerModel.v3"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder, with two folders of a file each."""
    monkeypatch.chdir(tmp_path)
    for name in ("model", "spacy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_text(name)


@pytest.mark.parametrize(
    ("component", "named"),
    [
        ({"source": "model"}, ["model"]),
        ({"source": "none"}, []),
        ({"source": "spacy"}, []),  # an installed package, which spaCy would take
        ({"factory": "transformer", "model": {**TRANSFORMER, "name": "model"}}, ["model"]),
        ({"model": {"tok2vec": {**TRANSFORMER, "name": "./model"}}}, ["model"]),
        ({"factory": "transformer", "model": {**TRANSFORMER, "name": "roberta-base"}}, []),
        ({"factory": "x", "model": {"@architectures": "x.v1", "name": "model"}}, []),
    ],
)
def test_folders_of_models_that_are_there_are_a_part_of_a_training(component, named):
    config = {**EMPTY, "components": {"ner": component}}
    assert named_files(config) == [Path(name) for name in named]
    assert [*identity(config)["data"]] == [f"{name}/weights" for name in named]
