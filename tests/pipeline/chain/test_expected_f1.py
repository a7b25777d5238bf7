"""The spans of the highest expected F1 against every set of spans."""

import math

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_psa.pipeline.chain import expected_f1 as module
from spacy_psa.pipeline.chain.expected_f1 import best_expected_f1
from spacy_psa.pipeline.chain.span_counts import SpanCounts
from spacy_psa.pipeline.chain.span_tags import SpanScheme
from spacy_psa.structs.chain import LinearChain
from tests.helpers.analyses import Truth, enumerate_all, pair_chain, random_chain

LABELS = ["A", "B"]
longer_docs = given(
    lengths=st.lists(st.integers(1, 25), min_size=1, max_size=3),
    seed=st.integers(0, 10_000),
    scale=st.sampled_from([0.1, 0.3, 1.0, 3.0]),
)


def f1(chosen, truth):
    if not chosen and not truth:
        return 1.0
    return 2 * len(set(chosen) & set(truth)) / (len(chosen) + len(truth))


def expected_f1(chosen, truth):
    return sum(p * f1(chosen, value) for value, p in zip(truth.values, truth.probabilities))


def expected_f1_of_each(values, probabilities):
    """The expected F1 of each of the values, as `expected_f1`, by one product of matrices."""
    spans = sorted({span for value in values for span in value})
    has = numpy.array([[span in value for span in spans] for value in values], dtype="float64")
    sizes = has.sum(1)[:, None] + has.sum(1)
    f1 = numpy.where(sizes > 0, 2 * (has @ has.T) / numpy.maximum(sizes, 1), 1.0)
    return f1 @ probabilities


@pytest.mark.parametrize("kind", ["BIOES", "BIO"])
@settings(max_examples=12)
@given(
    lengths=st.lists(st.integers(1, 3), min_size=1, max_size=2),
    seed=st.integers(0, 10_000),
    scale=st.sampled_from([0.3, 1.0, 3.0]),
)
def test_best_spans_have_the_highest_expected_f1_of_all_analyses(kind, lengths, seed, scale):
    """Of a doc of one or two sentences, against every set of spans."""
    scheme, chain = random_chain(kind, lengths, seed, scale, LABELS)
    values, probabilities, offset = [()], numpy.ones(1), 0
    for row, length in enumerate(lengths):
        part = enumerate_all(chain.potentials[row, :length], LABELS, scheme.tags)
        values = [
            (*value, *((s + offset, e + offset, x) for s, e, x in more))
            for value in values
            for more in part.values
        ]
        probabilities = numpy.outer(probabilities, part.probabilities).ravel()
        offset += length
    truth = Truth(values, probabilities)
    best = expected_f1_of_each(values, probabilities)[probabilities > 1e-12].max()
    offsets = numpy.cumsum([0, *lengths])
    found = [
        (s + offsets[row], e + offsets[row], LABELS[label])
        for row, spans in enumerate(best_expected_f1(chain, scheme))
        for s, e, label in spans
    ]
    assert tuple(found) in values
    assert expected_f1(found, truth) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("kind", ["BIOES", "BIO"])
@settings(max_examples=12)
@longer_docs
def test_spans_that_are_left_out_change_nothing(kind, lengths, seed, scale):
    scheme, chain = random_chain(kind, lengths, seed, scale, LABELS)
    found = best_expected_f1(chain, scheme)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FLOOR", 0.0)  # the first spans are all spans
        assert best_expected_f1(chain, scheme) == found


@pytest.mark.parametrize("kind", ["BIOES", "BIO"])
@settings(max_examples=12)
@longer_docs
def test_a_chain_over_legal_pairs_has_the_same_best_spans(kind, lengths, seed, scale):
    scheme, chain = random_chain(kind, lengths, seed, scale, LABELS)
    pairs = pair_chain(scheme, chain)
    assert best_expected_f1(pairs, scheme) == best_expected_f1(chain, scheme)


@settings(max_examples=20)
@given(
    lengths=st.lists(st.integers(1, 3), min_size=1, max_size=2),
    seed=st.integers(0, 10_000),
    scale=st.sampled_from([0.3, 1.0, 3.0]),
    value=st.floats(1e-3, 1.0),
)
def test_the_number_of_true_spans_is_within_its_bounds(lengths, seed, scale, value):
    scheme, chain = random_chain("BIOES", lengths, seed, scale, LABELS)
    low, high = module.NumberOfSpans(SpanCounts.of(chain, scheme)).bounds(value)
    shares = numpy.ones(1)  # of each number of spans
    for row, length in enumerate(lengths):
        part = enumerate_all(chain.potentials[row, :length], LABELS, scheme.tags)
        of_row = numpy.zeros(length + 1)
        for spans, p in zip(part.values, part.probabilities):
            of_row[len(spans)] += p
        shares = numpy.convolve(shares, of_row)
    assert max(shares[:low].sum(), shares[high + 1 :].sum()) < 1e-3 * value / (1 + sum(lengths))


@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_the_spans_to_choose_from_grow_with_the_tokens_and_not_their_square(scale, monkeypatch):
    joint, considered = module._joint, []

    def counting(counts, spans, posteriors, degree):
        considered.append(len(spans))
        return joint(counts, spans, posteriors, degree)

    monkeypatch.setattr(module, "_joint", counting)
    for tokens in (50, 200):
        scheme, chain = random_chain("BIOES", [tokens], 0, scale, LABELS)
        considered.clear()
        best_expected_f1(chain, scheme)
        assert 0 < max(considered) < 12 * tokens


def test_a_doc_whose_analyses_are_all_improbable_has_best_spans():
    """The probability of each analysis is below the smallest number above 0."""
    scheme, chain = random_chain("BIOES", [700], 0, 0.1, LABELS)
    (found,) = best_expected_f1(chain, scheme)
    assert found


def test_best_spans_are_not_those_of_the_most_probable_analysis():
    """Nothing, at 0.4; or A [0, 1), alone at 0.3 or with A [1, 2) at 0.3."""
    scheme = SpanScheme(["A"], "BIO")
    potentials = torch.full((1, 2, 3, 3), -torch.inf, dtype=torch.float64)
    potentials[0, 0, 0, :2] = 0.0
    potentials[0, 1, 0, 0] = math.log(0.4)
    potentials[0, 1, 1, 0] = potentials[0, 1, 1, 1] = math.log(0.3)
    chain = LinearChain(potentials, torch.tensor([2]))
    assert chain.argmax[0].tolist() == [0, 0]
    assert best_expected_f1(chain, scheme) == [[(0, 1, 0)]]  # 0.3 + 0.3 · 2/3
    potentials[0, 1, 1, 2], potentials[0, 1, 1, 1] = math.log(0.3), -math.inf  # A [0, 2)
    chain = LinearChain(potentials, torch.tensor([2]))
    assert best_expected_f1(chain, scheme) == [[]]


@pytest.mark.parametrize("odds", [4.89, 4.96, 5.2])
def test_a_doc_of_which_it_is_nearly_impossible_that_it_has_no_span(odds):
    """The probability is a subnormal number, or 0."""
    scheme = SpanScheme(["A"], "BIOES")
    emissions = torch.full((1, 150, len(scheme.tags)), -20.0, dtype=torch.float64)
    emissions[..., 0], emissions[..., scheme.columns("S")[0]] = 0.0, odds
    transitions, start, end = map(torch.from_numpy, scheme.legal())
    chain = LinearChain.from_emissions(emissions, torch.tensor([150]))
    chain = chain.constrain(transitions=transitions, start=start, end=end)
    none = float(chain.log_prob(torch.zeros(1, 150, dtype=torch.int64)).exp())
    assert none < 2.3e-308
    (found,) = best_expected_f1(chain, scheme)
    assert len(found) == 150


@pytest.mark.parametrize("degree", [0, 1, 10, 100, 1_000, 10_000, 50_000])
def test_the_quadrature_is_accurate_at_each_degree_up_to_the_highest(degree):
    nodes, shares = module._quadrature(degree)
    for power in {0, degree // 10, degree // 2, degree}:
        assert shares @ nodes**power == pytest.approx(1 / (power + 1), rel=3e-11)


def binomial(count, p):
    """The probability of each number of successes."""
    k = numpy.arange(count + 1)
    log_factorial = numpy.array([math.lgamma(i + 1) for i in k])
    log_ways = log_factorial[-1] - log_factorial - log_factorial[::-1]
    return numpy.exp(log_ways + k * math.log(p) + (count - k) * math.log1p(-p))


@pytest.mark.parametrize("p", [0.26, 0.3, 0.33, 0.36])
def test_the_best_spans_of_a_doc_of_thousands_of_spans(p):
    """Each of 20,000 tokens is a span or none by itself: 1,000 at 0.9, 3,000 at `p`."""
    often, rare, length = 1_000, 3_000, 50
    scheme = SpanScheme(["A"], "BIOES")
    single = int(scheme.columns("S")[0])
    emissions = torch.full((20_000, len(scheme.tags)), -torch.inf, dtype=torch.float64)
    emissions[:, 0] = 0.0
    emissions[:often, single] = math.log(0.9 / 0.1)
    emissions[often : often + rare, single] = math.log(p / (1 - p))
    emissions = emissions.reshape(-1, length, len(scheme.tags))
    transitions, start, end = map(torch.from_numpy, scheme.legal())
    chain = LinearChain.from_emissions(emissions, torch.full((len(emissions),), length))
    chain = chain.constrain(transitions=transitions, start=start, end=end)

    of_often = numpy.convolve(binomial(often - 1, 0.9), binomial(rare, p))
    of_rare = numpy.convolve(binomial(often, 0.9), binomial(rare - 1, p))
    others = numpy.arange(often + rare)
    value = [
        2 * often * 0.9 * (of_often / (often + more + 1 + others)).sum()
        + 2 * more * p * (of_rare / (often + more + 1 + others)).sum()
        for more in range(rare + 1)
    ]
    best = best_expected_f1(chain, scheme)
    assert sum(map(len, best)) == often + int(numpy.argmax(value))
    assert all(len(found) == length for found in best[: often // length])
