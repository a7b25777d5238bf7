"""The simulation of many workers, against cases whose answer is known."""

import random

import pytest

from benchmarks.many_machines.simulate import Cluster, check, drawn, simulate


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
    from math import exp

    attempts = exp(10 * rate)
    assert found.kills == pytest.approx(20000 * (attempts - 1), rel=0.03)
    assert found.useful == 20000 * 10
    assert found.seconds * 20 == pytest.approx(20000 * (attempts - 1) / rate, rel=0.03)


def test_slow_shards_have_their_share():
    draw = random.Random(0)
    duration = drawn(1000, 100, [0.9, 1.1], 0.1, 5, draw)
    lengths = [duration() for _ in range(20000)]
    assert sum(lengths) / len(lengths) == pytest.approx(10 * 1.4, rel=0.02)
    assert {round(length, 6) for length in lengths} == {9.0, 11.0, 45.0, 55.0}


def test_a_measured_run_is_simulated_from_its_shards():
    shards = [{"seconds": seconds} for seconds in (4, 3, 2, 1)]
    runs = {"1": {"start": 1, "seconds": 11.5}, "2": {"start": 1, "seconds": 6.5}}
    record = {"results": {"runs": {key: {**run, "shards": shards} for key, run in runs.items()}}}
    assert [each["simulated"] for each in check(record, 0.0)] == [11, 6]
