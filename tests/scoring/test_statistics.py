"""Intervals and p-values against enumeration, and what must hold for any counts."""

from itertools import product

import numpy
import pytest

from spacy_psa.scoring.statistics import (
    bootstrap_interval,
    f1,
    mean_f1,
    paired_interval,
    probability_better,
    seed_p_value,
    sentence_p_value,
)


def random_table(seed, seeds=3, sentences=40):
    generator = numpy.random.default_rng(seed)
    gold = generator.integers(0, 5, sentences)
    right = generator.binomial(gold, 0.7, (seeds, sentences))
    given = right + generator.integers(0, 3, (seeds, sentences))
    return numpy.stack([right, given, numpy.tile(gold, (seeds, 1))], axis=-1).astype(float)


def plain_f1(counts):
    right, given, gold = counts.sum(0)
    precision, recall = right / given, right / gold
    return 2 * precision * recall / (precision + recall)


def test_f1_is_the_harmonic_mean_of_precision_and_recall():
    table = random_table(0)
    expected = numpy.mean([plain_f1(counts) for counts in table])
    assert mean_f1(table) == pytest.approx(expected)
    assert f1(numpy.zeros(3)) == 0.0


def test_the_interval_is_that_of_all_resamples_of_few_sentences():
    table = numpy.add(random_table(1, seeds=2, sentences=4), [0.0, 1.0, 1.0])
    draws = [mean_f1(table[:, list(places)]) for places in product(range(4), repeat=4)]
    exact = numpy.quantile(draws, [0.025, 0.975])
    assert bootstrap_interval(table, 40_000) == pytest.approx(tuple(exact), abs=0.01)


def test_an_interval_holds_the_score_and_narrows_with_more_sentences():
    few, many = random_table(2, sentences=50), random_table(2, sentences=5000)
    widths = []
    for table in (few, many):
        low, high = bootstrap_interval(table, 1000)
        assert low < mean_f1(table) < high
        widths.append(high - low)
    assert widths[1] < widths[0] / 5


def test_paired_resamples_take_the_same_sentences_for_both():
    table = random_table(3)
    assert paired_interval(table, table, 500) == (0.0, 0.0)
    assert paired_interval(table, table[[2, 0, 1]], 500) == pytest.approx((0.0, 0.0))


def test_the_probability_is_that_of_all_draws_of_sentences_and_seeds():
    one = numpy.add(random_table(6, seeds=2, sentences=3), [0.0, 1.0, 1.0])
    other = numpy.add(random_table(7, seeds=2, sentences=3), [0.0, 1.0, 1.0])
    wins = []
    for places in product(range(3), repeat=3):
        first, second = (f1(table[:, list(places)].sum(1)) for table in (one, other))
        for i, j, k, n in product(range(2), repeat=4):
            gap = first[[i, j]].mean() - second[[k, n]].mean()
            wins.append((numpy.sign(round(gap, 9)) + 1) / 2)
    assert 0.05 < numpy.mean(wins) < 0.95
    assert probability_better(one, other, 40_000) == pytest.approx(numpy.mean(wins), abs=0.01)
    assert probability_better(other, one, 40_000) == pytest.approx(1 - numpy.mean(wins), abs=0.01)
    assert probability_better(one[:1], one[:1]) == 0.5


def test_scores_of_the_same_models_are_compared_model_by_model():
    one = numpy.add(random_table(6, seeds=2, sentences=3), [0.0, 1.0, 1.0])
    other = numpy.add(one, [0.0, 1.0, 0.0])  # each model predicts more, and nothing more is right
    other[0, ..., 2] += 9.0  # one seed is far worse
    one[0, ..., 2] += 9.0
    assert probability_better(one, other, same_models=True) > 0.95
    assert probability_better(one, other) < 0.95


def test_the_p_value_over_sentences_is_that_of_all_exchanges():
    one, other = random_table(4, sentences=8), random_table(5, seeds=2, sentences=8)
    other[..., 2] = one[0, :, 2]  # the gold units of both are the same
    a, b = one.mean(0), other.mean(0)
    observed = abs(float(f1(a.sum(0)) - f1(b.sum(0))))
    extreme = 0
    for exchange in product([False, True], repeat=8):
        chosen = numpy.array(exchange)[:, None]
        first, second = numpy.where(chosen, b, a), numpy.where(chosen, a, b)
        gap = abs(float(f1(first.sum(0)) - f1(second.sum(0))))
        extreme += gap >= observed - 1e-12
    assert sentence_p_value(one, other, 40_000) == pytest.approx(extreme / 2**8, abs=0.01)


def test_equal_systems_are_not_different_and_far_ones_are():
    table = random_table(6, sentences=300)
    assert sentence_p_value(table, table, 500) == 1.0
    worse = table.copy()
    worse[..., 0] = 0
    assert sentence_p_value(table, worse, 500) == pytest.approx(1 / 501)
    assert sentence_p_value(worse, table, 500) == pytest.approx(1 / 501)


def test_the_p_value_over_seeds_counts_all_splits():
    assert seed_p_value([3.0, 4.0, 5.0], [0.0, 1.0, 2.0]) == pytest.approx(2 / 20)
    assert seed_p_value([0.0, 1.0, 2.0], [3.0, 4.0, 5.0]) == pytest.approx(2 / 20)
    assert seed_p_value([1.0, 1.0], [1.0, 1.0, 1.0]) == 1.0
    assert seed_p_value([1.0], [2.0, 3.0]) is None


def test_with_many_seeds_splits_are_drawn():
    generator = numpy.random.default_rng(0)
    one, other = generator.normal(size=(2, 15))
    same, far = seed_p_value(one, other), seed_p_value(one, other + 5)
    assert 0.01 < same <= 1.0 and far == pytest.approx(0.0, abs=1e-4) and far > 0
