"""Simulate annotation by many workers, with the figures of `measure` from one machine.

A simulation of events. The driver hands shards to workers one after another, and each costs it some
time. A worker is ready after a start. A shard takes the time for its words at the speed of a core,
times a factor that is drawn from the measured ones; some shards are drawn to be slow. Workers are
killed at a constant rate. Then another worker gets the shard, and the killed one starts again.

First, the script checks these rules: it simulates the measured runs from the seconds of their
shards by the clock. Then 1, 2 and more workers annotate a collection, in processor time, which is
the time on a machine without other work.

Results (kind "figures"): `measured`, the record of the measured figures; `speed`, words per second
and core; `driver`, seconds of the driver per shard; `start`, seconds; `check`, for each measured
run `workers`, and `seconds` and `simulated` by the clock; `options`, the arguments of this script;
`collections`, for each number of `words`, `shard_words` and `workers`: the `shards`, the `hours`,
the `core_hours` with all losses, their price as `money`, `lost`, the share of the core hours beyond
the time for the words at that speed (slow shards, killed attempts, starts, waiting), `kills`, and
`driver_busy`, the share of the time in which the driver works.
"""

import heapq
import random
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.record import read_record, write_record
from benchmarks.script import script_parser


@dataclass(frozen=True)
class Cluster:
    """Equal workers with one core each, and the driver.

    `start` is the seconds until a worker is ready, also after a kill, `driver` the seconds of the
    driver per shard, and `kills` the kills per worker and second.
    """

    workers: int
    start: float
    driver: float
    kills: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """A simulated run; `useful` are the seconds of workers for shards that were finished."""

    seconds: float
    useful: float
    kills: int
    driver_busy: float
    """The seconds of the driver."""


def simulate(
    cluster: Cluster, shards: int, duration: Callable[[], float], draw: random.Random
) -> Outcome:
    """Simulate a run.

    Examples:
        >>> run = simulate(Cluster(2, start=5, driver=0), 4, lambda: 10.0, random.Random(0))
        >>> run.seconds, run.useful
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


def figures(record: Mapping[str, Any]) -> dict[str, Any]:
    """Speed, driver and start from the record of `measure`.

    The speed is that of the most workers, in processor time; `factors` are the times of the shards,
    as multiples of the mean. The driver's time per shard is the slope between the two numbers of
    shards whose output existed.
    """
    runs, kept = record["results"]["runs"], record["results"]["kept"]
    shards = runs[max(runs, key=int)]["shards"]
    seconds = [shard["processor_seconds"] for shard in shards]
    speed = sum(shard["words"] for shard in shards) / sum(seconds)
    rates = [shard["words"] / each for shard, each in zip(shards, seconds)]
    few, many = kept[0], kept[-1]
    driver = many["driver_processor_seconds"] - few["driver_processor_seconds"]
    return {
        "speed": round(speed, 1),
        "factors": [round(speed / rate, 3) for rate in rates],
        "driver": round(driver / (many["shards"] - few["shards"]), 5),
        "start": max(run["start"] for run in runs.values()),
    }


def check(record: Mapping[str, Any], driver: float) -> list[dict[str, Any]]:
    """Simulate the measured runs from the seconds of their shards by the clock."""
    rows = []
    for workers, run in record["results"]["runs"].items():
        seconds = iter([shard["seconds"] for shard in run["shards"]])
        cluster = Cluster(int(workers), run["start"], driver)
        made = simulate(cluster, len(run["shards"]), partial(next, seconds), random.Random(0))
        row = {"workers": int(workers), "seconds": run["seconds"]}
        rows.append({**row, "simulated": round(made.seconds, 3)})
    return rows


def collection(
    words: float, shard_words: float, workers: int, figure: Mapping[str, Any], given: Namespace
) -> dict[str, Any]:
    """Simulate the annotation of a collection."""
    draw, speed = random.Random(given.seed), figure["speed"]
    shards = max(round(words / shard_words), 1)
    cluster = Cluster(workers, figure["start"], figure["driver"], given.kills / 3600)

    def duration() -> float:
        factor = draw.choice(figure["factors"])
        factor *= given.times if draw.random() < given.slow else 1.0
        return float(words / shards / speed * factor)

    run = simulate(cluster, shards, duration, draw)
    core_seconds = run.seconds * workers
    return {
        "words": words,
        "shard_words": shard_words,
        "workers": workers,
        "shards": shards,
        "hours": round(run.seconds / 3600, 4),
        "core_hours": round(core_seconds / 3600, 1),
        "money": round(core_seconds / 3600 * given.price, 2),
        "lost": round(1 - words / speed / core_seconds, 4),
        "kills": run.kills,
        "driver_busy": round(run.driver_busy / run.seconds, 4),
    }


def main() -> None:
    options = script_parser(globals())
    options.add_argument("measured", type=Path, metavar="MEASURED.json", help="record of measure")
    options.add_argument("out", type=Path, metavar="OUT.json")
    options.add_argument("--words", type=float, nargs="+", default=[1e9, 1e12])
    options.add_argument("--workers", type=int, nargs="+", default=[1, 2, 1000])
    options.add_argument("--shard-words", type=float, nargs="+", default=[1e5, 1e6])
    options.add_argument("--kills", type=float, default=0.05, help="per worker and hour (0.05)")
    options.add_argument("--slow", type=float, default=0.01, help="share of slow shards (0.01)")
    options.add_argument("--times", type=float, default=5.0, help="how much slower they are (5)")
    options.add_argument("--price", type=float, default=0.04, help="of a core hour (0.04)")
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
