"""Functions for the figures on the page of this experiment."""

from benchmarks.lookup import Lookup

_records = Lookup("growth")


def rate(axis: str, row: str, point: int) -> float:
    """The words of a row at a point of an axis, for a second of processor time."""
    return float(_records.get(f"{axis}:rows:{row}:{point}:per_cpu_second:median")[0])


def by_the_clock(axis: str, row: str, point: int) -> float:
    """The words of a row at a point of an axis, for a second of the clock."""
    return float(_records.get(f"{axis}:rows:{row}:{point}:per_second:median")[0])


def at(axis: str, row: str, point: int) -> tuple[float, float]:
    """The words a second of a row at a point of an axis, and the megabytes."""
    return rate(axis, row, point), megabytes(axis, row, point)


def megabytes(axis: str, row: str, point: int) -> float:
    """The peak of memory of a row at a point of an axis, less that of the open pipeline."""
    return float(_records.get(f"{axis}:rows:{row}:{point}:bytes")[0] / 1e6)


def dollars(axis: str, row: str, point: int) -> float:
    """The dollars for 10⁹ words, at the price of a core-hour that the record names."""
    return float(_records.get(f"{axis}:price")[0] * 1e9 / 3600 / rate(axis, row, point))
