"""Functions for the figures on the page of this experiment."""

import numpy

from benchmarks.four_tests.score import TESTS
from benchmarks.lookup import Lookup, Values
from spacy_psa.scoring.statistics import Table, probability_better

_records = Lookup("four_tests")


def f1(names: str, test: str) -> Values:
    """The F1 of each seed of a system."""
    return 100 * _records.get(f"{names}:f1:{test}")


def better(names: str, others: str) -> tuple[float, ...]:
    """The probability that a system is better than another one, on each test.

    Two decoders of the same models are compared model by model.
    """
    ours, theirs = (
        [record["results"].get("model", record["command"]) for record in _records.records(each)]
        for each in (names, others)
    )
    return tuple(
        probability_better(_table(names, t), _table(others, t), same_models=ours == theirs)
        for t in TESTS
    )


def _table(names: str, test: str) -> Table:
    seeds = _records.raw(f"{names}:documents:{test}")
    return numpy.array([[row.split() for row in rows] for rows in seeds], dtype=float)
