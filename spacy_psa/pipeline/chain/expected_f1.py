"""Minimum Bayes risk decoding: the set of spans with the highest expected F1.

Let S be a set of spans that do not overlap, and T the true set, which is distributed as the chain
says. F1(S, T) = 2 |S ∩ T| / (|S| + |T|), and 1 if both sets are empty. For a set S of k > 0 spans

    E[F1(S, T)] = Σ_{s in S} w_k(s),   w_k(s) = E[2 [s in T] / (k + |T|)],

and for the empty set the expectation is P(T is empty). Dynamic programming over the spans in order
finds the best set of each size k; the best of these sets is the best of all. The general scheme is
by Jansche (2007) and Ye et al. (2012).

The weights come from the integral

    1 / (k + m) = ∫₀¹ x^(k + m - 1) dx.

E[[s in T] x^|T|] is a polynomial in x, so Gauss-Legendre quadrature with enough points is exact.
`SpanCounts` gives its values.

Only spans that the best set may hold are considered. Let F be its expectation, k > 0 its size, and
low <= |T| <= high up to a probability ε on each side. If s is left out, the other spans gain:

    E[F1(S - s, T)] >= (F - w_k(s)) (1 + 1 / (k - 1 + high)) - ε / (k - 1 + high)

This is at most F, so w_k(s) >= (F - ε) / (k + high). On the other hand
w_k(s) <= 2 P(s in T) / (k + low) + 2ε / (k + 1), so that, at its least for k = 1,

    P(s in T) >= (1 + low) / 2 · ((F - ε) / (1 + high) - ε).

The expectation of any set is a lower bound of F. The search begins with probable spans and takes
less probable ones until no span above the bound of its best set is left out. low and high come from
Chernoff's bound, P(|T| >= m) <= x^-m E[x^|T|] for x > 1, and the same with <= for x < 1.
"""

from functools import cache
from typing import NamedTuple

import numpy
import torch

from spacy_psa.pipeline.chain.span_counts import SpanCounts
from spacy_psa.pipeline.chain.span_posteriors import Floats, Integers, SpanPosteriors
from spacy_psa.pipeline.chain.span_tags import SpanScheme
from spacy_psa.structs.chain import LinearChain

NODES = 64  # exact up to degree 127; the relative error is 1e-12 at degree 400, 1e-8 at 800
FLOOR = 0.1  # posterior of the spans that are considered first; later ones are down to a quarter
TAIL = 1e-3  # ε, relative to F / (1 + tokens)
TINY = 1e-300  # less than the expectation of some set, where the probabilities above are 0
SLACK = 0.99  # more than these ε can take from the bounds
TILTS = numpy.concatenate([-numpy.geomspace(0.02, 20, 16), numpy.geomspace(0.02, 20, 16)])


def best_expected_f1(chain: LinearChain, scheme: SpanScheme) -> list[list[tuple[int, int, int]]]:
    """Find the set of spans with the highest expected F1 over all sentences of one doc together.

    Args:
        chain: the distribution over legal tag sequences of the doc's sentences, given the
            evidence, in double precision.
        scheme: the meaning of the tags.

    Returns:
        The spans of each sentence in order, as (start, end, index of the label).

    Examples:
        >>> scheme = SpanScheme(["PER"], "BIO")  # the tags O, B-PER and I-PER
        >>> transitions, start, end = map(torch.from_numpy, scheme.legal())
        >>> emissions = torch.tensor([[[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]])
        >>> chain = LinearChain.from_emissions(emissions.double(), torch.tensor([2]))
        >>> chain = chain.constrain(transitions=transitions, start=start, end=end)
        >>> best_expected_f1(chain, scheme)
        [[(0, 1, 0)]]
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
        places = spans[:, 1:3] + first[spans[:, 0], None]
        candidates = _Candidates(places[:, 0], places[:, 1], *_joint(counts, spans, shares))
        reached, chosen = _best_set(candidates, size, empty)
        value = max(value, reached)
        needed = size.least_posterior(value)
        if needed >= floor:
            break
        floor = max(needed, floor / 4)
    found: list[list[tuple[int, int, int]]] = [[] for _ in chain.lengths]
    for row, start, end, label in spans[chosen].tolist():
        found[row].append((start, end, label))
    return found


def _most_probable(
    chain: LinearChain, scheme: SpanScheme
) -> tuple[list[list[tuple[int, int, int]]], float]:
    """Find the spans of the most probable analysis, and its log probability."""
    best = chain.argmax
    found = [
        [
            (start, end, scheme.label_index(label))
            for start, end, label in scheme.decode(tags.tolist())
        ]
        for tags in best
    ]
    return found, float(chain.log_prob(best).sum())


def _probability_of_none(chain: LinearChain) -> float:
    """Compute P(T is empty)."""
    outside = torch.zeros(chain.shape[:2], dtype=torch.int64)
    return float(chain.log_prob(outside).sum().exp())


class NumberOfSpans:
    """The number of true spans, |T|, of a doc.

    Args:
        counts: its generating functions.

    Examples:
        >>> scheme = SpanScheme(["PER"], "BIO")  # the tags O, B-PER and I-PER
        >>> transitions, start, end = map(torch.from_numpy, scheme.legal())
        >>> emissions = torch.tensor([[[0.0, 20.0, 0.0], [30.0, 0.0, 0.0]]])
        >>> chain = LinearChain.from_emissions(emissions, torch.tensor([2]))
        >>> chain = chain.constrain(transitions=transitions, start=start, end=end)
        >>> NumberOfSpans(SpanCounts.of(chain, scheme)).bounds(0.5)
        (0, 2)
    """

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
    nodes: Floats
    shares: Floats
    joint: Floats
    """E[[s in T] x^|T|] for each node x, as an array (nodes, spans)."""

    def weights(self, size: int) -> Floats:
        """Compute w_k(s) of all spans for k = size."""
        return 2 * (self.nodes ** (size - 1) * self.shares) @ self.joint


def _joint(
    counts: SpanCounts, spans: Integers, posteriors: Floats
) -> tuple[Floats, Floats, Floats]:
    """Compute the nodes of the quadrature, their shares, and `_Candidates.joint`."""
    nodes, shares = _quadrature(min(NODES, int(counts.lengths.sum())))
    return nodes, shares, counts.given(spans, nodes) * posteriors


@cache
def _quadrature(count: int) -> tuple[Floats, Floats]:
    """Give the nodes from 0 to 1 of Gauss-Legendre quadrature, and their shares."""
    nodes, shares = numpy.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, shares / 2


def _most_apart(starts: Integers, ends: Integers) -> int:
    """Compute the size of the largest set of spans that do not overlap."""
    count, after = 0, 0
    for i in numpy.argsort(ends, kind="stable"):
        if starts[i] >= after:
            count, after = count + 1, ends[i]
    return count


def _best_set(spans: _Candidates, size: NumberOfSpans, empty: float) -> tuple[float, list[int]]:
    """Find the set of spans without overlap with the highest expected F1, and this.

    The set is empty if no other one is worth more than `empty`.
    """
    best, chosen = empty, list[int]()
    largest = _most_apart(spans.starts, spans.ends)
    bounds = numpy.array([_bound(k, spans) for k in range(1, largest + 1)])
    for k in (numpy.argsort(-bounds, kind="stable") + 1).tolist():
        if bounds[k - 1] <= best:
            break
        weights = spans.weights(k)
        least = SLACK * best / (k + size.bounds(best)[1]) if best >= TINY else 0.0
        useful = numpy.flatnonzero(weights >= least)
        value, picked = _best_of_size(
            k, weights[useful], spans.starts[useful], spans.ends[useful], size.tokens
        )
        if value > best:
            best, chosen = value, useful[picked].tolist()
    return best, sorted(chosen)


def _bound(size: int, spans: _Candidates) -> float:
    """Bound the worth of the sets of some size: no two of their spans have the same start."""
    best = numpy.zeros(int(spans.starts.max()) + 1)
    numpy.maximum.at(best, spans.starts, spans.weights(size))
    return float(numpy.sort(best)[-size:].sum())


def _best_of_size(
    size: int, weights: Floats, starts: Integers, ends: Integers, tokens: int
) -> tuple[float, list[int]]:
    """Find `size` spans without overlap with the highest sum of weights, and this sum."""
    # best[i, c]: the highest sum of c spans that end at i or before. last[i, c]: the last of
    # these spans if it ends at i, else -1.
    best = numpy.full((tokens + 1, size + 1), -numpy.inf)
    last = numpy.full((tokens + 1, size + 1), -1)
    best[:, 0] = 0.0
    order = numpy.argsort(ends, kind="stable")
    cuts = numpy.searchsorted(ends[order], numpy.arange(tokens + 2))
    for i in range(1, tokens + 1):
        best[i] = best[i - 1]
        for s in order[cuts[i] : cuts[i + 1]]:
            value = best[starts[s], :-1] + weights[s]
            better = numpy.flatnonzero(value > best[i, 1:])
            best[i, better + 1] = value[better]
            last[i, better + 1] = s
    picked: list[int] = []
    i = tokens
    while i and len(picked) < size and best[tokens, size] > -numpy.inf:
        s = last[i, size - len(picked)]
        picked += [s] if s >= 0 else []
        i = starts[s] if s >= 0 else i - 1
    return float(best[tokens, size]), picked
