"""Functions for the figures on the page of this experiment."""

import numpy

from benchmarks.lookup import Lookup, Values

_records = Lookup("recipes")


def scores(trained: str, part: str) -> Values:
    """The scores of the seeds of a run, "PLAN:RUN", or of joined models."""
    plan, _, run = trained.partition(":")
    return _records.run(plan, run, part) if run else 100 * _records.get(f"{plan}:{part}")


def without_dev(plan: str) -> Values:
    """The test F1 of the same seeds of a plan, trained on the training data only."""
    (trained,) = _records.raw(f"{plan}:runs:best")
    seeds = sorted(trained)
    if plan == "train_dev_chunks":
        scores = [_records.get(f"best_chunks:runs:best:{seed}:test") for seed in seeds]
        return 100 * numpy.concatenate(scores)
    system = {"entities": "no_memory_dropout", "ontonotes": "ontonotes-smoothed"}
    name = system[plan.removeprefix("train_dev_")]
    return _records.test(",".join(f"documents/{name}-{seed}" for seed in seeds))
