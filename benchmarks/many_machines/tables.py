"""The tables on the page of this experiment, and the numbers in its text."""

from collections.abc import Mapping
from typing import Any

from benchmarks.tables import Records, number, table

TITLE = {1e5: "10^5", 1e6: "10^6", 1e9: "10^9", 1e12: "10^12"}


def _rates(run: Mapping[str, Any]) -> tuple[float, float]:
    """Words a second of a worker, in processor time and by the clock."""
    words = sum(each["words"] for each in run["shards"])
    return tuple(
        words / sum(each[key] for each in run["shards"]) for key in ("processor_seconds", "seconds")
    )


def measured_table(records: Records) -> str:
    found = records["bilstm_crf"]["results"]
    simulated = {each["workers"]: each for each in records["simulation"]["results"]["check"]}
    rows = []
    for workers, run in found["runs"].items():
        processor, clock = _rates(run)
        rows.append(
            [
                workers,
                number(processor),
                number(clock),
                number(processor * found["bytes_in"] / found["words"] / 1e3),
                number(processor * found["bytes_out"] / found["words"] / 1e3),
                number(run["start"]),
                number(run["seconds"]),
                number(simulated[int(workers)]["simulated"]),
                f"{run['load']:.1f}",
            ]
        )
    header = [
        "workers",
        "words a second of processor time and worker",
        "by the clock",
        "kB/s read a core",
        "kB/s written a core",
        "start, s",
        "whole run, s",
        "simulated, s",
        "processes that wanted a core",
    ]
    return table(header, rows)


def driver_table(records: Records) -> str:
    rows = [
        [
            f"{each['shards']:,}",
            number(each["driver_processor_seconds"]),
            number(each["seconds"]),
            number(1e3 * each["seconds"] / each["shards"]),
        ]
        for each in records["bilstm_crf"]["results"]["kept"]
    ]
    header = [
        "shards",
        "driver, s of processor time",
        "first to last report, s by the clock",
        "ms a shard by the clock",
    ]
    return table(header, rows)


def plan_table(records: Records) -> str:
    rows = [
        [
            TITLE[each["words"]],
            f"{each['workers']:,}",
            TITLE[each["shard_words"]],
            number(each["hours"]),
            number(each["core_hours"]),
            number(each["money"]),
            f"{100 * each['lost']:.1f}",
            f"{each['kills']:,}",
            f"{100 * each['driver_busy']:.1f}",
        ]
        for each in records["simulation"]["results"]["collections"]
    ]
    header = [
        "words",
        "cores",
        "words a shard",
        "hours",
        "core hours",
        "money",
        "lost, %",
        "kills",
        "driver busy, %",
    ]
    return table(header, rows)


TABLES = {"measured": measured_table, "driver": driver_table, "plan": plan_table}


def _largest(records: Records) -> Mapping[str, Any]:
    found: list[dict[str, Any]] = records["simulation"]["results"]["collections"]
    return found[-1]


def headline(records: Records) -> str:
    plan = _largest(records)
    return (
        f"{number(records['simulation']['results']['speed'])} words a second and core; simulated, "
        f"{TITLE[plan['words']]} words take {plan['workers']:,} cores {number(plan['hours'])} hours"
    )


def claims(records: Records) -> list[str]:
    found = records["simulation"]["results"]
    options = found["options"]
    return [
        f"{number(found['speed'])} words a second of processor time",
        f"{1e3 * found['driver']:.1f} ms of the driver",
        f"10^9 words are {1e9 / found['speed'] / 1000:.0f} s of work for 1,000 cores",
        f"{number(found['start'])} s to start",
        f"{100 * options['slow']:.0f}% of the shards take {options['times']:.0f} times as long",
        f"killed {options['kills']} times an hour",
        f"a core costs {options['price']} an hour",
    ]
