"""Times rows in turn, so that a disturbance of the machine affects all of them."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median, quantiles
from typing import Any, NamedTuple, Protocol


class Timing(NamedTuple):
    """One run of a row."""

    amount: float
    """The amount of work: words, steps or loads."""
    seconds: float
    """Wall-clock time."""
    cpu_seconds: float
    """Processor time of all threads.

    It is more than `seconds` with several threads, and less if other processes use the
    processor."""


class Row(Protocol):
    """Something to time, with a name."""

    name: str

    def run(self) -> Timing:
        """Do it once. Preparations come before the clock starts and are not timed."""


@contextmanager
def stopwatch(amount: float) -> Iterator[list[Timing]]:
    """Time the block with this amount of work; afterwards the list contains its timing."""
    timings: list[Timing] = []
    wall, processor = time.perf_counter(), time.process_time()
    yield timings
    timings.append(Timing(amount, time.perf_counter() - wall, time.process_time() - processor))


def alternate(
    rows: Sequence[Row], repeats: int, tell: Callable[[str, int], None] | None = None
) -> dict[str, list[Timing]]:
    """Time rows in turn; every second round in the opposite order. A first round does not count.

    Before each run, `tell` is called with the name of the row and the number of the round.
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
    """Summarize the runs of a row for a JSON file.

    `runs` has `amount`, `seconds` and `cpu_seconds` of each run. The rates are `per_second`, in
    wall-clock time, and `per_cpu_second`, in processor time, each a `spread`.
    """
    return {
        "per_second": spread([t.amount / t.seconds for t in timings]),
        "per_cpu_second": spread([t.amount / t.cpu_seconds for t in timings]),
        "runs": [
            {k: round(float(v), 6) for k, v in timing._asdict().items()} for timing in timings
        ],
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """The `median`, quartiles `lower` and `upper`, `least` and `most`, rounded to 4 digits."""
    lower, _, upper = quantiles(values, method="inclusive") if len(values) > 1 else [values[0]] * 3
    numbers = {
        "median": median(values),
        "lower": lower,
        "upper": upper,
        "least": min(values),
        "most": max(values),
    }
    return {name: float(f"{value:.4g}") for name, value in numbers.items()}


def pin_threads(threads: int) -> None:
    """Limit this process and its child processes to `threads` processors and threads."""
    import torch

    for library in ("OMP", "MKL", "OPENBLAS", "BLIS"):
        os.environ[f"{library}_NUM_THREADS"] = str(threads)
    torch.set_num_threads(threads)
    if hasattr(os, "sched_setaffinity"):  # also works if a library has already read its variable
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
