"""Functions for the figures on the page of this experiment."""

from typing import Any

from benchmarks.lookup import Lookup

_records = Lookup("memory")
WARM = 300
"""Seconds after which memory is to be flat."""


def resident(stream: str) -> list[float]:
    """The megabytes of all processes of a stream, from `WARM` seconds on."""
    samples: list[dict[str, Any]] = _records.raw(f"{stream}:samples:*")
    return [sum(s["resident"]) / 1e6 for s in samples if s["seconds"] >= WARM]


def growth(stream: str) -> float:
    """The maximum growth of the memory of a stream, in percent."""
    megabytes = resident(stream)
    return 100 * (max(megabytes) / megabytes[0] - 1)


def micros(run: str) -> float:
    """The microseconds for a word."""
    seconds, words = _records.get(f"{run}:seconds"), _records.get(f"{run}:words")
    return float(1e6 * seconds[0] / words[0])
