"""Records: written whole, read back the same, and refused if they are of another format."""

import json

import pytest

from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.record import (
    FILE,
    by_run,
    find_records,
    read_record,
    write_record,
)
from tests.helpers.experiments import make_record


def test_a_record_is_read_as_it_was_written(tmp_path):
    record = make_record(reason="Ärger: \n zwei Zeilen", state="failed")
    write_record(record, tmp_path / FILE)
    assert read_record(tmp_path / FILE) == record
    lines = (tmp_path / FILE).read_text(encoding="utf8").splitlines()
    assert len(lines) == len(type(record).model_fields) + 2  # one a key, and the braces


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": "spacy-psa run 2"}, "has the format 'spacy-psa run 2', but this version reads"),
        ({"format": 1}, "has the format 1"),
        ({"state": "sleeping"}, "is damaged (state: "),
        ({"more": 1}, "is damaged (more: "),
        ({"dev": {"path": "a"}}, "is damaged (dev.scores: "),
        ({"dev": None}, "it is finished, but has no scores"),
        (
            {"dev": {"path": "a", "scores": {"ents_f": "abc"}, "sentences": {}}},
            "the score ents_f is not a number",
        ),
    ],
)
def test_another_format_is_one_error(tmp_path, change, reason):
    content = {**make_record().model_dump(mode="json"), **change}
    (tmp_path / FILE).write_text(json.dumps(content), encoding="utf8")
    with pytest.raises(InputError) as error:
        read_record(tmp_path / FILE)
    assert reason in str(error.value) and FILE in str(error.value)


@pytest.mark.parametrize("text", ["", "[1, 2]", "{", "[" * 100_000])
def test_a_file_that_is_no_record_is_one_error(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(InputError, match=f"{FILE}: .*; .*remove"):
        read_record(tmp_path / FILE)


def test_a_record_that_is_not_there_is_one_error(tmp_path):
    with pytest.raises(InputError, match=f"{FILE}: cannot be read .*check the path"):
        read_record(tmp_path / FILE)


def test_records_are_found_below_folders_and_grouped(tmp_path):
    for run, seed in (("b", 2), ("b", 10), ("a", 1)):
        write_record(make_record(run, seed), tmp_path / "one" / run / f"seed-{seed}" / FILE)
    write_record(make_record("a", 1, plan="other"), tmp_path / "two" / "x" / FILE)
    found = find_records([tmp_path / "one", tmp_path / "two", tmp_path / "one"])
    groups = {name: [each.seed for each in records] for name, records in by_run(found).items()}
    assert groups == {"other/a": [1], "plan/a": [1], "b": [2, 10]}


def test_runs_of_a_grid_are_sorted_by_their_numbers(tmp_path):
    runs = ["a-rate=1e-05", "a-rate=0.0005", "a-rate=0.002", "a-window=2", "a-window=10", "b"]
    for run in sorted(runs):
        for seed in (1, 2):
            write_record(make_record(run, seed), tmp_path / run / f"seed-{seed}" / FILE)
    found = find_records([tmp_path])
    assert [(each.run, each.seed) for each in found] == [(run, i) for run in runs for i in (1, 2)]
    assert list(by_run(found)) == runs


def test_two_results_of_one_training_are_an_error(tmp_path):
    for name in ("one", "two"):
        write_record(make_record(), tmp_path / name / FILE)
    with pytest.raises(InputError, match="are two results of run 'a', seed 1"):
        find_records([tmp_path])


@pytest.mark.parametrize(
    "change",
    [{"config": {"training": {"seed": 1, "dropout": 0.5}}}, {"data": {"dev.spacy": "1" * 32}}],
)
def test_what_an_earlier_plan_has_left_is_not_mixed_with_the_results_of_this_one(tmp_path, change):
    for seed in (1, 2):
        config = {"training": {"seed": seed, "dropout": 0.1, "logger": {"output_file": f"{seed}"}}}
        write_record(make_record("a", seed, config=config), tmp_path / "a" / str(seed) / FILE)
    assert len(find_records([tmp_path])) == 2
    write_record(make_record("a", 3, **change), tmp_path / "a" / "3" / FILE)
    with pytest.raises(InputError, match="of the run 'a', but their configs or data differ"):
        find_records([tmp_path])


def test_folders_without_records_are_an_error(tmp_path):
    with pytest.raises(InputError, match=r"has no record\.json in it"):
        find_records([tmp_path])
    with pytest.raises(InputError, match="there is no such folder"):
        find_records([tmp_path / "none"])
