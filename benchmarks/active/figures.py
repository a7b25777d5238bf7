"""Functions for the figures on the page of this experiment."""

from benchmarks.lookup import Lookup

_records = Lookup("active")


def within_a_point(strategy: str, number: int) -> bool:
    """Whether a round is the first whose dev F1 is at most a point below that of all sentences."""
    aim = _dev_f1("all", 0) - 0.01
    return _dev_f1(strategy, number) >= aim > _dev_f1(strategy, number - 1)


def _dev_f1(strategy: str, number: int) -> float:
    return float(_records.get(f"{strategy}-*:rounds:{number}:crf_ner:dev:ents_f").mean())
