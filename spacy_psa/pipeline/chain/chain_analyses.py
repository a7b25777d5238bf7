"""The analyses of sentences under a linear chain: each answer is computed once for a batch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from spacy_psa.pipeline.analyses import BatchAnalyses, SentenceAnalyses
from spacy_psa.pipeline.chain.refined_chain import RefinedChain
from spacy_psa.pipeline.chain.span_posteriors import Posterior, SpanPosteriors
from spacy_psa.pipeline.chain.span_tags import Labelled, SpanScheme
from spacy_psa.pipeline.evidence import OUTSIDE, Evidence, overlap
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.moments import count_moments

TagSequences = list[tuple[float, NDArray[numpy.int64]]]
Scored = tuple[int, int, str, float]
"""A span or the tag of a token: start, end, label and probability."""


class Known(NamedTuple):
    """The tags and spans that are possible in a sentence of n tokens, given the evidence."""

    allowed: NDArray[numpy.bool_] | None = None
    """(n, K) bool, the tags that each token may have; None for all."""
    weights: Mapping[Labelled, float] = {}
    """The number that is added to the log odds of a span (start, end, label) over the tokens of
    the sentence; -inf for a span that no analysis has."""


def what_is_known(evidence: Evidence, length: int, scheme: SpanScheme) -> Known:
    """Find the tags that evidence on a sentence of `length` tokens allows, and weights of spans."""
    forbidden = [
        (start, end, each)
        for start, end, label in evidence.forbidden
        for each in ([label] if label else scheme.labels)
    ]
    weights = {**evidence.suggested, **dict.fromkeys(forbidden, -math.inf)}
    if not evidence.required and not evidence.allowed:
        return Known(None, weights)
    allowed = numpy.ones((length, len(scheme.tags)), dtype=bool)
    for start, end, label in evidence.required:
        there = numpy.zeros_like(allowed[start:end])
        for each in [label] if label else scheme.labels:
            tags = scheme.encode(end - start, [(0, end - start, each)])
            there[numpy.arange(end - start), tags] = True
            allowed[end : end + 1, scheme.tag("I", each)] = False  # the span does not continue
        allowed[start:end] &= there
    label_of = [OUTSIDE, *(label for label in scheme.labels for _ in scheme.prefixes)]
    for i, labels in evidence.allowed.items():
        allowed[i] &= [label in labels for label in label_of]
    return Known(allowed, weights)


class ChainSentence(SentenceAnalyses):
    """The analyses of one sentence."""

    def posterior(self, start: int, end: int, label: str) -> float:
        posterior: Posterior = self.batch.posteriors[self.row]
        return posterior(start - self.start, end - self.start, label)

    def above(self, least: float) -> list[Scored]:
        """List the spans whose probability is at least `least`, or the tags of each token."""
        return [
            (start + self.start, end + self.start, label, probability)
            for start, end, label, probability in self.pipe._above(self.batch, self.row, least)
        ]

    def _sample(self, n: int) -> list[Any]:
        chain = self.batch.dist.select(torch.tensor([self.row]))
        (drawn,) = chain.sample(n)
        if isinstance(chain, RefinedChain):
            return [chain.base[0][tags.cpu()] for tags in drawn]
        return list(drawn)

    def _named(self, own: Any) -> list[Any]:
        return self.pipe._named(own.tolist(), self.start)


class ChainBatch(BatchAnalyses):
    """The analyses of the sentences of a batch, in double precision."""

    sentence = ChainSentence
    clash = staticmethod(overlap)

    def __init__(self, pipe: Any, dist: LinearChain):
        super().__init__(pipe, dist.double())

    def _marginals(self) -> list[NDArray[numpy.float64]]:
        marginals = self.dist.marginals
        if isinstance(self.dist, RefinedChain):
            marginals = self.dist.fold(marginals)
        rows = zip(marginals.cpu().numpy(), self.dist.lengths.tolist(), strict=True)
        return [row[:n] for row, n in rows]

    @cached_property
    def posteriors(self) -> list[Posterior]:
        """For each sentence, the function from start, end and label of a span to P(span)."""
        return self.pipe._posteriors(self.dist)

    def span_moments(self) -> tuple[Tensor, Tensor]:
        """Compute the mean and the variance of the number of spans of each label, (B, labels)."""
        scheme = self.pipe.scheme
        weights = torch.zeros(len(scheme.tags), len(scheme.labels))
        for prefix in "BS":
            weights[scheme.columns(prefix), range(len(scheme.labels))] = 1.0
        refined = isinstance(self.dist, RefinedChain)
        return count_moments(self.dist, weights[self.dist.base] if refined else weights)

    def above(self, least: float) -> list[list[Scored]]:
        """List the spans whose probability is at least `least`, over the tokens of a sentence."""
        refined = self.dist if isinstance(self.dist, RefinedChain) else None
        scheme = refined.scheme if refined else self.pipe.scheme
        spans: list[list[Scored]] = [[] for _ in self.dist.lengths]
        places, values = SpanPosteriors(self.dist, scheme).above(least)
        for (row, start, end, index), value in zip(places.tolist(), values.tolist()):
            name = scheme.labels[index]
            label = refined.label(row, name) if refined else name
            spans[row].append((start, end, label, value))
        return spans

    def _kbest(self, k: int) -> list[TagSequences]:
        return [ranked for part in self.dist.parts() for ranked in best_tags(part, k)]


def best_tags(chain: LinearChain, k: int) -> list[TagSequences]:
    """Find the k best tag sequences of each sentence of a chain, over the tags of the component.

    They are pairs of a log probability and the tags (length,), best first, or fewer than k if the
    sentence has fewer. ValueError if it has none.
    """
    # Time and memory grow with k, so ask for no more sequences than there are.
    most = float(chain.uniform().log_partition.max())
    if most < math.log(k):
        k = max(1, round(math.exp(most)))
    sequences = chain.kbest(k)
    if not all(sequences):
        raise ValueError("no tag sequence is possible for a sentence of the batch")
    arrays = [[(p, tags.numpy(force=True)) for p, tags in ranked] for ranked in sequences]
    if not isinstance(chain, RefinedChain):
        return arrays
    bases = chain.base.numpy()
    return [[(p, base[tags]) for p, tags in ranked] for base, ranked in zip(bases, arrays)]
