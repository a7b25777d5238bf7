"""Constituents that the trees of a doc must have or must not have."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from spacy.tokens import Doc, Span

from spacy_psa.corpora.trees import ROOTS
from spacy_psa.errors import InputError
from spacy_psa.pipeline.asked_spans import Asked
from spacy_psa.pipeline.parser.constituents import (
    FLAT,
    JOIN,
    Node,
    Sentence,
    letters_before,
    nested,
)
from spacy_psa.pipeline.parser.predictions import predicted_constituents
from spacy_psa.pipeline.parser.sentence_tree import in_order
from spacy_psa.structs.tree import SpanTree

Place = tuple[int, int]
"""The first and the last fencepost of a span, over the words of a sentence."""
REMEDY = "remove one of them, or set overwrite = true"


class Evidence(NamedTuple):
    """What is known of the tree of a sentence, over fenceposts.

    Examples:
        >>> evidence = Evidence({(0, 2): ["NP"], (2, 3): ["QP"]}, [])
        >>> evidence.kept(("S", "NP", "S NP"))
        {(2, 3): ['QP']}
    """

    chains: dict[Place, list[str]]
    """The labels that these words must have, the outermost first; none means any label."""
    forbidden: list[Node]
    """Constituents that must not be there; an empty label means any."""

    def kept(self, labels: Sequence[str]) -> dict[Place, list[str]]:
        """Give the chains that are in no label of the parser; they stay as they are."""
        known = {place: numbers_of(chain, labels) for place, chain in self.chains.items()}
        return {place: chain for place, chain in self.chains.items() if not known[place]}


def read_evidence(doc: Doc, key: str, sentences: Sequence[Sentence]) -> list[Evidence]:
    """Read the constituents on a doc that no parser has predicted, as evidence for each sentence.

    Args:
        doc: the doc.
        key: the span group with the constituents.
        sentences: the sentences of the doc.

    Raises:
        InputError: if a constituent crosses the end of its sentence or another one, or if its label
            is empty or holds a blank.

    Examples:
        >>> import spacy
        >>> from spacy_psa.pipeline.parser.constituents import word_sentences
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> doc.spans["constituents"] = [Span(doc, 1, 3, "VP")]
        >>> read_evidence(doc, "constituents", word_sentences(doc))
        [Evidence(chains={(1, 3): ['VP']}, forbidden=[])]
    """
    given = _given(doc, key)
    return evidence_of(doc, given, sentences) if given else [Evidence({}, []) for _ in sentences]


def evidence_on(doc: Doc, key: str) -> set[Node]:
    """List the constituents on a doc that no parser has predicted."""
    return {(span.start, span.end, span.label_) for span in _given(doc, key)}


def _given(doc: Doc, key: str) -> list[Span]:
    if key not in doc.spans or not len(doc.spans[key]):
        return []
    own = predicted_constituents(doc, key)
    spans = in_order(doc, key)
    return [s for s in spans if (s.start_char, s.end_char, s.label_) not in own]


def constraint_spans(doc: Doc, asked: Iterable[Asked]) -> list[Span]:
    """Make spans of constraints.

    Raises:
        InputError: if a span has no words.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> [(span.text, span.label_) for span in constraint_spans(doc, [(1, 3, "VP"), (0, 1)])]
        [('met Bob', 'VP'), ('Ada', '')]
    """
    spans = [each if isinstance(each, Span) else Span(doc, *each) for each in asked]
    for span in spans:
        if not span.text.strip():
            raise InputError(f"the constraint on the tokens {span.start} to {span.end} has no word")
    return spans


def evidence_of(
    doc: Doc,
    required: Iterable[Span],
    sentences: Sequence[Sentence],
    forbidden: Iterable[Span] = (),
) -> list[Evidence]:
    """Sort the constituents that the trees of a doc must have, or must not have, by sentence.

    Args:
        doc: the doc.
        required: the constituents that must be there; of a unary chain the outermost first.
        sentences: the sentences of the doc.
        forbidden: the constituents that must not be there.

    Raises:
        InputError: as `read_evidence`.
    """
    letters = letters_before(doc)
    bounds = [(sentence.start, sentence.end) for sentence in sentences]
    wanted = nested(doc, required, letters, bounds, REMEDY, labelled=False)
    found = []
    for sentence, nodes in zip(sentences, wanted):
        words = [*sentence.words.tolist(), sentence.end]
        post = {int(letters[token]): i for i, token in enumerate(words)}
        places = [(post[start], post[end], label) for start, end, label in nodes]
        whole = (0, len(words) - 1)
        if places and places[0][:2] == whole and places[0][2] in ROOTS:
            places = places[1:]
        chains = {
            place: [label for *_, label in members if label]
            for place, members in groupby(places, key=itemgetter(0, 1))
        }
        unwanted = [
            (post[int(letters[span.start])], post[int(letters[span.end])], span.label_)
            for span in forbidden
            if sentence.start <= span.start and span.end <= sentence.end
        ]
        found.append(Evidence(chains, unwanted))
    return found


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
        labels: the labels of the chart; `labels[i]` has the number i + 1.
    """
    if not any(evidence.chains or evidence.forbidden for evidence in known):
        return dist
    required: list[list[tuple[int, int, list[int]]]] = []
    forbidden: list[list[tuple[int, int, list[int]]]] = []
    uncrossed: list[list[Place]] = []
    for evidence, length in zip(known, dist.lengths.tolist(), strict=True):
        whole = (0, length)
        numbers = {
            place: _numbers(chain, labels, place == whole)
            for place, chain in evidence.chains.items()
        }
        required.append([(*place, found) for place, found in numbers.items() if found])
        uncrossed.append([place for place, found in numbers.items() if not found])
        forbidden.append(
            [
                (start, end, _numbers([label] if label else [], labels, (start, end) == whole))
                for start, end, label in evidence.forbidden
            ]
        )
    return dist.constrain(required=required, forbidden=forbidden, uncrossed=uncrossed)


def _numbers(chain: Sequence[str], labels: Sequence[str], whole: bool) -> list[int]:
    """List `numbers_of` a chain; a whole sentence with the label TOP is no constituent."""
    found = numbers_of(chain, labels)
    return [number for number in found if chain or not whole or labels[number - 1] != FLAT]
