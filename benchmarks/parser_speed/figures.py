"""Functions for the figures on the page of this experiment."""

from benchmarks.lookup import Lookup

_records = Lookup("parser_speed")


def rate(part: str, row: str) -> float:
    """The sentences or steps per second of a row in the comparison with SuPar."""
    return float(_records.get(f"beside_supar:{part}:{row}:per_second:median")[0])


def times_supar(part: str, row: str) -> float:
    """How many times as fast as SuPar at the same size a row is."""
    size = (
        row.partition(",")[0].rpartition(" ")[2] if "SuPar" not in row else row.rpartition(" ")[2]
    )
    return rate(part, row) / rate(part, f"SuPar, as large as {size}")
