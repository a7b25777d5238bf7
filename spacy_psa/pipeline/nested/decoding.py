"""The analyses of sentences as sets of nested spans, and the ways to choose one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc
from torch import Tensor

from spacy_psa.pipeline.analyses import BatchAnalyses, SentenceAnalyses
from spacy_psa.pipeline.evidence import Node, cross, overlap
from spacy_psa.pipeline.inference import Batch, Infer, SpanPrediction, joined
from spacy_psa.pipeline.nested.places import holding, label_parts, parts_of, places, simple_labels
from spacy_psa.ragged import batches_by_size
from spacy_psa.sentences import document_numbers, sentence_bounds
from spacy_psa.structs.moments import span_moments
from spacy_psa.structs.nested_f1 import Choices, best_expected_f1, choices
from spacy_psa.structs.nested_spans import NestedSpans
from spacy_psa.structs.span_cells import Tree

MBR_CELLS = 1_000_000  # spans of any length in the docs that are decoded together


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
        self.clash = overlap if pipe.layers == "label" else cross

    def span_moments(self) -> tuple[Tensor, Tensor]:
        """Compute the mean and the variance of the number of spans of each label, (B, labels)."""
        return span_moments(self.dist, label_parts(self.pipe.labels))

    def above(self, least: float) -> list[list[tuple[int, int, str, float]]]:
        """List the spans whose probability is at least `least`, over the tokens of a sentence."""
        return [
            [(*node, p) for node, p in zip(own.spans, own.scores or ())]
            for own in above(self, self.pipe.labels, least)
        ]

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


def most_probable(batch: Batch, labels: Sequence[str], scores: bool) -> list[SpanPrediction]:
    """Choose the most probable set of each sentence of a batch."""
    dist: NestedSpans = batch.dist
    best = dist.argmax
    spans = [named(own, labels, 0) for own in best]
    if not scores:
        return list(map(SpanPrediction, spans))
    chances = dist.marginals.double() @ label_parts(labels).to(dist.labelled.device)
    return [
        SpanPrediction(
            nodes, _chances([dist.row(b, s, e) for s, e, _ in own], own, labels, chances)
        )
        for b, (nodes, own) in enumerate(zip(spans, best, strict=True))
    ]


def best_f1(docs: list[Doc], infer: Infer, labels: Sequence[str]) -> list[SpanPrediction]:
    """Choose the spans of each document with the best expected F1.

    Docs that follow each other may be one document; see `spacy_psa.sentences.same_document`.
    """
    parts = label_parts(labels)
    predictions = [joined([])] * len(docs)
    owner = numpy.array(document_numbers(docs))
    sizes = [sum((e - s) * (e - s + 1) // 2 for s, e in sentence_bounds(doc)) for doc in docs]
    of_documents = numpy.bincount(owner, sizes).astype(int).tolist() if docs else []
    for documents in batches_by_size(of_documents, MBR_CELLS):
        numbers = numpy.isin(owner, documents).nonzero()[0].tolist()
        read = infer([docs[i] for i in numbers], lambda batch: choices(batch.dist, parts))
        sentences = [each for own in read for _, each in own]
        of_sentence = [owner[i] for i, own in zip(numbers, read, strict=True) for _ in own]
        trees = iter(best_expected_f1(sentences, of_sentence))
        for i, own in zip(numbers, read, strict=True):
            predictions[i] = joined(
                [(start, _scored(each, next(trees), labels)) for start, each in own]
            )
    return predictions


def _scored(each: Choices, tree: Tree, labels: Sequence[str]) -> SpanPrediction:
    rows = [each.dist.row(0, start, end) for start, end, _ in tree]
    if each.chances is None:
        scores = each.dist.labelled[rows, 0].tolist()
    else:
        scores = _chances(rows, tree, labels, each.chances)
    return SpanPrediction(named(tree, labels, 0), scores)


def above(batch: Batch | NestedBatch, labels: Sequence[str], least: float) -> list[SpanPrediction]:
    """Choose the spans whose probability is at least `least`, in preorder."""
    dist: NestedSpans = batch.dist
    dist._check_possible(dist._log_z)
    chances = (dist.marginals.double() @ label_parts(labels).to(dist.labelled.device)).cpu()
    names = simple_labels(labels)
    cells = dist._cells
    result: list[list[tuple[Node, float]]] = [[] for _ in dist.lengths]
    for row, column in (chances >= least).nonzero().tolist():
        cell = int(cells.band[row])
        node = (int(cells.start[cell]), int(cells.end[cell]), names[column])
        result[int(cells.sentence[cell])].append((node, float(chances[row, column])))
    for own in result:
        own.sort(key=lambda pair: (pair[0][0], -pair[0][1], pair[0][2]))
    return [SpanPrediction([node for node, _ in own], [p for _, p in own]) for own in result]


def _chances(rows: Sequence[int], own: Tree, labels: Sequence[str], chances: Tensor) -> list[float]:
    """List the probability of each span of a set, in the order of `named`."""
    names = simple_labels(labels)
    return [
        float(chances[row, names.index(part)])
        for row, (*_, number) in zip(rows, own, strict=True)
        for part in parts_of(labels[number - 1])
    ]
