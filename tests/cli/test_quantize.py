"""`spacy-psa quantize` on a pipeline trained on a handful of sentences."""

import subprocess
import sys

import spacy
from spacy.tokens import DocBin

from spacy_psa.bridge.shim import TorchShim
from tests.helpers.commands import command

run = command("quantize")


def shims(nlp):
    nodes = nlp.get_pipe("ner").model.walk()
    return [shim for node in nodes for shim in node.shims if isinstance(shim, TorchShim)]


def test_the_new_pipeline_loads_and_finds_the_entities(trained_path, data, tmp_path):
    found = run(trained_path, tmp_path / "int8", "--data", data)
    assert found.exit_code == 0, found.output
    assert "ents_f" in found.output and "words a second" in found.output
    nlp, plain = spacy.load(tmp_path / "int8"), spacy.load(trained_path)
    assert all(shim.int8 for shim in shims(nlp)) and not any(shim.int8 for shim in shims(plain))
    texts = [doc.text for doc in DocBin().from_disk(data).get_docs(nlp.vocab)]
    for text in texts:
        assert [e.text for e in nlp(text).ents] == [e.text for e in plain(text).ents]


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
