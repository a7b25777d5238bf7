"""`spacy-psa benchmark` in a process of its own, since it pins processors."""

import json
import subprocess
import sys

import pytest


def run(*arguments, command="speed"):
    line = [sys.executable, "-m", "spacy_psa", "benchmark", command, *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True)


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
    assert done.returncode == 2 and "add --train" in done.stderr
    assert not (tmp_path / "speed.json").exists()


def test_a_profile_is_tables_a_record_and_flame_graphs(trained_path, data, tmp_path):
    done = run(
        trained_path, data, "--train", data, "--words", 50, "--steps", 40, "--batch", 2,
        "--repeats", 1, "--output", tmp_path / "profile", command="profile",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "profile.json").read_text(encoding="utf8"))
    assert record["annotation"]["amount"] == 50 and record["training"]["amount"] == 40
    # In 40 steps some samples meet the optimizer; in 2, now and then none did.
    assert record["training"]["rooms"]["optimizer"] > 0
    assert "### Training" in (tmp_path / "profile.md").read_text(encoding="utf8")
    for part in ("annotation", "training"):
        assert (tmp_path / f"profile-{part}.svg").read_text(encoding="utf8").startswith("<svg")
        assert (tmp_path / f"profile-{part}.folded").read_text(encoding="utf8")
