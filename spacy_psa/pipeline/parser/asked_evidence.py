"""Constituents that a question to a parser requires and forbids, as evidence."""

from collections.abc import Iterable
from itertools import combinations

import numpy
from spacy.tokens import Doc

from spacy_psa.errors import InputError
from spacy_psa.pipeline.asked_spans import Asked, read_spans
from spacy_psa.pipeline.parser.constituents import FLAT, Node, Sentence, single_labels
from spacy_psa.pipeline.parser.evidence import Evidence


def asked_evidence(
    name: str,
    doc: Doc,
    sentences: list[Sentence],
    labels: Iterable[str],
    require: Iterable[Asked] = (),
    forbid: Iterable[Asked] = (),
) -> list[Evidence]:
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
        >>> asked_evidence("parser", doc, word_sentences(doc), ["S VP"], [(1, 3, "VP")])
        [Evidence(required=[((1, 3), ['VP'])], forbidden=[])]
    """
    single = sorted(single_labels(labels) - {FLAT})
    needed: list[list[Node]] = [[] for _ in sentences]
    unwanted: list[list[Node]] = [[] for _ in sentences]
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
                (needed if required else unwanted)[row].append(node)
                _check(name, doc, sentences[row], needed[row], unwanted[row])
    return [
        Evidence([((start, end), [label] if label else []) for start, end, label in nodes], others)
        for nodes, others in zip(needed, unwanted)
    ]


def _place(span: Node, sentences: list[Sentence]) -> tuple[int, Node] | None:
    """Find the sentence of a span, and the span over its words."""
    start, end, label = span
    for row, sentence in enumerate(sentences):
        if sentence.start <= start and end <= sentence.end:
            one, other = numpy.searchsorted(sentence.words, [start, end]).tolist()
            return (row, (one, other, label)) if one < other else None
    return None


def _check(
    name: str, doc: Doc, sentence: Sentence, needed: list[Node], unwanted: list[Node]
) -> None:
    """Check the evidence on a sentence for contradictions."""

    def refuse(why: str) -> None:
        raise InputError(f"{name}: {why}, so no tree agrees: change one of them")

    def shown(node: Node) -> str:
        words = sentence.words
        return _shown(doc, (int(words[node[0]]), int(words[node[1] - 1]) + 1, node[2]))

    for one, other in combinations(sorted(needed), 2):
        if one[0] < other[0] < one[1] < other[1]:
            refuse(f"{shown(one)} and {shown(other)} cross and are both required")
    for node in needed:
        if {node, (*node[:2], "")} & set(unwanted):
            refuse(f"{shown(node)} is required and forbidden")


def _shown(doc: Doc, span: Node) -> str:
    start, end, label = span
    return repr(doc[start:end].text) + (f" ({label})" if label else "")
