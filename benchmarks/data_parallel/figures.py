"""What the page of this experiment computes from its records."""

import numpy

from benchmarks.lookup import Lookup

_records = Lookup("data_parallel")


def gain(record: str, how: str = "several") -> float:
    """How many times the sentences of one process two processes train on."""
    one, two = (numpy.median(_records.get(f"{record}:speed:{key}")) for key in ("one", how))
    return float(two / one)
