"""Posteriors of spans against enumeration."""

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_psa.pipeline.chain.span_posteriors import SpanPosteriors
from spacy_psa.pipeline.chain.span_tags import SpanScheme
from spacy_psa.structs.chain import LinearChain
from tests.helpers.analyses import enumerate_all, pair_chain, random_chain, random_emissions

LABELS = ["A", "B"]


def all_spans(length):
    return [
        (start, end, label)
        for start in range(length)
        for end in range(start + 1, length + 1)
        for label in range(len(LABELS))
    ]


def check_posteriors(chain, dense, scheme):
    """Compare the posteriors of a chain with all analyses of the same chain over all pairs."""
    posteriors = SpanPosteriors(chain, scheme)
    for row, length in enumerate(dense.lengths.tolist()):
        truth = enumerate_all(dense.potentials[row, :length], LABELS, scheme.tags)
        for start, end, label in all_spans(length):
            expected = truth.of((start, end, LABELS[label]))
            assert posteriors.of(row, start, end, label) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", ["BIOES", "BIO"])
@pytest.mark.parametrize("seed", [0, 1])
def test_posterior_of_every_span_is_that_of_enumeration(kind, seed):
    scheme, chain = random_chain(kind, [5, 1, 4], seed, 2.0, LABELS)
    check_posteriors(chain, chain, scheme)


@pytest.mark.parametrize("kind", ["BIOES", "BIO"])
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), length=st.integers(1, 9), scale=st.sampled_from([0.1, 3, 30]))
def test_posterior_is_that_of_the_constrained_partition(kind, seed, length, scale):
    scheme, chain = random_chain(kind, [length], seed, scale, LABELS)
    posteriors = SpanPosteriors(chain, scheme)
    start = seed % length
    end = start + 1 + (seed // 7) % (length - start)
    label = seed % 2
    allowed = torch.ones(1, length, len(scheme.tags), dtype=torch.bool)
    tags = scheme.encode(length, [(start, end, LABELS[label])])[start:end]
    allowed[0, start:end] = False
    allowed[0, torch.arange(start, end), torch.from_numpy(tags)] = True
    if kind == "BIO":
        allowed[0, end : end + 1, scheme.tag("I", LABELS[label])] = False
    log_odds = chain.constrain(allowed).log_partition - chain.log_partition
    expected = float(log_odds.exp())
    assert posteriors.of(0, start, end, label) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", ["BIOES", "BIO"])
@pytest.mark.parametrize("floor", [0.0, 0.01, 0.3, 1.0])
def test_spans_above_a_floor_are_all_that_there_are(kind, floor):
    lengths = [6, 2, 1]
    scheme, chain = random_chain(kind, lengths, 3, 2.0, LABELS)
    posteriors = SpanPosteriors(chain, scheme)
    expected = {
        (row, *span): float(posteriors.of(row, *span))
        for row, length in enumerate(lengths)
        for span in all_spans(length)
        if posteriors.of(row, *span) >= max(floor, 1e-300)
    }
    spans, values = posteriors.above(floor)
    assert [tuple(span) for span in spans.tolist()] == sorted(expected)
    numpy.testing.assert_allclose(values, [expected[key] for key in sorted(expected)], rtol=1e-12)


@pytest.mark.parametrize("kind", ["BIOES", "BIO"])
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_scores_of_tags_and_transitions_apart_have_the_same_posteriors(kind, scale):
    scheme, apart = random_emissions(kind, [5, 1, 4], 0, scale, LABELS)
    chain = LinearChain(apart.potentials, apart.lengths)
    for each in (apart, pair_chain(scheme, chain)):
        check_posteriors(each, chain, scheme)


def test_a_posterior_is_no_product_of_marginals():
    """Two analyses, [0, 2) or nothing, half of the time each: the tags' marginals are 1/2."""
    scheme = SpanScheme(["A"], "BIOES")
    potentials = torch.full((1, 2, 5, 5), -torch.inf, dtype=torch.float64)
    potentials[0, 0, 0, [0, scheme.tag("B", "A")]] = 0.0
    potentials[0, 1, 0, 0] = potentials[0, 1, scheme.tag("B", "A"), scheme.tag("E", "A")] = 0.0
    posteriors = SpanPosteriors(LinearChain(potentials, torch.tensor([2])), scheme)
    assert posteriors.of(0, 0, 2, 0) == 0.5
