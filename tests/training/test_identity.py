"""Which files and folders are a part of a training."""

from pathlib import Path

import pytest
import srsly

from spacy_psa.laboratory.experiments.runner import Contents, fingerprint
from spacy_psa.training.identity import differences, identity, named_files

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
    assert [*named_files(config).values()] == [Path(name) for name in named]
    assert [*identity(config)["data"]] == [f"{name}/weights" for name in named]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The weights of the installed package `en_made`."""
    folder = tmp_path / "site" / "en_made"
    data, info = folder / "en_made-1.0", tmp_path / "site" / "en_made-1.0.dist-info"
    for made in (data, info):
        made.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: en-made\nVersion: 1.0\n")
    (folder / "__init__.py").write_text("")
    meta = {"lang": "en", "name": "made", "version": "1.0", "spacy_version": ">=3.8.0,<4.0.0"}
    srsly.write_json(folder / "meta.json", meta)
    (data / "weights").write_text("first")
    monkeypatch.syspath_prepend(folder.parent)
    return data / "weights"


@pytest.mark.parametrize(
    "block",
    [
        {"components": {"ner": {"source": "en_made"}}},
        {"initialize": {"vectors": "en_made"}},
        {"initialize": {"after_init": {"@callbacks": "distill.v1", "teacher": "en_made"}}},
    ],
)
def test_a_package_is_a_part_of_a_training_by_its_content(package, block):
    before = identity({**EMPTY, **block})
    assert [*before["data"]] == ["en_made/weights"]
    package.write_text("second")
    now = identity({**EMPTY, **block})
    assert differences(before, now) == ["en_made/weights"]


def test_trainings_on_other_content_of_a_package_have_other_fingerprints(package):
    config = {**EMPTY, "initialize": {"vectors": "en_made"}}
    before = fingerprint(config, Contents())
    assert fingerprint(config, Contents()) == before
    package.write_text("second")
    assert fingerprint(config, Contents()) != before
