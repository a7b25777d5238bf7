"""Functions for the figures on the page of this experiment."""

from itertools import combinations
from math import sqrt

import numpy

from benchmarks.lookup import Lookup, Values
from spacy_psa.errors import InputError

PAPER: tuple[dict[str, float], ...] = (
    {"full": 91.33, "no_position": 91.15, "absolute": 91.05},
    {"full": 91.33, "no_mask": 91.12, "no_token_bias": 91.07, "no_gaussian": 91.19},
    {"full": 91.33, "only_bottom": 91.27, "only_top": 91.13, "none": 91.01},
    {
        "full": 91.33,
        "attention_bilstm_bilstm": 91.19,
        "bilstm_bilstm_attention": 91.06,
        "attention_only": 90.25,
        "softmax": 88.79,
    },
    {
        "transformer-layers=1-position=absolute": 88.70,
        "transformer-layers=2-position=absolute": 88.79,
        "transformer-layers=3-position=absolute": 88.57,
        "transformer-layers=1-position=psa": 90.69,
        "transformer-layers=2-position=psa": 90.70,
        "transformer-layers=3-position=psa": 90.60,
    },
    {"adatrans-char=char.adatrans": 91.33, "scaled": 91.06},
)
"""The test F1 of the papers, table by table."""
_DEVIATIONS = 2.0
"""Standard errors of a difference from which on it counts."""
_records = Lookup("ablations")


def scores(run: str, part: str = "test") -> Values:
    """The F1 of the seeds of a run of both plans."""
    for plan in ("wei2020", "yan2019"):
        if run in _records.raw(f"{plan}:runs")[0]:
            return _records.run(plan, run, part)
    raise InputError(f"no plan has a run {run!r}")


def noise() -> float:
    """The standard deviation of the test F1 over seeds, pooled over all runs, in points."""
    runs = [run for plan in ("wei2020", "yan2019") for run in _records.raw(f"{plan}:runs")[0]]
    seeds = [scores(run) for run in runs if len(scores(run)) > 1]
    squares = sum((len(each) - 1) * numpy.var(each, ddof=1) for each in seeds)
    return sqrt(squares / sum(len(each) - 1 for each in seeds))


def gained(run: str, other: str) -> float:
    """The points of test F1 between the means of two runs."""
    return float(scores(run).mean() - scores(other).mean())


def counts(run: str, other: str) -> bool:
    """Whether the test F1 of two runs differ by more than the noise of their means."""
    error = noise() * sqrt(sum(1 / len(scores(each)) for each in (run, other)))
    return abs(gained(run, other)) > _DEVIATIONS * error


def agreement() -> tuple[int, int]:
    """Of the pairs in a table that differ by more than noise: those in the papers' order, and all.

    A pair counts once for each table that has both of its runs.
    """
    pairs = [
        (paper[run] - paper[other], gained(run, other))
        for paper in PAPER
        for run, other in combinations(paper, 2)
        if counts(run, other)
    ]
    return sum(theirs * ours > 0 for theirs, ours in pairs), len(pairs)


def minutes() -> float:
    """The median time of a training."""
    seconds = [
        training["seconds"]
        for plan in ("wei2020", "yan2019")
        for training in _records.raw(f"{plan}:runs:*:*")
        if training["seconds"] is not None
    ]
    return float(numpy.median(seconds)) / 60
