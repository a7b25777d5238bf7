"""How probable each labelled span is: exact posteriors of spans under a linear chain."""

from typing import Any

import numpy
from numpy.typing import NDArray
from torch import Tensor

from spacy_psa.pipeline.chain.span_tags import SpanScheme
from spacy_psa.structs.chain import LinearChain

Floats = NDArray[numpy.float64]
Integers = NDArray[numpy.int64]


class SpanPosteriors:
    """P(the analysis has this span with this label) for the spans of B sentences.

    chain: the distribution over legal tag sequences, of B sentences of at most n tokens,
    under whatever evidence there is.
    scheme: what the tags mean.

    A span is in the analysis if and only if its tokens have its tags (B I ... E, or S) and,
    in BIO, the token after it does not go on with it. A linear chain is a Markov chain, so
    the probability of that path is the product of P(first tag) and P(tag | tag before) along
    it, which a single forward-backward pass gives for all spans: the value is that of a
    constrained partition, exp(log Z of the analyses with the span - log Z), and is no product
    of the tokens' marginals.

    Errors: ValueError where a sentence has no analysis.
    """

    def __init__(self, chain: LinearChain, scheme: SpanScheme):
        marginals = _double(_array(chain.marginals))
        pairs = _array(chain.pairwise_marginals)  # large: only what is read is made double
        begins, insides, lasts = (scheme.columns(prefix) for prefix in "BIE")
        if not (marginals[:, 0].sum(1) > 0).all():
            raise ValueError("no tag sequence is possible for some sentence")
        self.lengths: Integers = chain.lengths.numpy()
        # All (B, n, L): P(a longer span begins here) ...
        self.begin = numpy.minimum(marginals[..., begins], 1)
        # ... and, after B (0) and after I (1), P(here is I | the tag before).
        before = [_shift(marginals[..., tags]) for tags in (begins, insides)]
        goes_on = [_double(pairs[..., tags, insides]) for tags in (begins, insides)]
        self.inside = [_ratio(pair, given) for pair, given in zip(goes_on, before)]
        # P(the span ends here | the tag before), and P(a span is this one token).
        if scheme.tag_format == "BIOES":
            pairs_with_end = [_double(pairs[..., tags, lasts]) for tags in (begins, insides)]
            self.last = [_ratio(pair, given) for pair, given in zip(pairs_with_end, before)]
            self.single = numpy.minimum(marginals[..., scheme.columns("S")], 1)
        else:
            ends = [self._ends(pairs, tags, insides) for tags in (begins, insides)]
            self.last = [inside * ends[1] for inside in self.inside]
            self.single = self.begin * ends[0]

    def _ends(self, pairs: Floats, tags: Integers, insides: Integers) -> Floats:
        """(B, n, L) of BIO: P(the token after here is not I of the label | the tag here).

        Summed, since 1 - P(I) would lose the digits of small ones; 1 at the sentence's end.
        """
        after = _double(pairs[:, :, tags])  # (B, n, L, K)
        stays = numpy.take_along_axis(after, insides[None, None, :, None], 3)[..., 0]
        others = after.copy()
        numpy.put_along_axis(others, insides[None, None, :, None], 0.0, 3)
        stops = others.sum(3)
        ends = _ratio(stops, stops + stays)
        ends = numpy.concatenate([ends[:, 1:], numpy.ones_like(ends[:, :1])], 1)
        ends[numpy.arange(len(ends)), self.lengths - 1] = 1.0
        return ends

    def of(self, rows: int | slice, start: int, end: int, label: int) -> Floats:
        """The posterior of a span of the sentences `rows`, (rows,) or a number.

        label: its place among the scheme's labels. 0 for an empty span.
        """
        if end - start < 2:
            found = self.single[rows, start, label]
            return found if end > start else numpy.zeros_like(found)
        begin = self.begin[rows, start, label]
        if end - start == 2:
            return begin * self.last[0][rows, end - 1, label]
        middle = self.inside[1][rows, start + 2 : end - 1, label].prod(-1)
        last = self.last[1][rows, end - 1, label]
        return begin * self.inside[0][rows, start + 1, label] * middle * last

    def above(self, floor: float) -> tuple[Integers, Floats]:
        """All spans whose posterior is at least `floor` and more than 0.

        Returns (spans, 4) of row, start, end and label, in that order, and their posteriors
        (spans,). What begins a span is no less probable than the span, so that only about
        tokens / floor beginnings are followed.
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
        found = numpy.concatenate([numpy.stack(part, 1) for part in spans])
        posteriors = numpy.concatenate(values)
        passing = (posteriors >= floor) & (posteriors > 0)
        found, posteriors = found[passing], posteriors[passing]
        order = numpy.lexsort(found.T[::-1])
        return found[order], posteriors[order]


def _array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().cpu().numpy()


def _double(values: NDArray[Any]) -> Floats:
    return values.astype("float64", copy=False)


def _shift(values: Floats) -> Floats:
    """What stands one token before; 0 before the first."""
    return numpy.concatenate([numpy.zeros_like(values[:, :1]), values[:, :-1]], 1)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """part / whole, 0 where the whole is 0; rounding never makes it more than 1."""
    return numpy.minimum(numpy.divide(part, whole, out=numpy.zeros_like(part), where=whole > 0), 1)
