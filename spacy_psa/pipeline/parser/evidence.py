"""What is known of the tree of a sentence, as evidence for the chart, and what is asked with it."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from spacy.tokens import Doc

from spacy_psa.errors import InputError
from spacy_psa.pipeline.parser.constituents import FLAT, JOIN, Node
from spacy_psa.structs.tree import SpanTree

if TYPE_CHECKING:
    from nltk import Tree

Place = tuple[int, int]
"""The first and the last fencepost of a span, over the words of a sentence."""


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


class Evidence(NamedTuple):
    """What is known of the tree of a sentence, over fenceposts.

    Examples:
        >>> evidence = Evidence([((0, 2), ["NP"]), ((2, 3), ["QP"])], [])
        >>> evidence.kept(("S", "NP", "S NP"))
        {(2, 3): ['QP']}
    """

    required: list[tuple[Place, list[str]]]
    """Labels that words must have, the outermost first; none means any label."""
    forbidden: list[Node]
    """Constituents that must not be there; an empty label means any."""

    def kept(self, labels: Sequence[str]) -> dict[Place, list[str]]:
        """Give the chains that are in no label of the parser; they stay as they are."""
        return {place: chain for place, chain in self.required if not numbers_of(chain, labels)}


def numbers_of(chain: Sequence[str], labels: Sequence[str]) -> list[int]:
    """List the numbers, from 1, of the labels of a chart that hold a chain in its order.

    Examples:
        >>> numbers_of(["NP"], ("S", "NP", "S NP")), numbers_of(["NP", "S"], ("S", "NP", "S NP"))
        ([2, 3], [])
    """
    found = []
    for number, label in enumerate(labels, 1):
        parts = iter(label.split(JOIN))
        if all(part in parts for part in chain):
            found.append(number)
    return found


def constrain(dist: SpanTree, known: Sequence[Evidence], labels: Sequence[str]) -> SpanTree:
    """Condition a distribution on what is known of its sentences.

    Args:
        dist: the distribution.
        known: the evidence of each of its sentences.
        labels: the labels of the chart; `labels[i]` has the number i + 1. A chain that is in none
            of them stands in place of whatever the chart has there.

    Examples:
        >>> import torch
        >>> trees = SpanTree(torch.zeros(1, 4, 4, 3), torch.tensor([3]))
        >>> given = constrain(trees, [Evidence([((0, 2), ["NP"])], [])], ["NP", "S NP"])
        >>> bool(given.log_partition < trees.log_partition)
        True
    """
    if not any(map(any, known)):
        return dist
    required: list[list[tuple[int, int, list[int]]]] = []
    forbidden: list[list[tuple[int, int, list[int]]]] = []
    kept = [[*evidence.kept(labels)] for evidence in known]
    for evidence, places, length in zip(known, kept, dist.lengths.tolist(), strict=True):
        whole = (0, length)
        required.append(
            [
                (*place, _numbers(chain, labels, place == whole))
                for place, chain in evidence.required
                if place not in places
            ]
        )
        forbidden.append(
            [
                (start, end, _numbers([label] if label else [], labels, (start, end) == whole))
                for start, end, label in evidence.forbidden
            ]
        )
    given = dist.constrain(required=required, forbidden=forbidden)
    if any(kept):
        # Expected F1 counts the constituents of a label: one is the nearest to a kept chain.
        single = (i for i, label in enumerate(labels, 1) if label != FLAT and JOIN not in label)
        given = given.merge(kept, next(single, 1))
    return given


def check_kept(
    name: str, words: Sequence[str], kept: Mapping[Place, list[str]], asked: Evidence
) -> Evidence:
    """Check what is asked about the places of kept chains, which stay as they are.

    Args:
        name: the name of the component, for the error.
        words: the words of the sentence, for the error.
        kept: the chains that are kept; see `Evidence.kept`.
        asked: constituents that are required and forbidden.

    Returns:
        What is asked about other places.

    Raises:
        InputError: if a kept chain lacks what is required, or has what is forbidden.

    Examples:
        >>> check_kept("parser", ["Ada", "left"], {(0, 1): ["QP"]}, Evidence([], [(0, 1, "NP")]))
        Evidence(required=[], forbidden=[])
    """

    def refuse(start: int, end: int, why: str) -> None:
        chain = JOIN.join(kept[start, end])
        raise InputError(
            f"{name}: {' '.join(words[start:end])!r} is the constituent {chain!r} on the doc, and "
            f"{why}, so no tree agrees: change one of them"
        )

    for (start, end), chain in asked.required:
        lacking = [label for label in chain if label not in kept.get((start, end), chain)]
        if lacking:
            refuse(start, end, f"{lacking[0]} is required there")
    for start, end, label in asked.forbidden:
        if (start, end) in kept and (not label or label in kept[start, end]):
            refuse(start, end, f"{label or 'any constituent'} is forbidden there")
    return Evidence(
        [(place, chain) for place, chain in asked.required if place not in kept],
        [node for node in asked.forbidden if node[:2] not in kept],
    )


def _numbers(chain: Sequence[str], labels: Sequence[str], whole: bool) -> list[int]:
    """List `numbers_of` a chain; a whole sentence with the label TOP is no constituent."""
    found = numbers_of(chain, labels)
    return [number for number in found if chain or not whole or labels[number - 1] != FLAT]


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
