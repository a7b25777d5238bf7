"""The analyses of sentences under a chart: ways to choose a tree, and its constituents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from spacy_psa.errors import InputError
from spacy_psa.pipeline.analyses import BatchAnalyses, SentenceAnalyses
from spacy_psa.pipeline.evidence import Evidence
from spacy_psa.pipeline.inference import Batch
from spacy_psa.pipeline.parser.chart import Known, Place, span_row
from spacy_psa.pipeline.parser.constituents import FLAT, JOIN, Sentence, token_nodes
from spacy_psa.structs.span_cells import Tree
from spacy_psa.structs.tree import SpanTree
from spacy_psa.structs.tree_f1 import best_expected_f1

Decode = Literal["cky", "mbr"]
Shares = NDArray[numpy.floating[Any]]


class Constituent(NamedTuple):
    """A constituent over the tokens of a doc."""

    start: int
    end: int
    label: str
    confidence: float
    """The posterior probability; 0 if it was not asked for, or the sentence was not parsed."""


class ParsedSentence(NamedTuple):
    """A tree of a sentence."""

    sentence: Sentence
    constituents: list[Constituent]
    """Its constituents in preorder, without their probabilities."""


class TreeSentence(SentenceAnalyses):
    """The analyses of one sentence; `known` is what it was parsed with, a `Known`."""

    @property
    def sentence(self) -> Sentence:
        """The sentence with its words."""
        return self.known.sentence

    def posterior(self, start: int, end: int, label: str) -> float:
        words, kept = self.sentence.words, self.known.constraints.kept
        first, last = numpy.searchsorted(words, [start, end]).tolist()
        if isinstance(self.batch, NoTrees) or first == last:
            return 0.0
        if (first, last) in kept:
            return float(label in kept[first, last])
        holding = [label in each.split(JOIN) for each in self.pipe.labels]
        return float(self.marginals[span_row(first, last, len(words)), holding].sum())

    def scored(self, k: int) -> list[tuple[float, list[Constituent]]]:
        """Find the k best trees, and the probability of each of their constituents.

        Returns:
            Pairs of the log probability of a tree and its constituents in preorder.
        """
        if isinstance(self.batch, NoTrees):
            return []
        scored = []
        # Not those of its batch, which may be all sentences of a long text.
        for log_prob, tree in self._own.kbest(k)[0]:
            (shares,) = label_shares(self._own, [tree])
            scored.append((log_prob, self._constituents(tree, shares)))
        return scored

    def given(self, doc: Any, evidence: Evidence) -> SentenceAnalyses:
        if isinstance(self.batch, NoTrees):
            raise InputError(
                f"{self.pipe.name}: the sentence at token {self.start} has no words or more than "
                f"max_length = {self.pipe.max_length} tokens and is not parsed: leave out its "
                "evidence, or raise max_length"
            )
        return super().given(doc, evidence)

    def sample(self, n: int) -> list[list[Any]]:
        return [[] for _ in range(n)] if isinstance(self.batch, NoTrees) else super().sample(n)

    def _sample(self, n: int) -> list[Tree]:
        (drawn,) = self._own.sample(n)
        return drawn

    @cached_property
    def _own(self) -> SpanTree:
        """The distribution over the trees of this sentence only."""
        dist: SpanTree = self.batch.dist
        return dist if len(dist.lengths) == 1 else self.pipe._given([self.scores], [self.known])

    def _named(self, own: Tree) -> list[ParsedSentence]:
        return [ParsedSentence(self.sentence, self._constituents(own))]

    def _constituents(self, tree: Tree, shares: Shares | None = None) -> list[Constituent]:
        kept = self.known.constraints.kept
        return chart_constituents(tree, self.pipe.labels, self.sentence, shares, kept)


class TreeBatch(BatchAnalyses):
    """The analyses of the sentences of a batch."""

    sentence = TreeSentence

    def _marginals(self) -> list[NDArray[numpy.float64]]:
        sizes = [n * (n + 1) // 2 for n in self.dist.lengths.tolist()]
        return [part.numpy() for part in self.dist.span_marginals.double().cpu().split(sizes)]


class NoTrees(TreeBatch):
    """The analyses of a sentence that is too long or has no words, so that it has no tree."""

    def __init__(self, pipe: Any):
        super().__init__(pipe, None)
        self.log_partitions, self.entropies = [0.0], [0.0]

    def kbest(self, k: int) -> list[list[tuple[float, Tree]]]:
        return [[]]

    def _marginals(self) -> list[NDArray[numpy.float64]]:
        return [numpy.zeros((0, len(self.pipe.labels)))]


class Parse(NamedTuple):
    """The prediction for a doc or a sentence."""

    constituents: list[Constituent]
    """The constituents of the best tree of each sentence, in preorder."""
    tags: dict[int, str]
    """The tag of each word, by the number of its token; empty if there is no tag head."""


def parses(
    batch: Batch, labels: Sequence[str], tags: Sequence[str], decode: Decode, scores: bool
) -> Iterator[Parse]:
    """Choose the tree of each sentence of a batch, and the best tags of its words."""
    if decode == "cky":
        trees = batch.dist.argmax
    else:
        trees = best_expected_f1(batch.dist, label_parts(labels))[0]
    shares = label_shares(batch.dist, trees) if scores else [None] * len(trees)
    best: list[dict[int, str]] = [{} for _ in trees]
    for own, array, ((start, _, words), _) in zip(best, batch.tags, batch.known):
        scored: Any = array
        numbers = scored.argmax(1)[words - start]
        own.update((i, tags[number]) for i, number in zip(words.tolist(), numbers.tolist()))
    for tree, share, own, known in zip(trees, shares, best, batch.known, strict=True):
        kept = known.constraints.kept
        yield Parse(chart_constituents(tree, labels, known.sentence, share, kept), own)


def flat_parse(known: Known, labels: Sequence[str]) -> Parse:
    """Put the first label over all words of a sentence that is too long, if it has words."""
    (_, _, words), constraints = known
    if not len(words):
        return Parse([], {})
    given = {place: chain for place, chain in constraints.required if chain}
    given |= constraints.kept
    tree = [(0, len(words), 1)]
    return Parse(chart_constituents(tree, labels, known.sentence, None, given), {})


def joined(parts: Sequence[Parse]) -> Parse:
    """Join the parses of the sentences of a doc."""
    tags = {i: tag for part in parts for i, tag in part.tags.items()}
    return Parse([node for part in parts for node in part.constituents], tags)


def chart_constituents(
    tree: Tree,
    labels: Sequence[str],
    sentence: Sentence,
    shares: Shares | None = None,
    kept: Mapping[Place, Sequence[str]] | None = None,
) -> list[Constituent]:
    """Translate a tree of the chart into constituents over tokens.

    The posterior of a constituent is the sum over all chains over its words that hold its label.

    Args:
        labels: the labels of the chart; `labels[i]` has the number i + 1 in the tree.
        shares: the `label_shares` of the tree; None for no posteriors.
        kept: see `Constraints`; these chains are certain.
    """
    kept = kept or {}
    nodes = [
        (start, end, labels[number - 1], place)
        for place, (start, end, number) in enumerate(tree)
        if (start, end) not in kept
    ]
    nodes += [(start, end, JOIN.join(chain), -1) for (start, end), chain in kept.items()]
    nodes.sort(key=lambda node: (node[0], -node[1]))
    constituents = []
    chains = token_nodes([node[:3] for node in nodes], sentence.words)
    for (*_, place), chain in zip(nodes, chains):
        for first, last, label in chain:
            confidence = 0.0
            if shares is not None and place < 0:
                confidence = 1.0
            elif shares is not None:
                holding = [label in each.split(JOIN) for each in labels]
                confidence = float(shares[place, holding].sum())
            constituents.append(Constituent(first, last, label, confidence))
    return constituents


def label_shares(dist: SpanTree, trees: list[Tree]) -> list[Shares]:
    """Compute the marginal probability of each label over the words of each constituent of a tree.

    `trees` has a tree for each sentence; the result has an array (constituents, L - 1) for each.
    """
    marginals = dist.span_marginals
    shares, first = [], 0
    for n, tree in zip(dist.lengths.tolist(), trees, strict=True):
        rows = [first + span_row(start, end, n) for start, end, _ in tree]
        shares.append(marginals[rows].cpu().numpy())
        first += n * (n + 1) // 2
    return shares


def label_parts(labels: Sequence[str]) -> Tensor:
    """Find the constituents in each label of a chart: (L - 1, P) float64, 0 or 1.

    A second NP of one label is another constituent than its first one, as PARSEVAL counts: a label
    with three of them and one with one have one in common.
    """
    chains = [[] if label == FLAT else label.split(JOIN) for label in labels]
    parts = [{(name, i) for name in chain for i in range(chain.count(name))} for chain in chains]
    number = {part: column for column, part in enumerate(sorted(set().union(*parts)))}
    has = torch.zeros(len(labels), len(number), dtype=torch.float64)
    for row, own in enumerate(parts):
        has[row, [number[part] for part in own]] = 1
    return has
