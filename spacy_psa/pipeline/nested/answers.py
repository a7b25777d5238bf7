"""The analyses of sentences as sets of nested spans: each answer is computed once for a batch."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from thinc.types import Floats2d

from spacy_psa.pipeline.analyses import Ranked
from spacy_psa.pipeline.evidence import Evidence, Node
from spacy_psa.pipeline.nested.places import holding, label_parts, parts_of, places, simple_labels
from spacy_psa.structs.nested_spans import NestedSpans
from spacy_psa.structs.span_cells import Tree


class NestedBatch:
    """Answers about all sentences of a distribution.

    Args:
        pipe: the `NestedSpanLabeler`.
        dist: the distributions of B sentences.

    Raises:
        ValueError: if a sentence has no analysis.
    """

    def __init__(self, pipe: Any, dist: NestedSpans):
        self.pipe = pipe
        self.dist = dist
        self._ranked: tuple[int, list[list[tuple[float, Tree]]]] = (0, [])

    @cached_property
    def log_partitions(self) -> list[float]:
        """The log of the sum over all analyses of each sentence; -inf if there is none."""
        return self.dist.log_partition.double().tolist()

    @cached_property
    def entropies(self) -> list[float]:
        """The entropy over the analyses of each sentence, in nats."""
        return self.dist.entropy.tolist()

    @cached_property
    def marginals(self) -> list[NDArray[numpy.float64]]:
        """P(label over a span) for each sentence, (spans, L)."""
        sizes = torch.bincount(self.dist.sentence, minlength=len(self.dist.lengths)).tolist()
        return [part.numpy() for part in self.dist.marginals.double().cpu().split(sizes)]

    def kbest(self, k: int) -> list[list[tuple[float, Tree]]]:
        """Find the k best sets of spans of each sentence."""
        if self._ranked[0] < k:
            self._ranked = k, self.dist.kbest(k)
        return [ranked[:k] for ranked in self._ranked[1]]


class NestedSentence:
    """The analyses of one sentence; see `SentenceAnalyses`.

    Args:
        answers: those of its batch.
        row: its place in the batch.
        scores: the output of the model for its spans.
        start: its first token.
    """

    def __init__(self, answers: NestedBatch, row: int, scores: Floats2d, start: int = 0):
        self.answers = answers
        self.row = row
        self.scores = scores
        self.start = start
        self.end = start + int(answers.dist.lengths[row])

    def at(self, start: int) -> NestedSentence:
        """Return the analyses of the sentence at another place of its doc."""
        return NestedSentence(self.answers, self.row, self.scores, start)

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
        dist = self.answers.dist
        row = dist.row(self.row, start - self.start, end - self.start)
        if row < 0:  # it is too long
            return 0.0
        columns = [number - 1 for number in holding(label, self.answers.pipe.labels)]
        return float(self.marginals[row - dist.row(self.row, 0, 1), columns].sum())

    def kbest(self, k: int) -> Ranked:
        ranked = self.answers.kbest(k)[self.row]
        return [(log_prob, self._nodes(own)) for log_prob, own in ranked]

    def sample(self, n: int) -> list[list[Any]]:
        (drawn,) = self.answers.dist.split()[self.row].sample(n)
        return [self._nodes(own) for own in drawn]

    def above(self, least: float) -> list[tuple[int, int, str, float]]:
        """List the spans whose probability is at least `least`."""
        labels = self.answers.pipe.labels
        names = simple_labels(labels)
        chances = self.marginals @ label_parts(labels).numpy()
        starts, ends = places(self.end - self.start, self.answers.pipe._longest)
        result = [
            (self.start + int(starts[i]), self.start + int(ends[i]), names[k], float(chances[i, k]))
            for i, k in numpy.argwhere(chances >= least).tolist()
        ]
        return sorted(result, key=lambda span: (span[0], -span[1], span[2]))

    def given(self, doc: Any, evidence: Evidence) -> NestedSentence:
        pipe = self.answers.pipe
        known = pipe._translated(doc, evidence, [(self.start, self.end)])
        answers = NestedBatch(pipe, pipe._given([self.scores], known).double())
        return NestedSentence(answers, 0, self.scores, self.start)

    def _nodes(self, own: Tree) -> list[Node]:
        return named(own, self.answers.pipe.labels, self.start)


def named(own: Tree, labels: Any, start: int) -> list[Node]:
    """Translate the spans of a sentence that begins at a token; joined labels become spans."""
    return [
        (start + s, start + e, label)
        for s, e, number in own
        for label in parts_of(labels[number - 1])
    ]
