"""The analyses of sentences as sets of nested spans: each answer is computed once for a batch."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from numpy.typing import NDArray

from spacy_psa.pipeline.analyses import BatchAnalyses, SentenceAnalyses
from spacy_psa.pipeline.evidence import Node
from spacy_psa.pipeline.nested.places import holding, label_parts, parts_of, places, simple_labels
from spacy_psa.structs.nested_spans import NestedSpans
from spacy_psa.structs.span_cells import Tree


class NestedSentence(SentenceAnalyses):
    """The analyses of one sentence."""

    def posterior(self, start: int, end: int, label: str) -> float:
        dist = self.batch.dist
        row = dist.row(self.row, start - self.start, end - self.start)
        if row < 0:  # it is too long
            return 0.0
        columns = [number - 1 for number in holding(label, self.pipe.labels)]
        return float(self.marginals[row - dist.row(self.row, 0, 1), columns].sum())

    def above(self, least: float) -> list[tuple[int, int, str, float]]:
        """List the spans whose probability is at least `least`."""
        labels = self.pipe.labels
        names = simple_labels(labels)
        chances = self.marginals @ label_parts(labels).numpy()
        starts, ends = places(self.end - self.start, self.pipe._longest)
        result = [
            (self.start + int(starts[i]), self.start + int(ends[i]), names[k], float(chances[i, k]))
            for i, k in numpy.argwhere(chances >= least).tolist()
        ]
        return sorted(result, key=lambda span: (span[0], -span[1], span[2]))

    def _sample(self, n: int) -> list[Tree]:
        (drawn,) = self.batch.dist.split()[self.row].sample(n)
        return drawn

    def _named(self, own: Tree) -> list[Node]:
        return named(own, self.pipe.labels, self.start)


class NestedBatch(BatchAnalyses):
    """The analyses of the sentences of a batch, in double precision."""

    sentence = NestedSentence

    def __init__(self, pipe: Any, dist: NestedSpans):
        super().__init__(pipe, dist.double())

    def _marginals(self) -> list[NDArray[numpy.float64]]:
        sizes = torch.bincount(self.dist.sentence, minlength=len(self.dist.lengths)).tolist()
        return [part.numpy() for part in self.dist.marginals.double().cpu().split(sizes)]


def named(own: Tree, labels: Any, start: int) -> list[Node]:
    """Translate the spans of a sentence that begins at a token; joined labels become spans."""
    return [
        (start + s, start + e, label)
        for s, e, number in own
        for label in parts_of(labels[number - 1])
    ]
