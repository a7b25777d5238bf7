"""`spacy-psa benchmark speed` in a process of its own, since it pins processors."""

import json
import subprocess
import sys

import pytest


def run(*arguments):
    command = [sys.executable, "-m", "spacy_psa", "benchmark", "speed", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_rows_stand_side_by_side_in_a_table_a_record_and_a_figure(trained_path, data, tmp_path):
    pytest.importorskip("matplotlib")
    sections = [part for name in ("annotation", "training") for part in ("--section", name)]
    done = run(
        data, f"one={trained_path}", f"two={trained_path}", *sections, "--train", data,
        "--words", 50, "--steps", 2, "--batch", 2, "--repeats", 2, "--output", tmp_path / "speed",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "speed.json").read_text(encoding="utf8"))
    for section, amount in (("annotation", 50), ("training", 2)):
        rows = record[section]["rows"]
        assert list(rows) == ["one", "two"]
        assert [run["amount"] for run in rows["one"]["runs"]] == [amount, amount]
    assert record["rows"]["two"] == str(trained_path) and record["settings"]["repeats"] == 2
    assert (tmp_path / "speed.md").read_text(encoding="utf8").startswith("### Annotation")
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")


def test_training_without_data_is_one_line(trained_path, data, tmp_path):
    pytest.importorskip("matplotlib")
    done = run(data, trained_path, "--section", "training", "--output", tmp_path / "speed")
    assert done.returncode == 2 and "give --train" in done.stderr
    assert not (tmp_path / "speed.json").exists()
