"""Functions for the figures on the page of this experiment."""

import numpy

from benchmarks.lookup import Lookup

_records = Lookup("data_parallel")


def gain(record: str, how: str = "several") -> float:
    """The sentences per second of two processes, as a multiple of those of one."""
    rates = [numpy.median(_records.get(f"{record}:speed:{key}")) for key in (how, "one")]
    return float(rates[0] / rates[1])
