"""How sure a score is: by its sentences (bootstrap, permutation) and by the seeds.

A score is F1 = 2 right / (predicted + gold) of units that are counted by sentence, and the mean of
it over seeds. All draws have a fixed seed.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb

import numpy
from numpy.typing import NDArray

Table = NDArray[numpy.float64]
"""(seeds, sentences, 3): right, predicted and gold units."""

LEVEL = 0.95
RESAMPLES = 10_000
BLOCK = 2**22
"""The most numbers that are drawn at once."""
MOST_SPLITS = 100_000
"""Up to here all splits of the seeds are tried; beyond, as many are drawn."""


def f1(table: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """F1 of counts whose last axis is right, predicted and gold; 0 where there is no unit."""
    units = table[..., 1] + table[..., 2]
    return numpy.divide(2 * table[..., 0], units, out=numpy.zeros_like(units), where=units > 0)


def mean_f1(table: Table) -> float:
    """The mean over seeds of F1 over all sentences."""
    return float(f1(table.sum(1)).mean())


def bootstrap_interval(table: Table, resamples: int = RESAMPLES) -> tuple[float, float]:
    """Return the 95% percentile bootstrap interval of `mean_f1` over sentences."""
    return interval(_resampled(table, resamples))


def paired_interval(ours: Table, theirs: Table, resamples: int = RESAMPLES) -> tuple[float, float]:
    """Return the 95% bootstrap interval of the difference of two `mean_f1`, `ours` less `theirs`.

    The two are of the same sentences, and may have other numbers of seeds. Each draw is of the same
    sentences for both.
    """
    # The same seed draws the same sentences.
    return interval(_resampled(ours, resamples) - _resampled(theirs, resamples))


def probability_better(
    ours: Table, theirs: Table, resamples: int = RESAMPLES, *, same_models: bool = False
) -> float:
    """Return the share of bootstrap draws in which our `mean_f1` is above theirs; ties count half.

    A draw is of the same sentences, or documents, for both, and of the seeds of each, all with
    replacement.

    Args:
        same_models: whether both are scores of the same models, such as with two decoders. Then
            the drawn seeds are the same for both.
    """
    means: list[NDArray[numpy.float64]] = []
    generator = numpy.random.default_rng(1)
    for table in (ours, theirs):
        scores = f1(resampled_sums(table, resamples))  # the same seed draws the same sentences
        if not (same_models and means):
            drawn = generator.integers(scores.shape[1], size=scores.shape)
        means.append(numpy.take_along_axis(scores, drawn, 1).mean(1))
    return share_above(*means)


def share_above(ours: NDArray[numpy.float64], theirs: NDArray[numpy.float64]) -> float:
    """Return the share of draws in which ours is above theirs; ties count half."""
    return float((numpy.sign((ours - theirs).round(12)).mean() + 1) / 2)


def sentence_p_value(ours: Table, theirs: Table, resamples: int = RESAMPLES) -> float:
    """Return the p-value of a paired permutation test over sentences, two-sided.

    The statistic is the difference in F1 of the counts that are averaged over seeds. Under the
    null hypothesis the two systems may be exchanged in each sentence. Draws are counted with the
    observed one, so the smallest p-value is 1 / (resamples + 1) (Phipson and Smyth 2010).
    """
    a, b = ours.mean(0), theirs.mean(0)
    both, half = (a + b).sum(0), (a - b) / 2

    def gap(shift: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
        return f1(both / 2 + shift) - f1(both / 2 - shift)

    observed = abs(float(gap(half.sum(0))))
    generator, extreme = numpy.random.default_rng(0), 0
    for size in _blocks(resamples, len(a)):
        signs = generator.integers(0, 2, (size, len(a)), dtype=numpy.int8) * 2.0 - 1.0
        extreme += int((numpy.abs(gap(signs @ half)) >= observed - 1e-12).sum())
    return (extreme + 1) / (resamples + 1)


def seed_p_value(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Return the p-value of a permutation test over the scores of seeds, two-sided.

    Under the null hypothesis all scores come from one distribution, so that any split of them is
    as likely. All splits are tried, or 100,000 drawn ones if there are more. With 3 seeds each the
    smallest p-value is 0.1.

    It is None if either system has fewer than 2 seeds.
    """
    if min(len(ours), len(theirs)) < 2:
        return None
    scores = numpy.array([*ours, *theirs])
    count, size = len(scores), len(ours)
    if comb(count, size) <= MOST_SPLITS:
        places = numpy.array(list(combinations(range(count), size)))
    else:
        generator = numpy.random.default_rng(0)
        drawn = generator.permuted(numpy.tile(numpy.arange(count), (MOST_SPLITS, 1)), axis=1)
        places = numpy.concatenate([numpy.arange(size)[None], drawn[:, :size]])
    sums = scores[places].sum(1)
    gaps = numpy.abs(sums / size - (scores.sum() - sums) / (count - size))
    observed = abs(numpy.mean(ours) - numpy.mean(theirs))
    return float((gaps >= observed - 1e-12).mean())


def resampled_sums(table: Table, resamples: int = RESAMPLES) -> NDArray[numpy.float64]:
    """Sum the counts of sentences that are drawn with replacement: (resamples, seeds, 3).

    Each draw is of the same sentences for all along the first axis of `table`.
    """
    drawn = draws(table.shape[1], resamples)
    return numpy.concatenate(
        [numpy.einsum("rn,snk->rsk", each, table, optimize=True) for each in drawn]
    )


def draws(units: int, resamples: int = RESAMPLES) -> Iterator[NDArray[numpy.int64]]:
    """Draw sentences or documents with replacement; the same draws for the same arguments.

    Yields blocks (B, units) of draws: how often each unit is drawn.
    """
    generator = numpy.random.default_rng(0)
    for size in _blocks(resamples, units):
        yield generator.multinomial(units, numpy.full(units, 1 / units), size)


def interval(values: NDArray[numpy.float64]) -> tuple[float, float]:
    """Return the 95% percentile interval of draws."""
    low, high = numpy.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _resampled(table: Table, resamples: int) -> NDArray[numpy.float64]:
    """(resamples,) `mean_f1` of sentences that are drawn with replacement."""
    return f1(resampled_sums(table, resamples)).mean(1)


def _blocks(resamples: int, sentences: int) -> Iterator[int]:
    most = max(1, BLOCK // sentences)
    for begin in range(0, resamples, most):
        yield min(most, resamples - begin)
