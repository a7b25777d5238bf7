"""The chart of a sentence: from scores of spans and evidence to a distribution over trees."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy
import torch
from spacy.tokens import Doc
from torch import Tensor

from spacy_psa.errors import InputError
from spacy_psa.pipeline.evidence import Evidence, Node, shown
from spacy_psa.pipeline.parser.constituents import FLAT, JOIN, Sentence
from spacy_psa.pipeline.written import bare
from spacy_psa.ragged import to_device
from spacy_psa.structs.tree import SpanTree

Place = tuple[int, int]
"""The first and the last fencepost of a span, over the words of a sentence."""


def span_count(sentence: Sentence) -> int:
    """Count the spans of a sentence of n tokens, n (n + 1) / 2; 0 if it has no words."""
    n = sentence.length
    return n * (n + 1) // 2 if len(sentence.words) else 0


def span_tree(flat: Tensor, sentences: list[Sentence]) -> SpanTree:
    """Make the distribution over trees of the words of B sentences.

    Only spans that begin and end with a word count.

    Args:
        flat: (S, L - 1) scores, a row for each span of the tokens of each sentence, ordered by
            sentence, start and end.
    """
    rows, first = [], 0
    for start, end, words in sentences:
        left, right = numpy.triu_indices(len(words))
        rows.append(first + span_row(words[left] - start, words[right] - start + 1, end - start))
        first += (end - start) * (end - start + 1) // 2
    if first != sum(map(len, rows)):  # there is white space
        flat = flat[to_device(torch.from_numpy(numpy.concatenate(rows)), flat.device)]
    return SpanTree.from_spans(flat, torch.tensor([len(words) for _, _, words in sentences]))


def span_row(start: Any, end: Any, n: int) -> Any:
    """Find the place of the span from `start` to `end` among the spans of its n tokens."""
    return start * n - start * (start - 1) // 2 + end - start - 1


class Constraints(NamedTuple):
    """Evidence on a sentence, over fenceposts."""

    required: list[tuple[Place, list[str]]] = []  # noqa: RUF012
    """Labels that words must have, the outermost first; no label means any."""
    forbidden: list[Node] = []  # noqa: RUF012
    """Constituents that must not be there; an empty label means any."""
    kept: Mapping[Place, list[str]] = {}
    """Chains that no label of the chart holds; they replace whatever the chart has there."""

    @classmethod
    def of(cls, evidence: Evidence, sentence: Sentence, labels: Sequence[str]) -> "Constraints":
        """Translate the evidence on a doc, whose spans begin and end with a word."""
        if evidence.is_empty:
            return cls()
        own = evidence.within(sentence.start, sentence.end)
        required, kept = [], {}
        for node in own.required:
            place = _place(node, sentence)
            chain = node[2].split(JOIN) if node[2] else []
            if numbers_of(chain, labels):
                required.append((place, chain))
            else:
                kept[place] = chain
        required = [each for each in required if each[0] not in kept]
        forbidden = [(*_place(node, sentence), node[2]) for node in own.forbidden]
        return cls(required, [node for node in forbidden if node[:2] not in kept], kept)


class Known(NamedTuple):
    """A sentence with the evidence on its tree."""

    sentence: Sentence
    constraints: Constraints


def trimmed(name: str, doc: Doc, evidence: Evidence) -> Evidence:
    """Cut white space off the ends of the constituents that a user gave.

    InputError if a constituent that must be there has no word.
    """
    kept: list[list[Node]] = []
    for nodes in (evidence.required, evidence.forbidden):
        spans = [(bare(doc[start:end]), label) for start, end, label in nodes]
        kept.append([(s.start, s.end, label) for s, label in spans if s is not None])
    for node in evidence.required:
        if bare(doc[node[0] : node[1]]) is None:
            raise InputError(
                f"{name}: {shown(doc, node)} is required, but it has no word, so no tree has it: "
                "leave it out"
            )
    required, forbidden = kept
    return Evidence(required, forbidden)


def check_kept(name: str, doc: Doc, evidence: Evidence, labels: Sequence[str], remedy: str) -> None:
    """Check that nothing else is required where a chain that no label holds stays as it is."""
    chains = [(node[:2], node[2].split(JOIN)) for node in evidence.required if node[2]]
    kept = {place: chain for place, chain in chains if not numbers_of(chain, labels)}
    for start, end, label in evidence.required if kept else ():
        chain = kept.get((start, end))
        if chain and label and label not in chain and label != JOIN.join(chain):
            raise InputError(
                f"{name}: {doc[start:end].text!r} is the constituent {JOIN.join(chain)!r} on the "
                f"doc, and {label} is required there, so no tree agrees: {remedy}"
            )


def _place(node: Node, sentence: Sentence) -> Place:
    words = sentence.words - sentence.start
    first, last = numpy.searchsorted(words, node[:2]).tolist()
    return first, last


def numbers_of(chain: Sequence[str], labels: Sequence[str]) -> list[int]:
    """List the numbers, from 1, of the labels of a chart that hold a chain in its order.

    Examples:
        >>> numbers_of(["NP"], ("S", "NP", "S NP")), numbers_of(["NP", "S"], ("S", "NP", "S NP"))
        ([2, 3], [])
    """
    numbers = []
    for number, label in enumerate(labels, 1):
        parts = iter(label.split(JOIN))
        if all(part in parts for part in chain):
            numbers.append(number)
    return numbers


def constrain(dist: SpanTree, known: Sequence[Constraints], labels: Sequence[str]) -> SpanTree:
    """Condition a distribution on what is known of its sentences.

    `labels[i]` has the number i + 1.
    """
    if not any(map(any, known)):
        return dist
    required: list[list[tuple[int, int, list[int]]]] = []
    forbidden: list[list[tuple[int, int, list[int]]]] = []
    for each, length in zip(known, dist.lengths.tolist(), strict=True):
        whole = (0, length)
        required.append(
            [(*place, _numbers(chain, labels, place == whole)) for place, chain in each.required]
        )
        forbidden.append(
            [
                (start, end, _numbers([label] if label else [], labels, (start, end) == whole))
                for start, end, label in each.forbidden
            ]
        )
    given = dist.constrain(required=required, forbidden=forbidden)
    if any(each.kept for each in known):
        # Expected F1 counts the constituents of a label: one is the nearest to a kept chain.
        single = (i for i, label in enumerate(labels, 1) if label != FLAT and JOIN not in label)
        given = given.merge([[*each.kept] for each in known], next(single, 1))
    return given


def _numbers(chain: Sequence[str], labels: Sequence[str], whole: bool) -> list[int]:
    """List `numbers_of` a chain; a whole sentence with the label TOP is not a constituent."""
    numbers = numbers_of(chain, labels)
    return [number for number in numbers if chain or not whole or labels[number - 1] != FLAT]
