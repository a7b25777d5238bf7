"""The format of result files: all files are in it, and what is not in it is refused."""

import copy
import hashlib
import json
import sys

import pytest
from thinc.api import Config

from benchmarks.config import write_config
from benchmarks.record import (
    FOLDER,
    NULLABLE,
    explained,
    make_record,
    place_of,
    read_record,
    save_record,
    write_record,
)
from spacy_psa.errors import InputError

FILES = sorted(FOLDER.rglob("*.json"))


def load(name):
    return json.loads((FOLDER / name).read_text(encoding="utf8"))


def test_each_json_file_is_a_record_at_its_place():
    assert [path for path in FILES if place_of(read_record(path)) != path] == []
    assert len(FILES) >= 79


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", 1),
        ("experiment", ""),
        ("kind", "accuracy"),
        ("date", "2026-11-20T11:20:38"),
        ("command", ""),
        ("commit", "HEAD"),
        ("seed", "0"),
        ("data", {"train.spacy": "not a checksum"}),
        ("machine", {"cpu": "AMD EPYC"}),
        ("versions", {"python": "3.11.7"}),
        ("modified", None),
        ("config", None),
        ("note", ""),
        ("results", {}),
    ],
)
def test_a_bad_value_is_refused(key, value, tmp_path):
    record = load("conll2003/results/psa.json")
    assert record[key] != value
    with pytest.raises(InputError, match=f"{key}|note explains"):
        save_record({**record, key: value}, tmp_path / "psa.json")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_and_an_unknown_key_are_refused_by_name(tmp_path):
    record = load("conll2003/results/psa.json")
    del record["seed"]
    with pytest.raises(InputError, match="seed: Field required"):
        save_record({**record}, tmp_path / "psa.json")
    with pytest.raises(InputError, match="hardware: Extra inputs"):
        save_record({**record, "seed": 0, "hardware": {}}, tmp_path / "psa.json")
    assert list(tmp_path.iterdir()) == []


def spoil(record, keys, value):
    found = copy.deepcopy(record)
    place = found["results"]
    for key in keys[:-1]:
        place = place[key]
    assert place[keys[-1]] != value
    place[keys[-1]] = value
    return found


@pytest.mark.parametrize(
    ("keys", "value", "fault"),
    [
        (["dev", 1, "score"], 88.4, "less than or equal to 1"),
        (["best", "score"], 0.5, "not one of the evaluations"),
        (["best"], None, "no best evaluation"),
        (["test"], None, "must all be there, or none"),
    ],
)
def test_results_that_are_not_those_of_a_training_are_refused(keys, value, fault, tmp_path):
    with pytest.raises(InputError, match=fault):
        save_record(spoil(load("conll2003/results/psa.json"), keys, value), tmp_path / "psa.json")


def test_a_note_names_each_key_without_a_value_and_no_other(tmp_path):
    target = tmp_path / "evalb.json"
    record = load("parseval/results/evalb.json")
    null = [key for key in NULLABLE if record[key] is None]
    assert null and sorted(explained(record["note"])) == sorted(null)
    with pytest.raises(InputError, match=r"null are \['date', 'command', 'config'\]"):
        save_record({**record, "note": "Not recorded: date, command."}, target)
    with pytest.raises(InputError, match="note explains"):
        save_record({**record, "note": record["note"] + " Not recorded: seed."}, target)


def test_a_record_at_another_place_than_it_says_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.record.FOLDER", tmp_path)
    path = tmp_path / "conll2003" / "results" / "other.json"
    save_record(load("conll2003/results/psa.json"), path)
    with pytest.raises(InputError, match="the record belongs at"):
        read_record(path)


def test_figures_of_this_process_say_where_they_come_from(tmp_path, monkeypatch, capsys):
    data = tmp_path / "data.spacy"
    data.write_text("words")
    monkeypatch.setattr(sys, "argv", ["measure", "a model", "out.json"])
    write_record(tmp_path / "out.json", "speed", {"seconds": 2}, data=[data], note="Alone.")
    record = read_record(tmp_path / "out.json")
    assert (record["experiment"], record["name"], record["kind"]) == ("speed", "out", "figures")
    assert record["results"] == {"seconds": 2}
    assert record["data"] == {data.as_posix(): hashlib.md5(b"words").hexdigest()}
    assert record["command"].endswith("'a model' out.json")
    assert "Alone." in record["note"] and "Does not apply: seed, config." in record["note"]
    assert record["command"] in capsys.readouterr().out


def test_the_seed_of_a_draw_is_kept(tmp_path):
    write_record(tmp_path / "out.json", "parseval", {"trees": 1}, seed=3)
    record = read_record(tmp_path / "out.json")
    assert record["seed"] == 3 and explained(record["note"])[-1:] == ["config"]


def test_a_training_without_a_seed_says_that_it_was_not_recorded():
    record = load("conll2003/results/psa.json")
    source = {key: record[key] for key in ("data", "machine", "versions")}
    made = make_record(
        "conll2003", "psa", "training", record["results"], source=source, config=record["config"]
    )
    assert made["note"] == "Not recorded: date, command, commit, modified, seed."


def test_the_config_of_a_record_becomes_a_file_again(tmp_path):
    trained = [path for path in FILES if read_record(path)["config"] is not None]
    assert len(trained) > 100
    different = []
    for path in trained[::10]:
        write_config(path, tmp_path / "config.cfg")
        if Config().from_disk(tmp_path / "config.cfg") != read_record(path)["config"]:
            different.append(path.name)
    assert different == []


def test_a_record_without_a_config_has_none_to_write(tmp_path):
    with pytest.raises(InputError, match="has no config"):
        write_config(FOLDER / "speed/results/products.json", tmp_path / "config.cfg")
