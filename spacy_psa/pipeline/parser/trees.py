"""The analyses of sentences under a chart: each answer is computed once for a batch."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray
from thinc.types import Floats2d

from spacy_psa.errors import InputError
from spacy_psa.pipeline.analyses import Ranked
from spacy_psa.pipeline.evidence import Evidence
from spacy_psa.pipeline.parser.chart import (
    Constituent,
    Constraints,
    chart_constituents,
    label_shares,
    span_row,
)
from spacy_psa.pipeline.parser.constituents import JOIN, Sentence
from spacy_psa.structs.span_cells import Tree
from spacy_psa.structs.tree import SpanTree


class ParsedSentence(NamedTuple):
    """A tree of a sentence."""

    sentence: Sentence
    constituents: list[Constituent]
    """Its constituents in preorder, without their probabilities."""


class TreeBatch:
    """Answers about all sentences of a distribution over trees.

    Args:
        dist: the distributions of B sentences.
    """

    def __init__(self, dist: SpanTree):
        self.dist = dist
        self._ranked: tuple[int, list[list[tuple[float, Tree]]]] = (0, [])

    @cached_property
    def log_partitions(self) -> list[float]:
        """The log of the sum over all trees of each sentence; -inf if there is none."""
        return self.dist.log_partition.double().tolist()

    @cached_property
    def entropies(self) -> list[float]:
        """The entropy over the trees of each sentence, in nats."""
        return self.dist.entropy.tolist()

    @cached_property
    def marginals(self) -> list[NDArray[numpy.float64]]:
        """P(label over a span of words) for each sentence, (n (n + 1) / 2, L)."""
        sizes = [n * (n + 1) // 2 for n in self.dist.lengths.tolist()]
        parts = self.dist.span_marginals.double().cpu().split(sizes)
        return [part.numpy() for part in parts]

    def kbest(self, k: int) -> list[list[tuple[float, Tree]]]:
        """Find the k best trees of each sentence."""
        if self._ranked[0] < k:
            self._ranked = k, self.dist.kbest(k)
        return [ranked[:k] for ranked in self._ranked[1]]


class TreeSentence:
    """The analyses of one sentence; see `SentenceAnalyses`.

    Args:
        pipe: the `ConstituencyParser`.
        answers: those of its batch; None if the sentence is too long or has no words: then it has
            no tree.
        row: its place in the batch.
        scores: the scores of its spans.
        sentence: the sentence.
        known: the constraints that it was parsed with.
    """

    def __init__(
        self,
        pipe: Any,
        answers: TreeBatch | None,
        row: int,
        scores: Floats2d,
        sentence: Sentence,
        known: Constraints,
    ):
        self.pipe = pipe
        self.answers: Any = answers
        self.row = row
        self.scores = scores
        self.sentence = sentence
        self.known = known
        self.start, self.end = sentence.start, sentence.end

    @property
    def log_partition(self) -> float:
        return self.answers.log_partitions[self.row] if self.answers else 0.0

    @property
    def entropy(self) -> float:
        return self.answers.entropies[self.row] if self.answers else 0.0

    @property
    def marginals(self) -> NDArray[numpy.float64]:
        if not self.answers:
            return numpy.zeros((0, self.scores.shape[1]))
        return self.answers.marginals[self.row]

    def posterior(self, start: int, end: int, label: str) -> float:
        words = self.sentence.words
        first, last = numpy.searchsorted(words, [start, end]).tolist()
        if not self.answers or first == last:
            return 0.0
        if (first, last) in self.known.kept:
            return float(label in self.known.kept[first, last])
        holding = [label in each.split(JOIN) for each in self.pipe.labels]
        return float(self.marginals[span_row(first, last, len(words)), holding].sum())

    def kbest(self, k: int) -> Ranked:
        if not self.answers:
            return []
        return [(p, [self._parsed(tree)]) for p, tree in self.answers.kbest(k)[self.row]]

    def scored(self, k: int) -> list[tuple[float, list[Constituent]]]:
        """Find the k best trees, and the probability of each of their constituents.

        Returns:
            Pairs of the log probability of a tree and its constituents in preorder.
        """
        if not self.answers:
            return []
        own, scored = self._own(), []
        # Not those of its batch, which may be all sentences of a long text.
        for log_prob, tree in own.kbest(k)[0]:
            (shares,) = label_shares(own, [tree])
            labels = self.pipe.labels
            nodes = chart_constituents(tree, labels, self.sentence, shares, self.known.kept)
            scored.append((log_prob, nodes))
        return scored

    def sample(self, n: int) -> list[list[Any]]:
        if not self.answers:
            return [[] for _ in range(n)]
        (drawn,) = self._own().sample(n)
        return [[self._parsed(tree)] for tree in drawn]

    def given(self, doc: Any, evidence: Evidence) -> TreeSentence:
        if not self.answers:
            raise InputError(
                f"{self.pipe.name}: the sentence at token {self.start} has no words or more than "
                f"max_length = {self.pipe.max_length} tokens and is not parsed: leave out its "
                "evidence, or raise max_length"
            )
        known = Constraints.of(evidence, self.sentence, self.pipe.labels)
        dist = self.pipe._distribution_of([self.scores], [self.sentence], [known])
        return TreeSentence(self.pipe, TreeBatch(dist), 0, self.scores, self.sentence, known)

    @cached_property
    def _alone(self) -> SpanTree:
        dist = self.pipe._distribution_of([self.scores], [self.sentence], [self.known])
        return dist

    def _own(self) -> SpanTree:
        """Return the distribution over the trees of this sentence only."""
        dist: SpanTree = self.answers.dist
        return dist if len(dist.lengths) == 1 else self._alone

    def _parsed(self, tree: Tree) -> ParsedSentence:
        labels = self.pipe.labels
        nodes = chart_constituents(tree, labels, self.sentence, None, self.known.kept)
        return ParsedSentence(self.sentence, nodes)
