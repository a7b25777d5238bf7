"""The number of spans of a doc against all analyses."""

import numpy
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spacy_psa import kernels
from spacy_psa.pipeline.chain.span_counts import (
    DenseSpanCounts,
    EmissionSpanCounts,
    PairSpanCounts,
    SpanCounts,
)
from spacy_psa.structs.chain import LinearChain
from tests.helpers.analyses import enumerate_all, pair_chain, random_chain, random_emissions

LABELS = ["A", "B"]
X = numpy.array([1e-6, 0.2, 0.9, 1.0])


def mean(part, x, span=None):
    """E[x^m] of a sentence, (X,), over the analyses that have a span, or over all."""
    return sum(
        p * x ** len(value)
        for value, p in zip(part.values, part.probabilities)
        if span is None or span in value
    )


def check_counts(counts, chain, scheme):
    """Compare the counts of a chain with those of all analyses."""
    lengths = chain.lengths.tolist()
    parts = [
        enumerate_all(chain.potentials[row, :length], LABELS, scheme.tags)
        for row, length in enumerate(lengths)
    ]
    x = numpy.array([1e-6, 0.2, 1.0, 3.0, 1e6])
    truth = numpy.prod([mean(part, x) for part in parts], 0)
    numpy.testing.assert_allclose(numpy.exp(counts.log_means(numpy.log(x))), truth, rtol=1e-9)
    spans = [
        (row, start, end, label)
        for row, length in enumerate(lengths)
        for start in range(length)
        for end in range(start + 1, length + 1)
        for label in range(len(LABELS))
        if parts[row].of((start, end, LABELS[label])) > 1e-12
    ]
    found = counts.given(numpy.array(spans), X)
    for (row, start, end, label), column in zip(spans, found.T):
        span = (start, end, LABELS[label])
        own = mean(parts[row], X, span) / parts[row].of(span)
        others = [mean(part, X) for other, part in enumerate(parts) if other != row]
        numpy.testing.assert_allclose(column, numpy.prod([own, *others], 0), rtol=1e-9)


@pytest.fixture(params=["legal pairs", "all pairs"])
def of(request):
    """Counts the spans of a chain over all pairs of tags, or over the legal ones alone."""
    if request.param == "all pairs":
        return SpanCounts.of
    pytest.importorskip("numba")
    return lambda chain, scheme: SpanCounts.of(pair_chain(scheme, chain), scheme)


def test_legal_pairs_are_counted_by_compiled_loops_where_there_are_any(monkeypatch):
    pytest.importorskip("numba")
    scheme, chain = random_chain("BIOES", [2], 0, 1.0, LABELS)
    pairs = pair_chain(scheme, chain)
    assert type(SpanCounts.of(pairs, scheme)) is PairSpanCounts
    assert type(SpanCounts.of(chain, scheme)) is DenseSpanCounts
    monkeypatch.setattr(kernels, "available", lambda: False)
    assert type(SpanCounts.of(pairs, scheme)) is DenseSpanCounts


@pytest.mark.parametrize("kind", ["BIOES", "BIO"])
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    seed=st.integers(0, 10_000),
    scale=st.sampled_from([0.3, 1.0, 5.0]),
)
def test_counts_are_those_of_all_analyses(of, kind, lengths, seed, scale):
    scheme, chain = random_chain(kind, lengths, seed, scale, LABELS)
    check_counts(of(chain, scheme), chain, scheme)


@pytest.mark.parametrize("kind", ["BIOES", "BIO"])
@pytest.mark.parametrize("lengths", [[4, 1, 3], [1], [2, 4]])
@pytest.mark.parametrize("scale", [0.3, 5.0])
def test_scores_of_tags_and_transitions_apart_count_the_same(kind, lengths, scale):
    scheme, chain = random_emissions(kind, lengths, 0, scale, LABELS)
    dense = LinearChain(chain.potentials, chain.lengths)
    counts = SpanCounts.of(chain, scheme)
    assert type(counts) is EmissionSpanCounts
    check_counts(counts, dense, scheme)


def test_single_precision_will_do(of):
    scheme, chain = random_chain("BIOES", [3, 5], 0, 1.0, LABELS)
    single = LinearChain(chain.potentials.float(), chain.lengths)
    spans = numpy.array([[0, 0, 2, 0], [1, 4, 5, 1]])
    exact, found = (of(each, scheme).given(spans, X) for each in (chain, single))
    assert found.dtype == numpy.float64
    numpy.testing.assert_allclose(found, exact, rtol=1e-5)


def test_logarithms_reach_further_than_numbers(of):
    """In 800 tokens that are spans for certain, x^|T| is too small or too large for a number."""
    scheme, chain = random_chain("BIOES", [400, 400], 0, 0.0, LABELS)
    single = scheme.columns("S")[0]
    potentials = torch.full_like(chain.potentials, -torch.inf)
    potentials[:, 0, 0, single] = potentials[:, 1:, single, single] = 0.0
    counts = of(LinearChain(potentials, chain.lengths), scheme)
    log_x = numpy.log([1e-3, 1e3])
    numpy.testing.assert_allclose(counts.log_means(log_x), 800 * log_x)
    found = counts.given(numpy.array([[0, 5, 6, 0]]), numpy.array([1e-3, 1.0]))
    assert found.tolist() == [[0.0], [1.0]]


def test_no_spans_have_no_counts(of):
    scheme, chain = random_chain("BIO", [2], 0, 1.0, LABELS)
    none = numpy.empty((0, 4), dtype="int64")
    assert of(chain, scheme).given(none, X).shape == (len(X), 0)
