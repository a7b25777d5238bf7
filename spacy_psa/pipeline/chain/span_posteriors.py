"""How probable each labelled span is: exact posteriors of spans under a linear chain."""

from collections.abc import Callable
from functools import partial

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from spacy_psa.pipeline.chain.refined_chain import RefinedChain
from spacy_psa.pipeline.chain.span_tags import SpanScheme
from spacy_psa.structs.chain import LinearChain

Floats = NDArray[numpy.float64]
Integers = NDArray[numpy.int64]
Posterior = Callable[[int, int, str], float]


class SpanPosteriors:
    """Computes P(the analysis has a span with a label) for the spans of B sentences.

    A span is in the analysis if and only if its tokens have its tags (B I ... E, or S) and, in BIO,
    the next token does not continue it. A linear chain is a Markov chain, so the probability of
    this path is the product of P(first tag) and P(tag | tag before) along it. A single
    forward-backward pass computes these for all spans. The result equals a constrained
    partition, exp(log Z of the analyses with the span - log Z); it is not a product of the tokens'
    marginals.

    Args:
        chain: the distribution over legal tag sequences of B sentences of at most n tokens, given
            the evidence.
        scheme: the meaning of the tags.

    Raises:
        ValueError: if a sentence has no analysis.
    """

    def __init__(self, chain: LinearChain, scheme: SpanScheme):
        marginals = _array(chain.marginals)
        begins, insides, lasts = (scheme.columns(prefix) for prefix in "BIE")
        if not (marginals[:, 0].sum(1) > 0).all():
            raise ValueError("no tag sequence is possible for a sentence of the batch")
        self.lengths: Integers = chain.lengths.numpy()
        # All are (B, n, L). P(the tag here is B):
        self.begin = numpy.minimum(marginals[..., begins], 1)
        # P(the tag here is I | the tag before), after B (0) and after I (1):
        before = [_shift(marginals[..., tags]) for tags in (begins, insides)]
        goes_on = [_pairs(chain, tags, insides) for tags in (begins, insides)]
        self.inside = [_ratio(pair, given) for pair, given in zip(goes_on, before)]
        # P(the span ends here | the tag before), and P(a span is just this token):
        if scheme.tag_format == "BIOES":
            pairs_with_end = [_pairs(chain, tags, lasts) for tags in (begins, insides)]
            self.last = [_ratio(pair, given) for pair, given in zip(pairs_with_end, before)]
            self.single = numpy.minimum(marginals[..., scheme.columns("S")], 1)
        else:
            ends = [
                self._ends(chain, tags, insides, stays)
                for tags, stays in zip([begins, insides], goes_on)
            ]
            self.last = [inside * ends[1] for inside in self.inside]
            self.single = self.begin * ends[0]

    def _ends(
        self, chain: LinearChain, before: Integers, insides: Integers, stays: Floats
    ) -> Floats:
        """Compute P(the token after here is not I of the label | the tag here) for BIO, (B, n, L).

        The tags here are those of `before`, and `stays` has the probabilities of the pairs with I.
        The others are summed, since 1 - P(I) would lose the digits of small values. It is 1 at the
        end of the sentence.
        """
        tags = torch.from_numpy(before), torch.from_numpy(insides)
        stops = _array(chain.marginals_but(*tags))
        ends = numpy.ones_like(stops)
        ends[:, :-1] = _ratio(stops, stops + stays)[:, 1:]
        ends[numpy.arange(len(ends)), self.lengths - 1] = 1.0
        return ends

    def of(self, rows: int | slice, start: int, end: int, label: int) -> Floats:
        """Look up the posterior of a span.

        Args:
            rows: a sentence, or several ones that all have the span.
            end: the token after its last one. An empty span has the posterior 0.

        Returns:
            (rows,) float64, or a single number for a single sentence.
        """
        if end - start < 2:
            single = self.single[rows, start, label]
            return single if end > start else numpy.zeros_like(single)
        begin = self.begin[rows, start, label]
        if end - start == 2:
            return begin * self.last[0][rows, end - 1, label]
        middle = self.inside[1][rows, start + 2 : end - 1, label].prod(-1)
        last = self.last[1][rows, end - 1, label]
        return begin * self.inside[0][rows, start + 1, label] * middle * last

    def above(self, floor: float) -> tuple[Integers, Floats]:
        """Find all spans whose posterior is at least `floor` and more than 0.

        The beginning of a span is at least as probable as the span, so only about tokens / floor
        beginnings are followed.

        Args:
            floor: a probability from 0 to 1.

        Returns:
            (spans, 4) int64, the sentence, start, end and label of each span, sorted by these; and
            the posteriors (spans,).
        """
        rows, starts, labels = numpy.nonzero(self.single > 0)
        spans, values = [(rows, starts, starts + 1, labels)], [self.single[rows, starts, labels]]
        rows, starts, labels = numpy.nonzero((self.begin >= floor) & (self.begin > 0))
        prefix = self.begin[rows, starts, labels]
        after_begin = True
        places = starts + 1
        while len(rows):
            alive = (places < self.lengths[rows]) & (prefix >= floor) & (prefix > 0)
            rows, starts, labels = rows[alive], starts[alive], labels[alive]
            places, prefix = places[alive], prefix[alive]
            step = 0 if after_begin else 1
            spans.append((rows, starts, places + 1, labels))
            values.append(prefix * self.last[step][rows, places, labels])
            prefix = prefix * self.inside[step][rows, places, labels]
            places = places + 1
            after_begin = False
        spans_found = numpy.concatenate([numpy.stack(part, 1) for part in spans])
        posteriors = numpy.concatenate(values)
        passing = (posteriors >= floor) & (posteriors > 0)
        spans_found, posteriors = spans_found[passing], posteriors[passing]
        order = numpy.lexsort(spans_found.T[::-1])
        return spans_found[order], posteriors[order]


def sentence_posteriors(chain: LinearChain, scheme: SpanScheme) -> list[Posterior]:
    """Return a function for each sentence of a chain: from start, end and label to the posterior.

    ValueError if a sentence has no analysis.
    """
    refined = chain if isinstance(chain, RefinedChain) else None
    scheme = refined.scheme if refined else scheme
    posteriors = SpanPosteriors(chain, scheme)

    def posterior(row: int, start: int, end: int, label: str) -> float:
        name = refined.name(row, start, label) if refined else label
        return float(posteriors.of(row, start, end, scheme.label_index(name)))

    return [partial(posterior, row) for row in range(len(chain.lengths))]


def _array(tensor: Tensor) -> Floats:
    return tensor.detach().cpu().double().numpy()


def _pairs(chain: LinearChain, previous: Integers, tags: Integers) -> Floats:
    """Look up the probabilities of pairs of tags, (B, n, pairs)."""
    return _array(chain.marginals_of(torch.from_numpy(previous), torch.from_numpy(tags)))


def _shift(values: Floats) -> Floats:
    """Return for each token the value of the token before it, and 0 for the first."""
    return numpy.concatenate([numpy.zeros_like(values[:, :1]), values[:, :-1]], 1)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Compute part / whole, 0 if the whole is 0, and never more than 1 by rounding."""
    return numpy.minimum(numpy.divide(part, whole, out=numpy.zeros_like(part), where=whole > 0), 1)
