"""The analyses of sentences under a linear chain: each answer is computed once for a batch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy
import torch
from numpy.typing import NDArray
from thinc.types import Floats2d

from spacy_psa.pipeline.analyses import Ranked
from spacy_psa.pipeline.chain.refined_chain import RefinedChain
from spacy_psa.pipeline.chain.span_posteriors import Posterior
from spacy_psa.pipeline.chain.span_tags import Labelled
from spacy_psa.pipeline.evidence import Evidence
from spacy_psa.structs.chain import LinearChain

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


class ChainBatch:
    """Answers about all sentences of a chain.

    Args:
        pipe: the `ChainLabeler`.
        chain: the distributions of B sentences over tag sequences, in double precision.
    """

    def __init__(self, pipe: Any, chain: LinearChain):
        self.pipe = pipe
        self.chain = chain
        self._ranked: tuple[int, list[TagSequences]] = (0, [])

    @cached_property
    def log_partitions(self) -> list[float]:
        """The log of the sum over all analyses of each sentence; -inf if there is none."""
        return self.chain.log_partition.tolist()

    @cached_property
    def entropies(self) -> list[float]:
        """The entropy over the analyses of each sentence, in nats."""
        return self.chain.entropy.tolist()

    @cached_property
    def marginals(self) -> list[NDArray[numpy.float64]]:
        """P(tag) for each token of each sentence, (n, K)."""
        marginals = self.chain.marginals
        if isinstance(self.chain, RefinedChain):
            marginals = self.chain.fold(marginals)
        rows = zip(marginals.cpu().numpy(), self.chain.lengths.tolist(), strict=True)
        return [row[:n] for row, n in rows]

    @cached_property
    def posteriors(self) -> list[Posterior]:
        """For each sentence, the function from start, end and label of a span to P(span)."""
        return self.pipe._posteriors(self.chain)

    def kbest(self, k: int) -> list[TagSequences]:
        """Find the k best tag sequences of each sentence, over the tags of the component."""
        if self._ranked[0] < k:
            self._ranked = k, best_tags(self.chain, k)
        return [ranked[:k] for ranked in self._ranked[1]]


class ChainSentence:
    """The analyses of one sentence; see `SentenceAnalyses`.

    Args:
        answers: those of its batch.
        row: its place in the batch.
        scores: the output of the model for its tokens.
        start: its first token.
    """

    def __init__(self, answers: ChainBatch, row: int, scores: Floats2d, start: int = 0):
        self.answers = answers
        self.row = row
        self.scores = scores
        self.start = start
        self.end = start + len(scores)

    def at(self, start: int) -> ChainSentence:
        """Return the analyses of the sentence at another place of its doc."""
        return ChainSentence(self.answers, self.row, self.scores, start)

    @property
    def log_partition(self) -> float:
        return self.answers.log_partitions[self.row]

    @property
    def entropy(self) -> float:
        return self.answers.entropies[self.row]

    @property
    def marginals(self) -> NDArray[numpy.float64]:
        return self.answers.marginals[self.row]

    def posterior(self, start: int, end: int, label: str) -> float:
        return self.answers.posteriors[self.row](start - self.start, end - self.start, label)

    def kbest(self, k: int) -> Ranked:
        named, start = self.answers.pipe._named, self.start
        ranked = self.answers.kbest(k)[self.row]
        return [(log_prob, named(tags.tolist(), start)) for log_prob, tags in ranked]

    def sample(self, n: int) -> list[list[Any]]:
        chain = self.answers.chain.select(torch.tensor([self.row]))
        (drawn,) = chain.sample(n)
        if isinstance(chain, RefinedChain):
            drawn = [chain.base[0][tags.cpu()] for tags in drawn]
        return [self.answers.pipe._named(tags.tolist(), self.start) for tags in drawn]

    def above(self, least: float) -> list[Scored]:
        """List the spans whose probability is at least `least`, or the tags of each token."""
        return [
            (start + self.start, end + self.start, label, probability)
            for start, end, label, probability in self.answers.pipe._above(
                self.answers, self.row, least
            )
        ]

    def given(self, doc: Any, evidence: Evidence) -> ChainSentence:
        pipe = self.answers.pipe
        known = pipe._translated(doc, evidence, [(self.start, self.end)])
        chain = pipe._given([self.scores], known).double()
        return ChainSentence(ChainBatch(pipe, chain), 0, self.scores, self.start)


def exact(chain: LinearChain) -> LinearChain:
    """Convert a chain to double precision.

    Raises:
        ValueError: if a sentence has no analysis.
    """
    chain = chain.double()
    if (chain.log_partition == -torch.inf).any():
        raise ValueError("no tag sequence is possible for a sentence of the batch")
    return chain


def best_tags(chain: LinearChain, k: int) -> list[TagSequences]:
    """Find the k best tag sequences of each sentence of a chain, over the tags of the component.

    Returns:
        For each sentence, pairs of a log probability and the tags (length,), best first. There
        are fewer than k if the sentence has fewer tag sequences.

    Raises:
        ValueError: if a sentence has no tag sequence.
    """
    # Time and memory grow with k, so ask for no more sequences than there are.
    possible = torch.where(chain.potentials > -torch.inf, 0.0, -torch.inf)
    most = float(LinearChain(possible, chain.lengths).log_partition.max())
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
