"""All analyses of short sentences, one by one, to compare exact inference with."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy
import torch

from spacy_psa.pipeline.chain.span_tags import SpanScheme, TagFormat
from spacy_psa.ragged import unpad
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.emission_chain import EmissionChain
from spacy_psa.structs.pair_chain import PairChain, TagPairs

Span = tuple[int, int, str]
Analysis = tuple[Span, ...]


def analyses(n: int, labels: Sequence[str], start: int = 0) -> Iterator[Analysis]:
    """Every set of labelled spans of n tokens that do not overlap."""
    if start >= n:
        yield ()
        return
    yield from analyses(n, labels, start + 1)
    for end in range(start + 1, n + 1):
        for label in labels:
            for rest in analyses(n, labels, end):
                yield ((start, end, label), *rest)


def tag_path(spans: Sequence[Span], n: int, tags: Sequence[str]) -> list[int]:
    """The numbers, in `tags`, of the tags of an analysis."""
    names = ["O"] * n
    for start, end, label in spans:
        names[start:end] = [f"I-{label}"] * (end - start)
        names[start] = f"B-{label}"
        if f"E-{label}" in tags:
            names[end - 1] = f"E-{label}" if end - start > 1 else f"S-{label}"
    return [tags.index(name) for name in names]


class Truth(NamedTuple):
    """The analyses of a sentence and their probabilities."""

    values: list[Analysis]
    probabilities: numpy.ndarray

    def where(self, keep: Callable[[Analysis], bool]) -> "Truth":
        """Given that something is true of the analysis."""
        kept = [i for i, spans in enumerate(self.values) if keep(spans)]
        some = self.probabilities[kept]
        return Truth([self.values[i] for i in kept], some / some.sum())

    def share(self, keep: Callable[[Analysis], bool]) -> float:
        """P(something is true of the analysis)."""
        return float(sum(p for v, p in zip(self.values, self.probabilities) if keep(v)))

    def of(self, span: Span) -> float:
        """P(the analysis has a span)."""
        return self.share(lambda analysis: span in analysis)

    @property
    def best(self) -> Analysis:
        return self.values[int(self.probabilities.argmax())]

    @property
    def entropy(self) -> float:
        some = self.probabilities[self.probabilities > 0]
        return float(-(some * numpy.log(some)).sum())


def enumerate_all(potentials: Any, labels: Sequence[str], tags: Sequence[str]) -> Truth:
    """The distribution of log potentials (n, K, K) over the analyses of n tokens."""
    potentials = numpy.asarray(potentials, dtype="float64")
    n = len(potentials)
    values = list(analyses(n, labels))
    scores = []
    for spans in values:
        steps = tag_path(spans, n, tags)
        pairs = zip([0, *steps[:-1]], steps)
        scores.append(sum(potentials[t, before, tag] for t, (before, tag) in enumerate(pairs)))
    weights = numpy.exp(numpy.array(scores) - max(scores))
    return Truth(values, weights / weights.sum())


def enumerate_doc(pipe: Any, doc: Any) -> Truth:
    """The distribution over a doc of one sentence by a component's model."""
    k = len(pipe.tags)
    (scores,) = pipe.model.predict([doc])
    scores = numpy.asarray(scores)
    if scores.shape[1] == k:
        scores = numpy.repeat(scores[:, None], k, 1)
    elif scores.shape[1] < k * k:  # of the legal pairs alone, by tag
        legal = pipe.scheme.legal()[0]
        every = numpy.full((len(scores), k, k), -numpy.inf)
        every.transpose(0, 2, 1)[:, legal.T] = scores
        firsts = numpy.searchsorted(numpy.nonzero(legal.T)[0], numpy.arange(k))
        every[0, 0] = scores[0, firsts]
        scores = every
    return enumerate_all(scores.reshape(-1, k, k), pipe.labels, pipe.tags)


def agrees(spans: Sequence[Span], outside: Sequence[int]) -> Callable[[Analysis], bool]:
    """Whether an analysis has all of some spans, and none over the tokens `outside`."""

    def keep(analysis: Analysis) -> bool:
        inside = {i for start, end, _ in analysis for i in range(start, end)}
        return set(spans) <= set(analysis) and not inside & set(outside)

    return keep


def legal_chain(chain: LinearChain, scheme: SpanScheme) -> LinearChain:
    """The chain over what the scheme allows."""
    transitions, start, end = map(torch.from_numpy, scheme.legal())
    return chain.constrain(transitions=transitions, start=start, end=end)


def random_chain(
    tag_format: TagFormat, lengths: Sequence[int], seed: int, scale: float, labels: Sequence[str]
) -> tuple[SpanScheme, LinearChain]:
    """A chain over legal sequences with large random potentials."""
    scheme = SpanScheme(labels, tag_format)
    k = len(scheme.tags)
    generator = torch.Generator().manual_seed(seed)
    shape = (len(lengths), max(lengths), k, k)
    potentials = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    return scheme, legal_chain(LinearChain(potentials, torch.tensor(lengths)), scheme)


def random_emissions(
    tag_format: TagFormat, lengths: Sequence[int], seed: int, scale: float, labels: Sequence[str]
) -> tuple[SpanScheme, EmissionChain]:
    """A chain like `random_chain` that keeps emissions and transitions apart."""
    scheme = SpanScheme(labels, tag_format)
    k = len(scheme.tags)
    legal, start, end = scheme.legal()
    generator = torch.Generator().manual_seed(seed)
    emissions, transitions = (
        scale * torch.randn(rows, k, generator=generator, dtype=torch.float64)
        for rows in (sum(lengths), k)
    )
    chain = EmissionChain(emissions, transitions, torch.tensor(lengths), TagPairs(legal))
    ends = {"start": torch.from_numpy(start), "end": torch.from_numpy(end)}
    return scheme, cast(EmissionChain, chain.constrain(**ends))


def pair_chain(scheme: SpanScheme, chain: LinearChain) -> PairChain:
    """A chain over legal sequences as one over the legal pairs alone."""
    pairs = TagPairs(scheme.legal().transitions)
    flat = unpad(chain.potentials, chain.lengths)[:, pairs.previous, pairs.tag]
    flat[chain.lengths.cumsum(0) - chain.lengths, pairs.begins[:-1, None]] = chain.potentials[
        :, 0, 0
    ].T
    return PairChain(flat, chain.lengths, pairs)
