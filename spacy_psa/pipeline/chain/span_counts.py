"""How many spans a doc has, and how many it has if it has a given span: exact, under a chain.

The distribution of a number m of spans is known from its generating function, E[x^m] for enough x.
A linear chain is a Markov chain in both directions. So let y_t be the tag of token t, and w(y) = x
if y begins a span, else 1. Then

    left_t(y) = E[x^(spans that begin at t or before) | y_t = y]
              = w(y) Σ_y' P(y_t-1 = y' | y_t = y) left_t-1(y')
    right_t(y) = E[x^(spans that begin after t) | y_t = y]
               = Σ_y' P(y_t+1 = y' | y_t = y) w(y') right_t+1(y')

All x are computed together. One forward-backward pass, for x = 1, computes the
conditional probabilities. `DenseSpanCounts` is for any chain, and computes products of matrices.
`EmissionSpanCounts` does so with the factors of an `EmissionChain`. `PairSpanCounts` is for a
`PairChain`, and sums over its pairs of tags in compiled loops.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import cast

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from spacy_psa import kernels
from spacy_psa.pipeline.chain.span_posteriors import Floats, Integers
from spacy_psa.pipeline.chain.span_tags import SpanScheme
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.emission_chain import EmissionChain
from spacy_psa.structs.pair_chain import PairChain


class SpanCounts(ABC):
    """The generating functions of the number of spans of a doc, |T|.

    Args:
        chain: the distribution over legal tag sequences of the doc's B sentences.
        scheme: the meaning of the tags.
    """

    def __init__(self, chain: LinearChain, scheme: SpanScheme):
        self.lengths = chain.lengths
        self.scheme = scheme
        self.begins = torch.zeros(len(scheme.tags), dtype=torch.bool)
        self.begins[numpy.concatenate([scheme.columns("B"), scheme.columns("S")])] = True

    @staticmethod
    def of(chain: LinearChain, scheme: SpanScheme) -> SpanCounts:
        """Count in the fastest way that a chain has."""
        if isinstance(chain, EmissionChain) and chain.is_scaled:
            return EmissionSpanCounts(chain, scheme)
        if isinstance(chain, PairChain) and kernels.available():
            return PairSpanCounts(chain, scheme)
        return DenseSpanCounts(chain, scheme)

    def log_means(self, log_x: Floats) -> Floats:
        """Compute log E[x^|T|].

        Returns:
            (X,) float64.
        """
        return self._log_totals(log_x).sum(0)

    def given(self, spans: Integers, x: Floats) -> Floats:
        """Compute E[x^|T| | the span is in T] for some spans.

        Args:
            spans: (S, 4) the sentence, start, end and index of the label of each.
            x: (X,) numbers above 0 and at most 1.

        Returns:
            (X, S) float64.
        """
        rows, starts, ends, labels = spans.T
        first, last = self._tags(ends - starts > 1, labels)
        begins = numpy.stack([rows, starts, first]), numpy.stack([rows, ends - 1, last])
        products, log_totals = self._around(*begins, numpy.log(x))
        # Of the other sentences; a product that leaves one out never divides by 0.
        totals = numpy.exp(log_totals)
        ones = numpy.ones_like(totals[:1])
        before = numpy.concatenate([ones, totals[:-1]]).cumprod(0)
        after = numpy.concatenate([totals[1:], ones])[::-1].cumprod(0)[::-1]
        return products * (before * after)[rows].T

    @abstractmethod
    def _log_totals(self, log_x: Floats) -> Floats:
        """Compute log E[x^m], for the number m of spans of each sentence, (B, X)."""

    @abstractmethod
    def _around(self, begins: Integers, ends: Integers, log_x: Floats) -> tuple[Floats, Floats]:
        """Multiply left at the first token of spans by right at their last one.

        Args:
            begins: (3, S) the sentence, the first token and its tag, of each span.
            ends: (3, S) the sentence, the last token and its tag.
            log_x: (X,) the logarithms of the numbers x.

        Returns:
            The products, (X, S); and the result of `_log_totals`.
        """

    def _tags(self, longer: NDArray[numpy.bool_], labels: Integers) -> tuple[Integers, Integers]:
        """Find the tags of the first and of the last token of spans."""
        begin, single, end, inside = (self.scheme.columns(prefix)[labels] for prefix in "BSEI")
        last = end if self.scheme.tag_format == "BIOES" else inside
        return numpy.where(longer, begin, single), numpy.where(longer, last, single)

    def _weights(self, log_x: Floats) -> Tensor:
        """w(y) for each x, (X, K)."""
        x = torch.from_numpy(numpy.exp(log_x))[:, None]
        return torch.where(self.begins, x, torch.ones_like(x))


class PairSpanCounts(SpanCounts):
    """The numbers of spans under a chain over legal pairs of tags; see `SpanCounts`."""

    def __init__(self, chain: PairChain, scheme: SpanScheme):
        super().__init__(chain, scheme)
        pairs = chain.pairs
        tensors = chain.flat_marginals.cpu().double(), chain.lengths, pairs.previous, pairs.begins
        self.arrays = [tensor.numpy() for tensor in tensors]
        self.first = (chain.lengths.cumsum(0) - chain.lengths).numpy()
        inside = torch.zeros(len(scheme.tags), dtype=torch.bool)
        inside[numpy.concatenate([scheme.columns("I"), scheme.columns("E")])] = True
        self.goes_on = inside[pairs.tag].numpy()

    def _log_totals(self, log_x: Floats) -> Floats:
        from spacy_psa.kernels.span_counts import from_left

        none = numpy.empty(0, dtype="int64")
        return from_left(*self.arrays, self._by_tag(log_x), none, none)[1]

    def _around(self, begins: Integers, ends: Integers, log_x: Floats) -> tuple[Floats, Floats]:
        from spacy_psa.kernels.span_counts import from_left, from_right

        weights = self._by_tag(log_x)
        products = numpy.empty((begins.shape[1], len(log_x)))
        tokens = self.first[begins[0]] + begins[1]
        order = numpy.argsort(tokens, kind="stable")
        products[order], log_totals = from_left(
            *self.arrays, weights, tokens[order], begins[2, order]
        )
        tokens = self.first[ends[0]] + ends[1]
        order = numpy.argsort(-tokens, kind="stable")
        products[order] *= from_right(
            *self.arrays, weights, self.goes_on, tokens[order], ends[2, order]
        )
        return products.T, log_totals

    def _by_tag(self, log_x: Floats) -> Floats:
        """w(y) for each x, (K, X)."""
        return numpy.ascontiguousarray(self._weights(log_x).T)


class DenseSpanCounts(SpanCounts):
    """The numbers of spans under any chain; see `SpanCounts`."""

    def __init__(self, chain: LinearChain, scheme: SpanScheme):
        super().__init__(chain, scheme)
        self.marginals = chain.marginals.detach().cpu().double()
        self._read(chain)
        # Longer sentences first, so that those which reach a token are neighbours.
        self.order = torch.argsort(self.lengths, descending=True, stable=True)
        self.place = torch.argsort(self.order).numpy()

    def _read(self, chain: LinearChain) -> None:
        """Read what `_mean_before` and `_mean_after` need."""
        self.pairs = chain.pairwise_marginals.detach().cpu()  # large: parts of it become double

    def _mean_before(self, t: int, rows: Tensor, values: Tensor) -> Tensor:
        """The mean of values (b, X, K) of the tag before token t of sentences, for each tag."""
        here = self.marginals[rows, t, None, :]
        before = torch.where(here > 0, self.pairs[rows, t].double() / here, 0.0)
        return torch.bmm(values, before)

    def _mean_after(self, t: int, rows: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """The mean of values (b, X, K) of the tag at token t of sentences, for each tag before it.

        The second is that given that no span goes on there.
        """
        pairs = self.pairs[rows, t].double()
        means = ended = _mean(values, pairs)
        if self.scheme.tag_format != "BIOES":  # its last tags end a span by themselves
            ended = _mean(values, self._without_next(pairs))
        return means, ended

    def _log_totals(self, log_x: Floats) -> Floats:
        log_totals = torch.empty(len(self.lengths), len(log_x), dtype=torch.float64)
        for t, left, scale in self._left(log_x):
            self._sum_up(t, left, scale, log_totals)
        return log_totals.numpy()

    def _around(self, begins: Integers, ends: Integers, log_x: Floats) -> tuple[Floats, Floats]:
        products = torch.ones(len(log_x), begins.shape[1], dtype=torch.float64)
        log_totals = torch.empty(len(self.lengths), len(log_x), dtype=torch.float64)
        by_begin, by_end = _places(begins[1]), _places(ends[1])
        for t, left, scale in self._left(log_x):
            self._sum_up(t, left, scale, log_totals)
            here = by_begin.get(t)
            if here is not None:
                at = self.place[begins[0, here]]
                products[:, here] *= (left[at, :, begins[2, here]] * scale[at].exp()).T
        for t, right in self._right(log_x):
            here = by_end.get(t)
            if here is not None:
                products[:, here] *= right[self.place[ends[0, here]], :, ends[2, here]].T
        return products.numpy(), log_totals.numpy()

    def _sum_up(self, t: int, left: Tensor, scale: Tensor, log_totals: Tensor) -> None:
        """Set log E[x^m], for the number m of spans, of the sentences that end after token t."""
        reach = self.order[: len(left)]
        ends = self.lengths[reach] == t + 1
        means = left[ends] @ self.marginals[reach[ends], t, :, None]
        log_totals[reach[ends]] = means[..., 0].log() + scale[ends]

    def _reach(self, t: int) -> Tensor:
        """The sentences that have a token t, the longest first."""
        return self.order[: int((self.lengths > t).sum())]

    def _left(self, log_x: Floats) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Yield each token t and left_t (b, X, K) divided by exp(scale), and scale (b, X).

        The b sentences are those of `_reach(t)`.
        """
        weights = self._weights(log_x)
        left = weights.expand(len(self.lengths), *weights.shape)
        scale = torch.zeros(left.shape[:2], dtype=torch.float64)
        for t in range(self.marginals.shape[1]):
            rows = self._reach(t)
            if t:
                left = self._mean_before(t, rows, left[: len(rows)]) * weights
                scale = scale[: len(rows)]
            top = left.amax(2, keepdim=True)
            left = left / top
            scale = scale + top[..., 0].log()
            yield t, left, scale

    def _right(self, log_x: Floats) -> Iterator[tuple[int, Tensor]]:
        """Yield each token t, the last first, and right_t (b, X, K), if no span goes beyond t."""
        weights = self._weights(log_x)
        right = torch.empty(0, *weights.shape, dtype=torch.float64)
        for t in reversed(range(self.marginals.shape[1])):
            rows = self._reach(t)
            ended = right
            if len(right):
                right, ended = self._mean_after(t + 1, rows[: len(right)], right * weights)
            right, ended = _with_ones(right, len(rows)), _with_ones(ended, len(rows))
            yield t, ended

    def _without_next(self, pairs: Tensor) -> Tensor:
        """Leave out the pairs of tags that continue a span."""
        inside = self.scheme.columns("I")
        pairs = pairs.clone()
        for tags in (self.scheme.columns("B"), inside):
            pairs[:, tags, inside] = 0.0
        return pairs


class EmissionSpanCounts(DenseSpanCounts):
    """The numbers of spans under an `EmissionChain`, without its potentials; see `SpanCounts`."""

    def _read(self, chain: LinearChain) -> None:
        given = cast(EmissionChain, chain)
        if given.device.type != "cpu":
            scores = given.emissions.cpu(), given.transitions.cpu()
            given = EmissionChain(*scores, given.lengths, given.pairs)
        self.sums = given.sums  # on the CPU, also those of the marginals
        self.first = given.lengths.cumsum(0) - given.lengths

    def _mean_before(self, t: int, rows: Tensor, values: Tensor) -> Tensor:
        return self.sums.mean_before(self.first[rows] + t, values)

    def _mean_after(self, t: int, rows: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        means, block = self.sums.mean_after(self.first[rows] + t, values)
        # In BIO, the pairs that are not in the block are those that continue a span.
        return means, means if self.scheme.tag_format == "BIOES" else block


def _with_ones(values: Tensor, count: int) -> Tensor:
    """Add rows of ones behind values (b, X, K), up to a number of rows."""
    if len(values) == count:
        return values
    return torch.cat([values, values.new_ones(count - len(values), *values.shape[1:])])


def _mean(values: Tensor, pairs: Tensor) -> Tensor:
    """The mean of values (b, X, K) of the next tag for each tag, by the shares of the pairs."""
    given = pairs.sum(2, keepdim=True)
    after = torch.where(given > 0, pairs / given, 0.0)
    return torch.bmm(values, after.transpose(1, 2))


def _places(values: Integers) -> dict[int, Integers]:
    """Find where each value is."""
    order = numpy.argsort(values, kind="stable")
    distinct, first = numpy.unique(values[order], return_index=True)
    return dict(zip(distinct.tolist(), numpy.split(order, first[1:])))
