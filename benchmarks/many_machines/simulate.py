"""Simulate annotation by many workers, with the figures that `measure` took on one machine.

A simulation of events. The driver gives shards to workers one after another, and each costs it
some time. A worker is ready after a start. A shard takes its words, divided by the speed of a core,
times a factor that is drawn from those that were measured; a share of the shards is drawn to be
slow. A worker is killed at a constant rate. Then its shard is given out again, and it starts anew.

First the runs that were measured are simulated, from the seconds of their shards by the clock: this
checks the rules. Then 1, 2 and more workers annotate a collection, from processor time, which is
the clock of a machine that has nothing else to do.

Results (kind "figures"): `measured`, the record that the figures come from; `speed`, words a second
and core; `driver`, seconds of the driver for a shard; `start`, seconds; `check`, for each measured
run `workers`, and `seconds` and `simulated` by the clock; `options`, the arguments of this script;
`collections`, for each number of `words`, `shard_words` and `workers` the `shards`, the `hours`,
the `core_hours` with what was lost, their price as `money`, `lost`, the share of the core hours
beyond those that the words need at that speed (slow shards, killed attempts, starts, waiting),
`kills`, and `driver_busy`, the share of the time that the driver was at work.
"""

import argparse
import heapq
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.record import read_record, write_record
from benchmarks.script import script_parser


@dataclass(frozen=True)
class Cluster:
    """What a cluster of equal workers needs.

    Args:
        workers: the number of workers, one a core.
        start: seconds until a worker is ready, also after it was killed.
        driver: seconds of the driver for each shard it gives out.
        kills: kills for each worker and second.
    """

    workers: int
    start: float
    driver: float
    kills: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """What a simulated run took."""

    seconds: float
    useful: float
    """The seconds of workers that went into shards that were finished."""
    kills: int
    driver_busy: float
    """The seconds of the driver."""


def simulate(
    cluster: Cluster, shards: int, duration: Callable[[], float], draw: random.Random
) -> Outcome:
    """Simulate a run.

    Args:
        cluster: the workers and the driver.
        shards: the number of shards.
        duration: draws the seconds of a shard.
        draw: draws the kills.

    Examples:
        >>> found = simulate(Cluster(2, start=5, driver=0), 4, lambda: 10.0, random.Random(0))
        >>> found.seconds, found.useful
        (25.0, 40.0)
    """
    free = [(cluster.start, worker) for worker in range(cluster.workers)]
    running: list[tuple[float, int, bool]] = []
    left, kills = shards, 0
    now = driver_free = useful = last = 0.0
    while left or running:
        # The next event: a worker that is ready for a shard, or one that ends with its shard.
        if left and free and (not running or free[0][0] <= running[0][0]):
            ready, worker = heapq.heappop(free)
            begin = driver_free = max(ready, driver_free) + cluster.driver
            left -= 1
            length = duration()
            alive = draw.expovariate(cluster.kills) if cluster.kills else float("inf")
            heapq.heappush(running, (begin + min(length, alive), worker, alive >= length))
            useful += length if alive >= length else 0.0
            continue
        now, worker, done = heapq.heappop(running)
        if done:
            last = max(last, now)
            heapq.heappush(free, (now, worker))
        else:
            kills += 1
            left += 1
            heapq.heappush(free, (now + cluster.start, worker))
    dispatched = shards + kills
    return Outcome(last, useful, kills, dispatched * cluster.driver)


def drawn(
    words: float,
    speed: float,
    factors: Sequence[float],
    slow: float,
    times: float,
    draw: random.Random,
) -> Callable[[], float]:
    """Give a function that draws the seconds of a shard.

    Args:
        words: the words of a shard.
        speed: words a second.
        factors: how many times as long as the mean the measured shards took.
        slow: the share of the shards that are slow.
        times: how many times as long these take.
        draw: draws them.
    """

    def duration() -> float:
        factor = draw.choice(factors) * (times if draw.random() < slow else 1.0)
        return words / speed * factor

    return duration


def figures(record: Mapping[str, Any]) -> dict[str, Any]:
    """Speed, driver and start from the record of `measure`.

    The speed is that of the most workers, in processor time. The driver's time for a shard is the
    slope between the two numbers of shards that were there.
    """
    found = record["results"]
    most = found["runs"][max(found["runs"], key=int)]
    shards = most["shards"]
    speed = sum(each["words"] for each in shards) / sum(
        each["processor_seconds"] for each in shards
    )
    rates = [each["words"] / each["processor_seconds"] for each in shards]
    few, many = found["kept"][0], found["kept"][-1]
    driver = (many["driver_processor_seconds"] - few["driver_processor_seconds"]) / (
        many["shards"] - few["shards"]
    )
    return {
        "speed": round(speed, 1),
        "factors": [round(speed / rate, 3) for rate in rates],
        "driver": round(driver, 5),
        "start": max(run["start"] for run in found["runs"].values()),
    }


def check(record: Mapping[str, Any], driver: float) -> list[dict[str, Any]]:
    """Simulate the runs that were measured, from the seconds of their shards by the clock."""
    found = []
    for workers, run in record["results"]["runs"].items():
        seconds = iter([each["seconds"] for each in run["shards"]])
        cluster = Cluster(int(workers), run["start"], driver)
        made = simulate(cluster, len(run["shards"]), lambda s=seconds: next(s), random.Random(0))  # type: ignore[misc]
        found.append(
            {
                "workers": int(workers),
                "seconds": run["seconds"],
                "simulated": round(made.seconds, 3),
            }
        )
    return found


def collection(
    words: float,
    shard_words: float,
    workers: int,
    figure: Mapping[str, Any],
    given: argparse.Namespace,
) -> dict[str, Any]:
    """Simulate the annotation of a collection."""
    draw = random.Random(given.seed)
    shards = max(round(words / shard_words), 1)
    cluster = Cluster(workers, figure["start"], figure["driver"], given.kills / 3600)
    duration = drawn(
        words / shards, figure["speed"], figure["factors"], given.slow, given.times, draw
    )
    found = simulate(cluster, shards, duration, draw)
    core_seconds = found.seconds * workers
    return {
        "words": words,
        "shard_words": shard_words,
        "workers": workers,
        "shards": shards,
        "hours": round(found.seconds / 3600, 4),
        "core_hours": round(core_seconds / 3600, 1),
        "money": round(core_seconds / 3600 * given.price, 2),
        "lost": round(1 - words / figure["speed"] / core_seconds, 4),
        "kills": found.kills,
        "driver_busy": round(found.driver_busy / found.seconds, 4),
    }


def main() -> None:
    options = script_parser(globals())
    options.add_argument("measured", type=Path, metavar="MEASURED.json", help="record of measure")
    options.add_argument("out", type=Path, metavar="OUT.json")
    options.add_argument("--words", type=float, nargs="+", default=[1e9, 1e12])
    options.add_argument("--workers", type=int, nargs="+", default=[1, 2, 1000])
    options.add_argument("--shard-words", type=float, nargs="+", default=[1e5, 1e6])
    options.add_argument("--kills", type=float, default=0.05, help="a worker and hour (0.05)")
    options.add_argument("--slow", type=float, default=0.01, help="share of slow shards (0.01)")
    options.add_argument("--times", type=float, default=5.0, help="how much slower they are (5)")
    options.add_argument("--price", type=float, default=0.04, help="money for a core hour (0.04)")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    record = read_record(given.measured)
    figure = figures(record)
    results = {
        "measured": f"{record['name']}.json",
        "speed": figure["speed"],
        "driver": figure["driver"],
        "start": figure["start"],
        "check": check(record, figure["driver"]),
        "options": {key: getattr(given, key) for key in ("kills", "slow", "times", "price")},
        "collections": [
            collection(words, shard_words, workers, figure, given)
            for words in given.words
            for shard_words in given.shard_words
            for workers in given.workers
        ],
    }
    write_record(given.out, "many_machines", results, data=[given.measured], seed=given.seed)


if __name__ == "__main__":
    main()
