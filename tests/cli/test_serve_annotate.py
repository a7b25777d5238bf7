"""`serve --annotate` and `export-annotations` as commands: bad input, and both in a row."""

import json
import shutil
import sqlite3
import subprocess
import sys
import urllib.request

import pytest
import spacy

from spacy_psa.studio.server.annotate_plan import AnnotatePlan
from tests.helpers.commands import command
from tests.helpers.decided import accept, complete, small_store
from tests.helpers.patience import PATIENCE
from tests.helpers.pipelines import random_nlp

COMMAND = [sys.executable, "-m", "spacy_psa"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    random_nlp().to_disk(path)
    return path


def run(name, *arguments):
    return command(name)(*arguments)


def refused(*arguments):
    """The one line of a command that exits with code 2."""
    result = run(*arguments)
    assert result.exit_code == 2, result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    return result.stderr


def test_texts_without_a_file_of_decisions_are_one_error(tmp_path):
    told = refused("serve", "none", "--port", 0, "--texts", tmp_path / "texts.txt")
    assert "also use --annotate FILE" in told


def test_without_a_model_there_must_be_labels(tmp_path):
    assert "name a MODEL, or begin without one" in refused("serve", "--port", 0)
    file = tmp_path / "names.sqlite"
    told = refused("serve", "none", "--port", 0, "--annotate", file, "--labels", "PER")
    assert "leave one of them out" in told
    assert "use --labels" in refused("serve", "--port", 0, "--annotate", file)


def test_a_file_that_is_no_database_is_one_error_before_a_model_is_opened(tmp_path):
    (tmp_path / "names.sqlite").write_text("Ada left. " * 200)
    told = refused("serve", "none", "--port", 0, "--annotate", tmp_path / "names.sqlite")
    assert "is not a file of decisions" in told


def test_a_file_of_a_newer_version_is_one_error(tmp_path):
    with small_store(tmp_path / "names.sqlite"):
        pass
    database = sqlite3.connect(tmp_path / "names.sqlite")
    database.execute("PRAGMA user_version = 99")
    database.close()
    told = refused("serve", "none", "--port", 0, "--annotate", tmp_path / "names.sqlite")
    assert "a newer version of spacy-psa wrote this file" in told


def test_labels_that_the_model_does_not_know_are_one_error(tmp_path, model):
    with small_store(tmp_path / "names.sqlite") as store:
        store.decide(1, "ann", "ner", [accept(0, 1, "DATE")])
    told = refused("serve", model, "--port", 0, "--annotate", tmp_path / "names.sqlite")
    assert "labels that ner does not know, DATE" in told


def test_a_folder_that_is_no_model_is_not_replaced_by_teach(tmp_path):
    (tmp_path / "names-model").mkdir()
    (tmp_path / "names-model" / "notes.txt").write_text("mine")
    told = refused("serve", "none", "--port", 0, "--annotate", tmp_path / "names.sqlite")
    assert "names-model: Teach would save its model here, and this is not a pipeline" in told
    assert not (tmp_path / "names.sqlite").exists()


def test_the_model_of_an_earlier_teach_is_pointed_out(tmp_path, model):
    plan = AnnotatePlan(tmp_path / "names.sqlite")
    assert plan.notice(str(model)) == ""
    shutil.copytree(model, tmp_path / "names-model")
    assert "serve that model to continue from it" in plan.notice(str(model))
    assert "serve that model to continue from it" in plan.notice("en_package")
    assert plan.notice(str(tmp_path / "names-model")) == ""


def test_a_model_without_spans_is_one_error(tmp_path):
    spacy.blank("en").to_disk(tmp_path / "blank")
    told = refused("serve", tmp_path / "blank", "--port", 0, "--annotate", tmp_path / "n.sqlite")
    assert "no crf_ner, crf_chunker or crf_tagger" in told


def test_decisions_over_http_are_exported_and_a_second_server_is_refused(tmp_path, model):
    file, texts = tmp_path / "names.sqlite", tmp_path / "texts.jsonl"
    texts.write_text('{"text": "Ada met Bob", "id": 7}\n{"text": ""}\n{"text": "Ada met Bob"}\n')
    options = ["--annotate", file, "--texts", texts, "--annotator", "ann", "--order", "random"]
    line = [*COMMAND, "serve", str(model), "--port", "0", *map(str, options)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().split()[0]

            def ask(path, **body):
                request = urllib.request.Request(
                    f"{address}api/annotation/{path}",
                    json.dumps({"annotator": "ann", **body}).encode(),
                    {"Content-Type": "application/json"},
                )
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    return json.load(answer)

            assert ask("text")["counts"]["texts"] == 1
            made = [
                {"verdict": "accepted", "start": 0, "end": 1, "label": "PER"},
                {"verdict": "complete", "start": 1, "end": 2},
            ]
            assert ask("decide", text=1, decisions=made)["accepted"] == [[0, 1, "PER"]]
            told = refused("serve", model, "--port", 0, *options)
            assert "another server has this file open" in told
            result = run("export-annotations", file, tmp_path / "train.jsonl")
            assert (result.exit_code, "1 text with 1 span" in result.stdout) == (0, True)
        finally:
            process.kill()  # as a crash would
        process.wait(PATIENCE)
    (row,) = map(json.loads, (tmp_path / "train.jsonl").read_text().splitlines())
    assert row["ents"] == [{"start": 0, "end": 3, "label": "PER"}]
    assert row["missing"] == [[8, 11]]
    assert row["meta"] == {"id": 7}
    assert run("export-annotations", file, tmp_path / "train.spacy").exit_code == 0


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("none.sqlite", ["train.spacy"], "there is no such file"),
        ("empty.sqlite", ["train.spacy"], "is empty"),
        ("names.sqlite", ["train.txt"], "cannot tell the format"),
        ("names.sqlite", ["train.spacy", "--annotator", "eve"], "'eve' has decided nothing"),
        ("names.sqlite", ["file/train.spacy"], "cannot be written"),
    ],
)
def test_an_export_that_cannot_be_made_is_one_error(tmp_path, name, arguments, message):
    with small_store(tmp_path / "names.sqlite") as store:
        store.decide(1, "ann", "ner", [accept(0, 1, "PER"), complete(0, 4)])
    for empty in ("file", "empty.sqlite"):
        (tmp_path / empty).write_text("")
    out, *options = arguments
    told = refused("export-annotations", tmp_path / name, tmp_path / out, *options)
    assert message in told
    assert not (tmp_path / "train.spacy").exists()
    assert (tmp_path / "empty.sqlite").stat().st_size == 0
