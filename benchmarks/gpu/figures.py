"""Functions for the figures on the page of this experiment."""

from benchmarks.lookup import Lookup, Values

_records = Lookup("gpu")
_WORDS = {
    "conll2003": 203_621,
    "ontonotes": 1_087_332,
    "parser": 731_677,
    "factored": 731_677,
    "tener": 203_621,
}
"""The words of the training data of each run, by the first part of its name."""


def passes(records: str) -> Values:
    """How often trainings went over their data."""
    steps, words = (_records.get(f"{records}:{key}") for key in ("steps", "words_per_step"))
    return steps * words / [_WORDS[run.partition("_")[0]] for run in _records.raw(f"{records}:run")]


def times_as_fast(what: str) -> list[float]:
    """How many times as fast as a CPU core the GPU is, in each row with both, in order."""
    rows = [row for row in _records.raw("speed:rows:*") if "cpu" in row]
    return sorted(row["gpu"][what] / row["cpu"][what] for row in rows)


def by_mbr(part: str, way: str = "calibrated") -> Values:
    """The points of F1 that `mbr` brings to each model, calibrated or not (`way="mbr"`)."""
    mbr, viterbi = (
        _records.get(f"decoders-ontonotes:models:*:{each}:{part}") for each in (way, "viterbi")
    )
    return 100 * (mbr - viterbi)


def minutes(epochs: int) -> float:
    """The time of so many epochs of TENER at its full size."""
    return (
        float(epochs * _WORDS["tener"] / _records.get("speed:rows:ner/tener.cfg:gpu:words")[0]) / 60
    )


def fewer_steps() -> Values:
    """The steps that each training on OntoNotes made less than planned, in percent."""
    names = "ontonotes_*"
    return 100 * (1 - _records.get(f"{names}:steps") / _records.get(f"{names}:planned_steps"))
