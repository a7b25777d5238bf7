"""Functions for the figures on the page of this experiment."""

from benchmarks.lookup import Lookup

_records = Lookup("reliability")


def cases(row: str) -> float:
    """The cases of a property, by its words, or of all properties."""
    key = "" if row == "all" else f":properties:test_{row.replace(' ', '_')}"
    return float(_records.get(f"text{key}:cases")[0])


def files(formats: str, *outcomes: str) -> int:
    """The number of damaged files of some formats with some outcomes."""
    counts = _records.raw(f"mutations:results:{formats}:outcomes:*")
    return sum(count.get(outcome, 0) for count in counts for outcome in outcomes)
