"""`spacy-psa quantize` on a pipeline trained on a handful of sentences."""

import subprocess
import sys

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_psa.bridge.shim import TorchShim
from spacy_psa.modules import int8
from tests.helpers.commands import command, succeed
from tests.helpers.nested_pipelines import DEEP, deep_pipeline, nodes

run = command("quantize")


@pytest.fixture(autouse=True)
def everything(monkeypatch):
    """Small layers are rounded too."""
    monkeypatch.setattr(int8, "LEAST_WORK", 0)


def shims(nlp, name="ner"):
    layers = nlp.get_pipe(name).model.walk()
    return [shim for node in layers for shim in node.shims if isinstance(shim, TorchShim)]


def test_the_new_pipeline_loads_and_finds_the_entities(trained_path, data, tmp_path):
    found = succeed(run(trained_path, tmp_path / "int8", "--data", data))
    assert "ents_f" in found.output and "words a second" in found.output
    nlp, plain = spacy.load(tmp_path / "int8"), spacy.load(trained_path)
    assert any(shim.int8 for shim in shims(nlp)) and not any(shim.int8 for shim in shims(plain))
    texts = [doc.text for doc in DocBin().from_disk(data).get_docs(nlp.vocab)]
    for text in texts:
        assert [e.text for e in nlp(text).ents] == [e.text for e in plain(text).ents]


def test_nested_spans_are_those_of_float32(tmp_path):
    nlp = deep_pipeline()
    nlp.to_disk(tmp_path / "model")
    assert run(tmp_path / "model", tmp_path / "int8").exit_code == 0
    rounded = spacy.load(tmp_path / "int8")
    assert any(shim.int8 for shim in shims(rounded, "crf_spans"))
    assert nodes(rounded(DEEP)) == nodes(nlp(DEEP))


def test_it_loads_in_a_process_that_never_imported_us(trained_path, tmp_path):
    assert run(trained_path, tmp_path / "int8").exit_code == 0
    code = f"import spacy; spacy.load({str(tmp_path / 'int8')!r})('Ada')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_twice_is_an_error_and_writes_nothing(trained_path, tmp_path):
    assert run(trained_path, tmp_path / "int8").exit_code == 0
    again = run(tmp_path / "int8", tmp_path / "again")
    assert again.exit_code == 2 and "in int8 already" in again.output
    assert not (tmp_path / "again").exists()


def test_a_pipeline_without_weights_of_ours_is_an_error(tmp_path):
    spacy.blank("en").to_disk(tmp_path / "blank")
    found = run(tmp_path / "blank", tmp_path / "int8")
    assert found.exit_code == 2 and "has weights of spacy-psa" in " ".join(found.output.split())


def test_bytes_hold_the_weights_too(trained_path, data, tmp_path):
    assert run(trained_path, tmp_path / "int8").exit_code == 0
    nlp = spacy.load(tmp_path / "int8")
    again = spacy.load(trained_path).from_bytes(nlp.to_bytes())
    assert again.to_bytes() == nlp.to_bytes()
    (first, *_), (second, *_) = (
        [(e.text, e.label_) for e in doc.ents]
        for doc in (pipe("Ada Lovelace met Evans in Leeds") for pipe in (nlp, again))
    )
    assert first == second


def test_one_line_says_what_stays_in_float32(trained_path, tmp_path):
    nlp = spacy.load(trained_path)
    nlp.add_pipe("tok2vec").model.initialize(X=[nlp.make_doc("Ada")])
    nlp.to_disk(tmp_path / "more")
    (told,) = [
        line
        for line in run(tmp_path / "more", tmp_path / "int8").output.splitlines()
        if line.startswith("In int8: ")
    ]
    assert "embeddings" in told and "layers of tok2vec that are not of spacy-psa" in told


def test_a_model_of_small_layers_is_copied(trained_path, tmp_path, monkeypatch):
    monkeypatch.setattr(int8, "LEAST_WORK", 100)
    found = succeed(run(trained_path, tmp_path / "int8"))
    assert "In int8: 0 weights (no layer is large enough to gain)" in found.output
    assert not any(shim.int8 for shim in shims(spacy.load(tmp_path / "int8")))


def test_only_a_pipeline_is_replaced(trained_path, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.txt").write_text("mine")
    found = run(trained_path, tmp_path / "folder", "--overwrite")
    assert found.exit_code == 2 and "already exists" in found.output
    for _ in range(2):
        assert run(trained_path, tmp_path / "int8", "--overwrite").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "int8"]
    assert run(trained_path, tmp_path / "int8").exit_code == 2
    assert any(shim.int8 for shim in shims(spacy.load(tmp_path / "int8")))
