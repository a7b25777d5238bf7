"""Minimum Bayes risk decoding: the set of spans with the highest expected F1.

Let S be a set of spans that do not overlap, and T the true set, which is distributed as the chain
says. F1(S, T) = 2 |S ∩ T| / (|S| + |T|), and 1 if both sets are empty. For a set S of k > 0 spans

    E[F1(S, T)] = Σ_{s in S} w_k(s),   w_k(s) = E[2 [s in T] / (k + |T|)],

and for the empty set the expectation is P(T is empty). Dynamic programming over the spans in order
finds the best set of each size k; the best of these sets is the best of all. The general scheme is
by Jansche (2007) and Ye et al. (2012).

The weights come from the integral

    1 / (k + m) = ∫₀¹ x^(k + m - 1) dx.

Let P_x and Z_x belong to the chain in which the beginning of each span is multiplied by x. Then
E[[s in T] x^|T|] = P_x(s) Z_x / Z. The integrand is a polynomial in x, so Gauss-Legendre quadrature
with enough points is exact.
"""

import numpy
import torch
from numpy.typing import NDArray

from spacy_psa.pipeline.chain.span_posteriors import Floats, SpanPosteriors
from spacy_psa.pipeline.chain.span_tags import SpanScheme
from spacy_psa.structs.chain import LinearChain

NODES = 64  # exact up to degree 127; the relative error is 1e-12 at degree 400, 1e-8 at 800
ELEMENTS = 10_000_000  # numbers in the tilted potentials that are in memory at a time
Integers = NDArray[numpy.int64]


def best_expected_f1(chain: LinearChain, scheme: SpanScheme) -> list[list[tuple[int, int, int]]]:
    """Find the set of spans with the highest expected F1 over all sentences of one doc together.

    Let n be the number of tokens of the doc and F the expected F1 of any set. A span whose
    posterior is below F / 2n cannot be in the best set, since the set would be better without it.
    So only spans above that bound are considered, and no span of the best set is lost.

    Args:
        chain: the distribution over legal tag sequences of the doc's sentences, given the
            evidence.
        scheme: the meaning of the tags.

    Returns:
        The spans of each sentence in order, as (start, end, index of the label).

    Examples:
        >>> scheme = SpanScheme(["PER"], "BIO")  # the tags O, B-PER and I-PER
        >>> transitions, start, end = map(torch.from_numpy, scheme.legal())
        >>> emissions = torch.tensor([[[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]])
        >>> chain = LinearChain.from_emissions(emissions, torch.tensor([2]))
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
    tokens = int(chain.lengths.sum())
    floor = numpy.exp(log_prob) / (2 * tokens)
    spans, _ = SpanPosteriors(chain, scheme).above(floor)
    offsets = numpy.cumsum([0, *chain.lengths.tolist()[:-1]])[spans[:, 0]]
    starts, ends = spans[:, 1] + offsets, spans[:, 2] + offsets
    weights = _weights(chain, scheme, spans, _most_apart(starts, ends), tokens)
    chosen = _best_set(weights, starts, ends, tokens, _probability_of_none(chain))
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


def _weights(
    chain: LinearChain, scheme: SpanScheme, spans: Integers, largest: int, tokens: int
) -> Floats:
    """Compute w_k(s) for k from 1 on, as an array (largest, spans)."""
    count = min(NODES, (largest + tokens + 1) // 2)
    nodes, shares = numpy.polynomial.legendre.leggauss(count)
    nodes, shares = (nodes + 1) / 2, shares / 2
    joint = []
    at_once = max(1, ELEMENTS // max(1, chain.potentials.numel()))
    for i in range(0, count, at_once):
        joint.append(_joint(chain, scheme, spans, nodes[i : i + at_once]))
    powers = nodes ** numpy.arange(largest)[:, None]
    return 2 * (powers * shares) @ numpy.concatenate(joint)


def _joint(chain: LinearChain, scheme: SpanScheme, spans: Integers, nodes: Floats) -> Floats:
    """Compute E[[s in T] x^|T|] for each node x, as an array (nodes, spans)."""
    batch = len(chain.lengths)
    begins = torch.zeros(chain.potentials.shape[-1], dtype=torch.float64)
    begins[numpy.concatenate([scheme.columns("B"), scheme.columns("S")])] = 1.0
    tilt = torch.from_numpy(numpy.log(nodes)).view(-1, 1, 1, 1, 1) * begins
    tilted = LinearChain(
        (chain.potentials.double().cpu() + tilt).flatten(0, 1), chain.lengths.repeat(len(nodes))
    )
    log_z = tilted.log_partition.view(-1, batch).sum(1) - chain.log_partition.double().cpu().sum()
    posteriors = SpanPosteriors(tilted, scheme)
    rows = numpy.arange(len(nodes)) * batch
    found = [posteriors.of(rows + row, start, end, label) for row, start, end, label in spans]
    return numpy.stack(found, 1) * numpy.exp(log_z.numpy())[:, None]


def _most_apart(starts: Integers, ends: Integers) -> int:
    """Compute the size of the largest set of spans that do not overlap."""
    count, after = 0, 0
    for i in numpy.argsort(ends, kind="stable"):
        if starts[i] >= after:
            count, after = count + 1, ends[i]
    return count


def _best_set(
    weights: Floats, starts: Integers, ends: Integers, tokens: int, empty: float
) -> list[int]:
    """Find the set of spans without overlap that has the highest Σ w_k, where k is its size.

    The set is empty if no other one is worth more than `empty`.
    """
    best, chosen = empty, list[int]()
    bounds = [numpy.sort(row)[::-1][: k + 1].sum() for k, row in enumerate(weights)]
    for k in numpy.argsort(-numpy.array(bounds), kind="stable").tolist():
        if bounds[k] <= best:
            break
        # A set with a span of a lower weight gains more than that weight without the span.
        useful = numpy.flatnonzero(weights[k] >= best / (k + 1 + tokens))
        value, picked = _best_of_size(
            k + 1, weights[k, useful], starts[useful], ends[useful], tokens
        )
        if value > best:
            best, chosen = value, useful[picked].tolist()
    return sorted(chosen)


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
