"""Functions for the figures on the page of this experiment.

A sample is "NAMES:samples:SENTENCES", an address of its seeds.
"""

from typing import Any

import numpy

from benchmarks.lookup import Lookup, Values

_records = Lookup("small_data")
_CORPORA = ("wnut17", "wikigold", "conll2003")


def samples(corpus: str, vectors: bool) -> list[str]:
    """All samples of a corpus."""
    names = f"{corpus}{'-vectors' * vectors}-[0-9]"
    sizes = {size for record in _records.raw(f"{names}:samples") for size in record}
    return [f"{names}:samples:{size}" for size in sorted(sizes)]


def scores(sample: str, system: str, part: str) -> Values:
    """The F1 of a system on a sample; of the seeds that it was trained with."""
    rows = [row for row in _records.raw(sample) if system in row]
    return numpy.array([100 * row[system][part]["ents_f"] for row in rows])


def with_cost(sample: str, part: str) -> Values:
    """The F1 of our config with a cost of missed entities."""
    return scores(sample, "ours" if _has(sample, "no_cost") else "cost", part)


def without_cost(sample: str, part: str) -> Values:
    """The F1 of our config without a cost of missed entities."""
    return scores(sample, "no_cost" if _has(sample, "no_cost") else "ours", part)


def cost_effect(corpus: str, part: str) -> list[float]:
    """The change of each mean F1 of a corpus by the cost, in points, from least to greatest."""
    both = [
        sample
        for vectors in (False, True)
        for sample in samples(corpus, vectors)
        if _has(sample, "cost") or _has(sample, "no_cost")
    ]
    return sorted(float(with_cost(s, part).mean() - without_cost(s, part).mean()) for s in both)


def wins(system: str) -> tuple[int, int]:
    """On how many samples our test F1 is at or above that of a system, and of how many."""
    rows = [row for sample in _all() for row in _records.raw(sample) if system in row]
    f1 = [(row["ours"]["test"]["ents_f"], row[system]["test"]["ents_f"]) for row in rows]
    return sum(ours >= theirs for ours, theirs in f1), len(f1)


def mean_wins(system: str) -> tuple[int, int]:
    """The same, for the means over the seeds."""
    pairs = [[scores(sample, each, "test") for each in ("ours", system)] for sample in _all()]
    means = [(ours.mean(), theirs.mean()) for ours, theirs in pairs if len(theirs)]
    return sum(ours >= theirs for ours, theirs in means), len(means)


def steps() -> list[float]:
    """The steps of the accuracy config in percent of those of efficiency, in order."""
    rows = [row for sample in _all() for row in _records.raw(sample) if "accuracy" in row]
    return sorted(100 * row["accuracy"]["steps"] / row["efficiency"]["steps"] for row in rows)


def _all() -> list[str]:
    return [s for corpus in _CORPORA for vectors in (False, True) for s in samples(corpus, vectors)]


def _has(sample: str, system: str) -> bool:
    rows: list[dict[str, Any]] = _records.raw(sample)
    return all(system in row for row in rows)
