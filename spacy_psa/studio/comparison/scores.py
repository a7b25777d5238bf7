"""Precision, recall and F1 of models, overall and by type, with intervals and significance."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from spacy_psa.scoring.sentence_counts import Count
from spacy_psa.scoring.statistics import (
    f1,
    interval,
    resampled_sums,
    sentence_p_value,
)
from spacy_psa.studio.comparison.units import Unit

Counts = NDArray[numpy.float64]


class Scores(NamedTuple):
    """The scores of models for all units, or for those of one type.

    Examples:
        >>> table = score_table([[(0, 1, "PER")]], [[[(0, 1, "PER")]], [[]]])
        >>> [(row.label, row.models[1]["r"]["value"]) for row in table]
        [(None, 0.0), ('PER', 0.0)]
        >>> table[0].difference["value"]
        1.0
    """

    label: str | None
    """The type; None for all."""
    gold: int
    """The number of gold units."""
    models: list[dict[str, Any]]
    """For each model `p`, `r` and `f`, each with `value` and `interval`, and its counts."""
    difference: dict[str, Any] | None
    """F1 of the first model less that of the second, with its interval; None for one model."""


def count(gold: Iterable[Unit], found: Iterable[Unit]) -> Count:
    """Count the units of a sentence.

    Examples:
        >>> count([(0, 1, "PER")], [(0, 1, "LOC"), (2, 3, "LOC")])
        Count(right=0, predicted=2, gold=1)
    """
    a, b = set(gold), set(found)
    return Count(len(a & b), len(b), len(a))


def score_table(
    gold: Sequence[Sequence[Unit]], models: Sequence[Sequence[Sequence[Unit]]]
) -> list[Scores]:
    """Score models.

    Intervals are 95% bootstrap intervals over sentences. All models and types share the draws, so
    that differences are paired.

    Args:
        gold: the gold units of each sentence.
        models: the predicted units of each sentence, by model.

    Returns:
        The row of all units, and one for each type in order.
    """
    every = [gold, *models]
    labels = sorted({unit[2] for sentences in every for units in sentences for unit in units})
    place = {label: i for i, label in enumerate(labels, 1)}
    # (models, labels, sentences, counts); label 0 is all of them.
    table = numpy.zeros((len(models), len(place) + 1, len(gold), 3))
    for m, found in enumerate(models):
        for i, (wanted, given) in enumerate(zip(gold, found, strict=True)):
            for kind, units in enumerate(({*wanted} & {*given}, {*given}, {*wanted})):
                for unit in units:
                    table[m, [0, place[unit[2]]], i, kind] += 1
    drawn = _drawn(table)
    sums = table.sum(2)
    return [_row(label, sums[:, i], drawn[:, :, i]) for i, label in enumerate([None, *labels])]


def significance(
    gold: Sequence[Sequence[Unit]], models: Sequence[Sequence[Sequence[Unit]]]
) -> float | None:
    """Compute the p-value of the difference in F1 of two models; None for one model.

    This is a paired permutation test over sentences, two-sided.
    """
    if len(models) != 2:
        return None
    one, other = (
        numpy.array([[count(a, b) for a, b in zip(gold, found)]], dtype=float) for found in models
    )
    return sentence_p_value(one, other)


def _drawn(table: Counts) -> Counts:
    """(resamples, models, labels, 3) sums of drawn sentences."""
    m, labels, sentences, _ = table.shape
    return resampled_sums(table.reshape(m * labels, sentences, 3)).reshape(-1, m, labels, 3)


def _row(label: str | None, sums: Counts, drawn: Counts) -> Scores:
    values, draws = _prf(sums), _prf(drawn)
    models = [
        {
            **{
                name: {"value": float(values[name][m]), "interval": interval(draws[name][:, m])}
                for name in values
            },
            "counts": sums[m].astype(int).tolist(),
        }
        for m in range(len(sums))
    ]
    difference = None
    if len(sums) == 2:
        difference = {
            "value": float(values["f"][0] - values["f"][1]),
            "interval": interval(draws["f"][:, 0] - draws["f"][:, 1]),
        }
    return Scores(label, int(sums[0, 2]), models, difference)


def _prf(counts: Counts) -> dict[str, NDArray[numpy.float64]]:
    """Precision, recall and F1 of counts; 0 where there is no unit."""
    right = counts[..., 0]
    return {
        name: numpy.divide(right, whole, out=numpy.zeros_like(right), where=whole > 0)
        for name, whole in (("p", counts[..., 1]), ("r", counts[..., 2]))
    } | {"f": f1(counts)}
