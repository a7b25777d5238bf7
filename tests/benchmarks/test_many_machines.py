"""The simulation of many workers, against cases whose answer is known."""

import json
import random
from argparse import Namespace
from math import exp

import pytest
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from benchmarks.many_machines.measure import write_shards
from benchmarks.many_machines.simulate import Cluster, check, collection, figures, simulate


def run(cluster, shards, seconds=10.0):
    return simulate(cluster, shards, lambda: seconds, random.Random(0))


@pytest.mark.parametrize(
    ("workers", "shards", "seconds"), [(1, 4, 43), (2, 4, 23), (2, 5, 33), (1000, 1000, 13)]
)
def test_shards_of_equal_length_take_turns(workers, shards, seconds):
    found = run(Cluster(workers, start=3, driver=0), shards)
    assert found.seconds == pytest.approx(seconds)
    assert found.useful == 10 * shards and found.kills == 0


def test_a_driver_that_is_too_slow_sets_the_pace():
    found = run(Cluster(1000, start=0, driver=1), 5000)
    assert found.seconds == pytest.approx(5000 + 10)
    assert found.driver_busy == pytest.approx(5000)


def test_kills_cost_what_theory_says():
    # An attempt of 10 s survives with probability exp(-10 rate); the shard needs 1 / that attempts.
    rate = 0.05
    found = run(Cluster(20, start=0, driver=0, kills=rate), 20000)
    attempts = exp(10 * rate)
    assert found.kills == pytest.approx(20000 * (attempts - 1), rel=0.03)
    assert found.useful == 20000 * 10
    assert found.seconds * 20 == pytest.approx(20000 * (attempts - 1) / rate, rel=0.03)


def test_slow_shards_have_their_share():
    figure = {"speed": 100, "factors": [0.9, 1.1], "start": 0, "driver": 0}
    given = Namespace(seed=0, kills=0, slow=0.1, times=5, price=1)
    (seconds,) = {collection(1000, 1000, 1, figure, given)["hours"] * 3600}
    assert any(seconds == pytest.approx(each, abs=0.2) for each in (9, 11, 45, 55))
    found = collection(2e7, 1000, 1, figure, given)
    assert found["core_hours"] == pytest.approx(20000 * 10 * 1.4 / 3600, rel=0.02)
    assert found["lost"] == pytest.approx(1 - 1 / 1.4, abs=0.02)


def test_a_measured_run_is_simulated_from_its_shards():
    shards = [{"seconds": seconds} for seconds in (4, 3, 2, 1)]
    runs = {"1": {"start": 1, "seconds": 11.5}, "2": {"start": 1, "seconds": 6.5}}
    record = {"results": {"runs": {key: {**run, "shards": shards} for key, run in runs.items()}}}
    assert [each["simulated"] for each in check(record, 0.0)] == [11, 6]


def test_speed_is_that_of_processor_time_and_the_driver_is_a_slope():
    shards = [
        {"words": 300, "seconds": 9, "processor_seconds": 2},
        {"words": 100, "seconds": 9, "processor_seconds": 2},
    ]
    kept = [
        {"shards": 100, "driver_processor_seconds": 3.0},
        {"shards": 1100, "driver_processor_seconds": 8.0},
    ]
    runs = {"1": {"start": 7, "shards": []}, "2": {"start": 5, "shards": shards}}
    assert figures({"results": {"runs": runs, "kept": kept}}) == {
        "speed": 100.0,
        "factors": [0.667, 2.0],
        "driver": 0.005,
        "start": 7,
    }


def test_every_document_is_in_one_shard(tmp_path):
    vocab = Vocab()
    docs = [Doc(vocab, words=[str(number)]) for number in range(10)]
    DocBin(docs=docs).to_disk(tmp_path / "a.spacy")
    write_shards([tmp_path / "a.spacy"] * 2, tmp_path / "in", 3)
    rows = [
        json.loads(line)
        for path in sorted((tmp_path / "in").iterdir())
        for line in path.read_text().splitlines()
    ]
    assert sorted(row["id"] for row in rows) == list(range(20))
    assert all(row["text"].strip() == str(row["id"] % 10) for row in rows)
