"""Constituents that must or must not be in the trees of a doc, as evidence for the chart."""

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy
from spacy.tokens import Doc

from spacy_psa.errors import InputError
from spacy_psa.pipeline.asked_spans import Asked, read_spans
from spacy_psa.pipeline.parser.constituents import FLAT, JOIN, Node, Sentence
from spacy_psa.pipeline.parser.doc_evidence import numbers_of
from spacy_psa.structs.tree import SpanTree

if TYPE_CHECKING:
    from nltk import Tree


class TreeDecoding(NamedTuple):
    """The best trees of a doc that agree with evidence.

    Examples:
        >>> trees = [(-0.5, "(S Go)"), (-1.2, "(NP Go)")]
        >>> constituents = [[(0, 1, "S", 0.6)], [(0, 1, "NP", 0.3)]]
        >>> decoding = TreeDecoding([trees], [constituents], log_evidence=-0.1)
        >>> decoding.best
        ['(S Go)']
    """

    trees: "list[list[tuple[float, Tree]]]"
    """For each sentence pairs of a log probability, given the evidence, and a tree; best first."""
    constituents: "list[list[list[tuple[int, int, str, float]]]]"
    """The constituents of each of these trees with their probabilities given the evidence."""
    log_evidence: float
    """The log probability of the evidence before it was known."""

    @property
    def best(self) -> "list[Tree]":
        """The best tree of each sentence that has one."""
        return [ranked[0][1] for ranked in self.trees if ranked]


class TreeEvidence(NamedTuple):
    """What is known of the tree of a sentence; an empty label stands for any label.

    Examples:
        >>> any(TreeEvidence([], []))
        False
    """

    required: list[Node]
    """(start, end, label) over the words of the sentence."""
    forbidden: list[Node]


def constrained(trees: SpanTree, known: list[TreeEvidence], labels: Iterable[str]) -> SpanTree:
    """Condition a distribution on the evidence on its sentences.

    Args:
        trees: the distribution of B sentences.
        known: the evidence on each of them.
        labels: the labels of the chart, with unary chains joined. Each label of a chain counts.

    Examples:
        >>> import torch
        >>> trees = SpanTree(torch.zeros(1, 4, 4, 3), torch.tensor([3]))
        >>> evidence = TreeEvidence([(0, 2, "NP")], [])
        >>> given = constrained(trees, [evidence], ["NP", "S NP"])
        >>> bool(given.log_partition < trees.log_partition)
        True
    """
    if not any(map(any, known)):
        return trees
    labels = tuple(labels)

    def numbered(nodes: list[Node]) -> list[tuple[int, int, list[int]]]:
        return [(start, end, _holding(labels, label)) for start, end, label in nodes]

    return trees.constrain(
        required=[numbered(evidence.required) for evidence in known],
        forbidden=[numbered(evidence.forbidden) for evidence in known],
    )


def _holding(labels: Sequence[str], label: str) -> list[int]:
    """List the numbers of the labels of the chart that hold a label, or any."""
    found = numbers_of([label] if label else [], labels)
    return [number for number in found if label or labels[number - 1] != FLAT]


def read_evidence(
    name: str,
    doc: Doc,
    sentences: list[Sentence],
    labels: Iterable[str],
    require: Iterable[Asked] = (),
    forbid: Iterable[Asked] = (),
) -> list[TreeEvidence]:
    """Read the constituents that a user requires and forbids.

    White space at the ends of a constituent does not count.

    Args:
        name: the name of the component, for errors.
        doc: the doc.
        sentences: its sentences.
        labels: the labels of the chart.
        require: the constituents that the trees must have.
        forbid: the constituents that they must not have.

    Returns:
        The evidence on each sentence.

    Raises:
        InputError: if the evidence contradicts itself, and for what is no constituent or label.

    Examples:
        >>> import spacy
        >>> from spacy_psa.pipeline.parser.constituents import word_sentences
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> read_evidence("parser", doc, word_sentences(doc), ["S VP"], [(1, 3, "VP")])
        [TreeEvidence(required=[(1, 3, 'VP')], forbidden=[])]
    """
    single = sorted({label for chain in labels for label in chain.split(JOIN)} - {FLAT})
    found = [TreeEvidence([], []) for _ in sentences]
    for required, asked in ((True, require), (False, forbid)):
        for span in read_spans(name, doc, asked, single):
            place = _place(span, sentences)
            if place is None and required:
                raise InputError(
                    f"{name}: {_shown(doc, span)} is required, but it has no word or a sentence "
                    "ends inside of it, so no tree has it: leave it out"
                )
            if place is not None:
                row, node = place
                (found[row].required if required else found[row].forbidden).append(node)
                _check(name, doc, sentences[row], found[row])
    return found


def tree_gain(name: str, doc: Doc, before: SpanTree, after: SpanTree) -> float:
    """Compute the log probability of evidence.

    Args:
        name: the name of the component, for the error.
        doc: the doc.
        before: the distribution without the evidence.
        after: the distribution given the evidence.

    Raises:
        InputError: if no tree agrees.
    """
    gain = float((after.log_partition.double() - before.log_partition.double()).sum())
    if not math.isfinite(gain):
        raise InputError(
            f"{name}: no tree of a sentence of {doc.text[:100]!r} agrees with all of the evidence: "
            "leave out some of it"
        )
    return gain


def _place(span: Node, sentences: list[Sentence]) -> tuple[int, Node] | None:
    """Find the sentence of a span, and the span over its words."""
    start, end, label = span
    for row, sentence in enumerate(sentences):
        if sentence.start <= start and end <= sentence.end:
            one, other = numpy.searchsorted(sentence.words, [start, end]).tolist()
            return (row, (one, other, label)) if one < other else None
    return None


def _check(name: str, doc: Doc, sentence: Sentence, evidence: TreeEvidence) -> None:
    """Check the evidence on a sentence for contradictions."""

    def refuse(why: str) -> None:
        raise InputError(f"{name}: {why}, so no tree agrees: change one of them")

    def shown(node: Node) -> str:
        words = sentence.words
        return _shown(doc, (int(words[node[0]]), int(words[node[1] - 1]) + 1, node[2]))

    for one, other in combinations(sorted(evidence.required), 2):
        if one[0] < other[0] < one[1] < other[1]:
            refuse(f"{shown(one)} and {shown(other)} cross and are both required")
    for node in evidence.required:
        if {node, (*node[:2], "")} & set(evidence.forbidden):
            refuse(f"{shown(node)} is required and forbidden")


def _shown(doc: Doc, span: Node) -> str:
    start, end, label = span
    return repr(doc[start:end].text) + (f" ({label})" if label else "")
