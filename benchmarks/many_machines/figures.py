"""Functions for the figures on the page of this experiment."""

from benchmarks.lookup import Lookup

_records = Lookup("many_machines")


def words_per_second(workers: str, clock: str = "processor_seconds") -> float:
    """Words a second of a worker, in processor time or by the clock ("seconds")."""
    shards = f"bilstm_crf:runs:{workers}:shards:*"
    words, seconds = _records.get(f"{shards}:words"), _records.get(f"{shards}:{clock}")
    return float(words.sum() / seconds.sum())


def kilobytes(workers: str, direction: str) -> float:
    """The kB/s that a core reads ("in") or writes ("out")."""
    size, words = (_records.get(f"bilstm_crf:{key}")[0] for key in (f"bytes_{direction}", "words"))
    return float(words_per_second(workers) * size / words / 1e3)
