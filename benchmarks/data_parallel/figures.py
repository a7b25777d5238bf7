"""Functions for the figures on the page of this experiment."""

from benchmarks.lookup import Lookup

_records = Lookup("data_parallel")


def gain(record: str, how: str = "several") -> float:
    """The sentences per second of two processes, as a multiple of those of one."""
    return _records.ratio(f"{record}:speed", how, "one")
