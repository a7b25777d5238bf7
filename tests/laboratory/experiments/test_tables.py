"""Tables and curves from records alone."""

import csv
import io
import re

import pytest

from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments import tables
from spacy_psa.laboratory.experiments.record import Scored
from spacy_psa.laboratory.experiments.tables import (
    comparison,
    csv_text,
    curve,
    draw,
    markdown,
    rows,
    unfinished,
)
from tests.helpers.experiments import make_record

GOOD = [(2, 2, 2)] * 30 + [(0, 1, 1)] * 10
BAD = [(1, 2, 2)] * 30 + [(0, 1, 1)] * 10


def on_test(counts, path="test.spacy"):
    right, given, gold = (sum(column) for column in zip(*counts))
    scores = {"ents_f": 2 * right / (given + gold)}
    return Scored(path=path, scores=scores, sentences={"ents_f": counts})


def test_a_row_has_mean_and_deviation_of_its_seeds():
    runs = {"a": [make_record(seed=1, counts=[(1, 2, 2)]), make_record(seed=2, counts=[(2, 2, 2)])]}
    (row,) = rows(runs, 200)
    assert (row.seeds, row.test, row.of) == (2, None, "dev")
    assert row.dev.mean == pytest.approx(0.75)
    assert row.dev.deviation == pytest.approx(0.5 / 2**0.5)
    assert markdown([row]).splitlines()[2].startswith("| a | ents_f | 2 | 75.00 ± 35.36 |  |")


def test_the_interval_is_of_test_data_where_all_seeds_have_it():
    data = {"dev.spacy": "0" * 32, "test.spacy": "1" * 32}
    final = [make_record(seed=n, tested=on_test(GOOD), data=data) for n in (1, 2)]
    (row,) = rows({"a": final}, 200)
    assert row.of == "test" and row.interval[0] < row.test.mean < row.interval[1]
    (mixed,) = rows({"a": [final[0], make_record(seed=2)]}, 200)
    assert mixed.of == "dev" and mixed.test is None


def test_trainings_that_are_not_finished_do_not_count_and_are_named():
    failed = make_record("a", 2, state="failed", reason="no memory")
    running = make_record("b", 1, state="running")
    runs = {"a": [make_record("a", 1), failed], "b": [running]}
    assert [row.seeds for row in rows(runs, 200)] == [1, 0]
    assert unfinished(runs) == ["a, seed 2: failed: no memory", "b, seed 1: is not finished"]


def test_csv_has_the_numbers_of_the_rows():
    table = rows({"a": [make_record(seed=n, counts=GOOD) for n in (1, 2)]}, 200)
    (found,) = csv.DictReader(io.StringIO(csv_text(table)))
    assert found["run"] == "a" and found["test_mean"] == "" and found["interval_of"] == "dev"
    assert float(found["dev_mean"]) == table[0].dev.mean
    assert (float(found["low"]), float(found["high"])) == table[0].interval


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"])
def test_csv_has_no_cell_that_a_spreadsheet_computes(name):
    (found,) = csv.DictReader(io.StringIO(csv_text(rows({name: [make_record()]}, 20))))
    assert found["run"] == f"'{name}"


def numbers(text):
    return [float(number) for number in re.findall(r"(?<![A-Za-z])[+-]?\d+\.\d+", text)]


def test_two_runs_are_compared_over_sentences_and_over_seeds():
    runs = {
        "good": [make_record("good", n, GOOD) for n in (1, 2, 3)],
        "bad": [make_record("bad", n, BAD) for n in (1, 2, 3)],
    }
    told = comparison(runs, "good", "bad", 500)
    assert told.startswith("good less bad: +42.86 dev ents_f (3 and 3 seeds)")
    gap, low, high, sentences, seeds = numbers(told)
    assert 0 < low < gap < high and sentences == pytest.approx(1 / 501, abs=1e-4) and seeds == 0.1
    same = comparison(runs, "good", "good", 500)
    assert numbers(same) == [0.0, 0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"run": "c"}, "--compare b: there is no such run; name one of a, c"),
        ({"state": "failed", "reason": "x"}, "none of its trainings is finished"),
        ({"counts": [(1, 1, 1)] * 3}, "they were scored on different data"),
        ({"data": {"dev.spacy": "1" * 32}}, "they were scored on different data"),
        ({"metric": "tag_acc"}, "they have no score in common"),
    ],
)
def test_runs_that_cannot_be_compared_are_one_error(other, reason):
    record = make_record(**{"run": "b", **other})
    with pytest.raises(InputError) as error:
        comparison({"a": [make_record("a")], record.run: [record]}, "a", "b", 200)
    assert reason in str(error.value)


def of(path, data):
    """A record that was scored on this path."""
    record = make_record(run=path, data=data)
    return record.model_copy(update={"dev": record.dev.model_copy(update={"path": path})})


def test_the_data_of_two_runs_are_told_apart_however_their_paths_are_written():
    made = [
        of("a/dev.spacy", {"a/dev.spacy": "0" * 32}),
        of("./b//dev.spacy", {"b/dev.spacy": "1" * 32}),
        of("c/x/../dev.spacy", {"c/x/../dev.spacy": "0" * 32}),
        of("d/dev.spacy", {}),
        of("e/dev.spacy", {"e/dev.spacy2": "0" * 32}),
        of("f", {"f/a.spacy": "0" * 32}),
        of("./d/dev.spacy", {}),
    ]
    runs = {record.run: [record] for record in made}
    a, b, c, d, e, f, g = runs
    for one, other in [(a, b), (a, d), (a, e), (d, e)]:
        with pytest.raises(InputError, match="they were scored on different data"):
            comparison(runs, one, other, 200)
    for one, other in [(a, c), (a, f), (d, g)]:
        assert comparison(runs, one, other, 200)


def test_the_mean_curve_is_at_the_mean_of_the_seeds_epochs(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(tables, "save_figure", lambda figure, path: drawn.append(figure))
    seeds = [make_record(seed=n, scores=(0.0, 0.5, 0.6)) for n in (1, 2)]
    for each in seeds[1].evaluations:
        each.epoch *= 2
    draw({"a": seeds}, tmp_path / "a.png")
    (axes,) = drawn[0].axes
    one, other, mean = (list(line.get_xdata()) for line in axes.lines)
    assert one == [0, 1, 2] and other == [0, 2, 4] and mean == [0, 1.5, 3]


def test_curves_have_fractions_of_epochs():
    record = make_record(scores=(0.0, 0.3, 0.5))
    assert curve(record.evaluations) == ([0.0, 1.0, 2.0], [0.0, 0.3, 0.5])
    assert curve([]) == ([], [])


@pytest.mark.parametrize("name", ["dev.svg", "dev.png"])
def test_a_picture_is_the_same_each_time(tmp_path, name):
    runs = {"psa": [make_record("psa", n, scores=(0.0, 0.1 * n, 0.5)) for n in (1, 2)]}
    for folder in ("one", "two"):
        draw(runs, tmp_path / folder / name)
    first, second = ((tmp_path / folder / name).read_bytes() for folder in ("one", "two"))
    assert first == second and len(first) > 1000


def test_nothing_to_draw_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no training is finished"):
        draw({"a": [make_record(evaluations=[], best=None)]}, tmp_path / "a.png")
    with pytest.raises(InputError, match="is not the name of an image"):
        draw({"a": [make_record()]}, tmp_path / "a.txt")
    assert not list(tmp_path.iterdir())
