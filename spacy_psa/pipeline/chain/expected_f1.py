"""Minimum Bayes risk decoding: the set of spans with the highest expected F1.

Let S be a set of spans that do not overlap, and T the true set, distributed as in the chain.
F1(S, T) = 2 |S ∩ T| / (|S| + |T|), and 1 if both sets are empty. For a set S of k > 0 spans

    E[F1(S, T)] = Σ_{s in S} w_k(s),   w_k(s) = E[2 [s in T] / (k + |T|)],

and for the empty set the expectation is P(T is empty). Dynamic programming over the spans in order
finds the best set of each size k; the best of these sets is the best of all. The general scheme is
by Jansche (2007) and Ye et al. (2012).

The weights come from the integral

    1 / (k + m) = ∫₀¹ x^(k + m - 1) dx.

E[[s in T] x^|T|] is a polynomial in x, so Gauss-Legendre quadrature with enough points is exact.
`SpanCounts` computes its values. The number of points that are enough grows with the square root of
k + |T|.

Only spans that the best set may hold are considered. Let F be its expectation, k > 0 its size, and
low <= |T| <= high up to a probability ε on each side. If s is left out, the other spans gain:

    E[F1(S - s, T)] >= (F - w_k(s)) (1 + 1 / (k - 1 + high)) - ε / (k - 1 + high)

This is at most F, so w_k(s) >= (F - ε) / (k + high). On the other hand
w_k(s) <= 2 P(s in T) / (k + low) + 2ε / (k + 1), so that, at its least for k = 1,

    P(s in T) >= (1 + low) / 2 · ((F - ε) / (1 + high) - ε).

The expectation of any set is a lower bound of F. The search begins with probable spans and adds
less probable ones until no span above the bound of its best set is left out. low and high come from
Chernoff's bound, P(|T| >= m) <= x^-m E[x^|T|] for x > 1, and the same with <= for x < 1.
"""

import math
from functools import cache
from heapq import heappop, heappush
from typing import NamedTuple

import numpy
import torch

from spacy_psa.pipeline.chain.span_counts import SpanCounts
from spacy_psa.pipeline.chain.span_posteriors import Floats, Integers, SpanPosteriors
from spacy_psa.pipeline.chain.span_sets import heaviest_set, most_apart
from spacy_psa.pipeline.chain.span_tags import SpanScheme
from spacy_psa.structs.chain import LinearChain

FLOOR = 0.1  # posterior of the spans that are considered first; later ones are down to a quarter
TAIL = 1e-3  # ε, relative to F / (1 + tokens)
TINY = 1e-300  # less than the expectation of some set, where the probabilities above are 0
SLACK = 0.99  # more than these ε can lower the bounds
TILTS = numpy.concatenate([-numpy.geomspace(0.02, 20, 16), numpy.geomspace(0.02, 20, 16)])


def best_expected_f1(chain: LinearChain, scheme: SpanScheme) -> list[list[tuple[int, int, int]]]:
    """Find the set of spans with the highest expected F1 over all sentences of one doc together.

    The chain is over the sentences, given the evidence, in double precision. Returns the spans of
    each sentence in order, as (start, end, index of the label).
    """
    best, log_prob = _most_probable(chain, scheme)
    count = sum(map(len, best))
    # If the true set is the most probable one, of v spans, the F1 of any other set is at most
    # 2v / (2v + 1). Above this probability no other set can be better.
    if log_prob >= numpy.log((2 * count + 1) / (2 * count + 2)):
        return best
    counts = SpanCounts.of(chain, scheme)
    size = NumberOfSpans(counts)
    posteriors = SpanPosteriors(chain, scheme)
    first = numpy.cumsum([0, *chain.lengths.tolist()[:-1]])
    empty = _probability_of_none(chain)
    value, floor = max(empty, numpy.exp(log_prob), TINY), FLOOR
    while True:
        spans, shares = posteriors.above(floor)
        starts, ends = (spans[:, 1:3] + first[spans[:, 0], None]).T
        largest = most_apart(starts, ends)
        joint = _joint(counts, spans, shares, largest + size.bounds(value)[1])
        candidates = _Candidates(starts, ends, largest, *joint)
        reached, chosen = _best_set(candidates, size, empty)
        value = max(value, reached)
        needed = size.least_posterior(value)
        if needed >= floor:
            break
        floor = max(needed, floor / 4)
    best_sets: list[list[tuple[int, int, int]]] = [[] for _ in chain.lengths]
    for row, start, end, label in spans[chosen].tolist():
        best_sets[row].append((start, end, label))
    return best_sets


def _most_probable(
    chain: LinearChain, scheme: SpanScheme
) -> tuple[list[list[tuple[int, int, int]]], float]:
    """Find the spans of the most probable analysis, and its log probability."""
    best = chain.argmax
    best_sets = [
        [
            (start, end, scheme.label_index(label))
            for start, end, label in scheme.decode(tags.tolist())
        ]
        for tags in best
    ]
    return best_sets, float(chain.log_prob(best).sum())


def _probability_of_none(chain: LinearChain) -> float:
    """Compute P(T is empty)."""
    outside = torch.zeros(chain.shape[:2], dtype=torch.int64)
    return float(chain.log_prob(outside).sum().exp())


class NumberOfSpans:
    """The number of true spans, |T|, of a doc."""

    def __init__(self, counts: SpanCounts):
        self.tokens = int(counts.lengths.sum())
        self.log_means = counts.log_means(TILTS)

    def bounds(self, value: float) -> tuple[int, int]:
        """Find low and high such that |T| is rarely outside, for a lower bound of F."""
        log_tail = numpy.log(TAIL * value / (1 + self.tokens))
        edges = (self.log_means - log_tail) / TILTS
        low = max(0, int(edges[TILTS < 0].max()))
        return low, min(self.tokens, int(edges[TILTS > 0].min()) + 1)

    def least_posterior(self, value: float) -> float:
        """Bound the posterior of each span of the best set, if a set has this expected F1."""
        low, high = self.bounds(value)
        return float(SLACK * value / 2 * (1 + low) / (1 + high))


class _Candidates(NamedTuple):
    """Spans that the best set may hold, over the tokens of the doc."""

    starts: Integers
    ends: Integers
    largest: int
    """The size of the largest set of them that do not overlap."""
    nodes: Floats
    shares: Floats
    joint: Floats
    """E[[s in T] x^|T|] for each node x, as an array (nodes, spans)."""

    def weights(self, size: int) -> Floats:
        """Compute w_k(s) of all spans for k = size."""
        return 2 * (self.nodes ** (size - 1) * self.shares) @ self.joint


def _joint(
    counts: SpanCounts, spans: Integers, posteriors: Floats, degree: int
) -> tuple[Floats, Floats, Floats]:
    """Compute the nodes of the quadrature, their shares, and `_Candidates.joint`."""
    nodes, shares = _quadrature(degree)
    return nodes, shares, counts.given(spans, nodes) * posteriors


def _quadrature(degree: int) -> tuple[Floats, Floats]:
    """Return the nodes from 0 to 1 of Gauss-Legendre quadrature, and their shares.

    n nodes are exact up to degree 2n - 1. Up to n² / 8, the relative error for a power of x is
    about 1e-11.
    """
    return _gauss_legendre(max(2, math.ceil(math.sqrt(8 * degree) / 8)) * 8)


@cache
def _gauss_legendre(count: int) -> tuple[Floats, Floats]:
    """Return `count` nodes from 0 to 1, and their shares."""
    nodes, shares = numpy.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, shares / 2


class _Sizes:
    """Upper bounds of what sets of each size are worth.

    No two spans of a set have the same start, and a span is worth less in a larger set.
    """

    def __init__(self, spans: _Candidates):
        self.spans = spans
        self.sums: dict[int, Floats] = {}

    def bound(self, least: int, most: int) -> float:
        """Bound the worth of all sets of `least` to `most` spans."""
        if least not in self.sums:
            best = numpy.zeros(int(self.spans.starts.max()) + 1)
            numpy.maximum.at(best, self.spans.starts, self.spans.weights(least))
            self.sums[least] = numpy.sort(best)[::-1].cumsum()
        sums = self.sums[least]
        return float(sums[min(most, len(sums)) - 1])


def _best_set(spans: _Candidates, size: NumberOfSpans, empty: float) -> tuple[float, list[int]]:
    """Find the set of spans without overlap with the highest expected F1, and this.

    The set is empty if no other one is worth more than `empty`.
    """
    best, chosen = empty, list[int]()
    sizes, largest = _Sizes(spans), spans.largest
    waiting = [(-sizes.bound(1, largest), 1, largest)] if largest else []
    while waiting and -waiting[0][0] > best:
        _, least, most = heappop(waiting)
        if least < most:
            middle = (least + most) // 2
            for part in ((least, middle), (middle + 1, most)):
                heappush(waiting, (-sizes.bound(*part), *part))
            continue
        weights = spans.weights(least)
        floor = SLACK * best / (least + size.bounds(best)[1]) if best >= TINY else 0.0
        useful = numpy.flatnonzero(weights >= floor)
        value, picked = heaviest_set(
            least, weights[useful], spans.starts[useful], spans.ends[useful]
        )
        if value > best:
            best, chosen = value, useful[picked].tolist()
    return best, sorted(chosen)
