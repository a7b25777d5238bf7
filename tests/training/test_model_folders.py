"""model-best and model-last are whole at any moment."""

import pytest
import spacy

from spacy_psa.training.model_folders import ModelFolders, exchange


def test_models_change_their_names_in_one_step(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if not exchange(tmp_path / "one", tmp_path / "other"):
        pytest.skip("the file system cannot exchange two folders")
    assert (tmp_path / "one" / "other").exists()


@pytest.mark.parametrize("swaps", [True, False])
def test_a_model_replaces_the_one_before(tmp_path, monkeypatch, swaps):
    if not swaps:
        monkeypatch.setattr("spacy_psa.training.model_folders.exchange", lambda *_: False)
    folders = ModelFolders(tmp_path)
    for lang in ("en", "de"):
        folders.save(spacy.blank(lang), is_best=lang == "en")
    assert spacy.load(folders.best).lang == "en"
    assert spacy.load(folders.last).lang == "de"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model-best", "model-last"]


def test_a_kill_between_two_renames_is_repaired(tmp_path):
    folders = ModelFolders(tmp_path)
    folders.save(spacy.blank("en"), is_best=True)
    folders.best.rename(tmp_path / ".model-best.old")
    (tmp_path / ".model-last.new").mkdir()
    folders.repair()
    assert spacy.load(folders.best).lang == "en"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model-best", "model-last"]
