"""Rows that are timed in turn, so that what disturbs the machine disturbs all of them."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median, quantiles
from typing import Any, NamedTuple, Protocol


class Timing(NamedTuple):
    """One run of a row."""

    amount: float
    """What was done: words, steps, loads."""
    seconds: float
    """By the clock on the wall."""
    cpu_seconds: float
    """Of the processor, all threads: more than `seconds` with several threads, less where
    other processes took the processor away."""


class Row(Protocol):
    """Something to time, with a name."""

    name: str

    def run(self) -> Timing:
        """Do it once. What is not to be timed happens before the clock starts."""


@contextmanager
def stopwatch(amount: float) -> Iterator[list[Timing]]:
    """Times the block; the list holds its timing afterwards."""
    found: list[Timing] = []
    wall, processor = time.perf_counter(), time.process_time()
    yield found
    found.append(Timing(amount, time.perf_counter() - wall, time.process_time() - processor))


def alternate(
    rows: Sequence[Row], repeats: int, tell: Callable[[str, int], None] | None = None
) -> dict[str, list[Timing]]:
    """The timings of each row, by name: `repeats` rounds, every second one backwards, after
    one run of each that does not count.

    tell: called with a row's name and the number of the round before each run.
    """
    timings: dict[str, list[Timing]] = {row.name: [] for row in rows}
    for number in range(repeats + 1):
        for row in rows if number % 2 else list(reversed(rows)):
            if tell is not None:
                tell(row.name, number)
            timing = row.run()
            if number:
                timings[row.name].append(timing)
    return timings


def summary(timings: Sequence[Timing]) -> dict[str, Any]:
    """What a JSON file keeps of a row: each run, and the spread of its rates.

    Keys: `runs` (`amount`, `seconds`, `cpu_seconds` each), `per_second` by the wall's clock
    and `per_cpu_second` of the processor, both `median`, `lower` and `upper` quartile,
    `least` and `most`."""
    return {
        "per_second": spread([t.amount / t.seconds for t in timings]),
        "per_cpu_second": spread([t.amount / t.cpu_seconds for t in timings]),
        "runs": [
            {k: round(float(v), 6) for k, v in timing._asdict().items()} for timing in timings
        ],
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """The median, the quartiles and the ends of some numbers, to 4 digits."""
    lower, _, upper = quantiles(values, method="inclusive") if len(values) > 1 else [values[0]] * 3
    found = {
        "median": median(values),
        "lower": lower,
        "upper": upper,
        "least": min(values),
        "most": max(values),
    }
    return {name: float(f"{value:.4g}") for name, value in found.items()}


def pin_threads(threads: int) -> None:
    """Keep this process, and those that it starts, to `threads` processors and threads."""
    import torch

    for library in ("OMP", "MKL", "OPENBLAS", "BLIS"):
        os.environ[f"{library}_NUM_THREADS"] = str(threads)
    torch.set_num_threads(threads)
    if hasattr(os, "sched_setaffinity"):  # also where a library read its variable already
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
