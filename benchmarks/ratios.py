"""Ratios of rows that were timed in turn."""

from collections.abc import Sequence
from statistics import median

from spacy_psa.laboratory.performance.timing import Timing


def faster(row: Sequence[Timing], other: Sequence[Timing]) -> float:
    """How many times as fast as another row a row is: the median over pairs of runs.

    It compares processor time, which other processes hardly change.

    Examples:
        >>> faster([Timing(1, 2.0, 1.0)], [Timing(1, 2.0, 1.5)])
        1.5
    """
    pairs = zip(row, other, strict=True)
    return round(median(theirs.cpu_seconds / own.cpu_seconds for own, theirs in pairs), 3)
