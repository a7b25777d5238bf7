"""Constituents on a doc, and constraints of a user, as evidence for the trees of its sentences."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from spacy.tokens import Doc, Span

from spacy_psa.corpora.trees import ROOTS
from spacy_psa.errors import InputError
from spacy_psa.pipeline.asked_spans import Asked, checked_span
from spacy_psa.pipeline.parser.constituents import (
    Node,
    Sentence,
    letters_before,
    named,
    nested,
)
from spacy_psa.pipeline.parser.evidence import Evidence
from spacy_psa.pipeline.parser.predictions import predicted_constituents
from spacy_psa.pipeline.parser.sentence_tree import in_order

REMEDY = "remove one of them, or set overwrite = true"


def read_evidence(doc: Doc, key: str, sentences: Sequence[Sentence]) -> list[Evidence]:
    """Read the constituents on a doc that no parser has predicted, as evidence for each sentence.

    Args:
        doc: the doc.
        key: the span group with the constituents.
        sentences: the sentences of the doc.

    Raises:
        InputError: if a constituent crosses the end of its sentence or another one, or if its label
            is empty, or holds a blank or a bracket.

    Examples:
        >>> import spacy
        >>> from spacy_psa.pipeline.parser.constituents import word_sentences
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> doc.spans["constituents"] = [Span(doc, 1, 3, "VP")]
        >>> read_evidence(doc, "constituents", word_sentences(doc))
        [Evidence(required=[((1, 3), ['VP'])], forbidden=[])]
    """
    given = _given(doc, key)
    return evidence_of(doc, given, sentences) if given else [Evidence([], []) for _ in sentences]


def evidence_on(doc: Doc, key: str) -> set[Node]:
    """List the constituents on a doc that no parser has predicted."""
    return {(span.start, span.end, span.label_) for span in _given(doc, key)}


def _given(doc: Doc, key: str) -> list[Span]:
    if key not in doc.spans or not len(doc.spans[key]):
        return []
    own = predicted_constituents(doc, key)
    spans = in_order(doc, key)
    return [s for s in spans if (s.start_char, s.end_char, s.label_) not in own]


def constraint_spans(name: str, doc: Doc, asked: Iterable[Asked]) -> list[Span]:
    """Make spans of constraints.

    Raises:
        InputError: for a span of another doc, outside the doc, or without words; `name` is that of
            the component, for the error.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> constraint_spans("parser", doc, [(1, 3, "VP"), (0, 1)])
        [met Bob, Ada]
    """
    spans = [Span(doc, *checked_span(name, doc, each)) for each in asked]
    for span in spans:
        if not span.text.strip():
            raise InputError(
                f"{name}: the constraint on the tokens {span.start} to {span.end} has no word: "
                "leave it out"
            )
    return spans


def evidence_of(
    doc: Doc,
    required: Iterable[Span],
    sentences: Sequence[Sentence],
    forbidden: Iterable[Span] = (),
    remedy: str = REMEDY,
) -> list[Evidence]:
    """Sort the constituents that the trees of a doc must have, or must not have, by sentence.

    Args:
        doc: the doc.
        required: the constituents that must be there; of a unary chain the outermost first.
        sentences: the sentences of the doc.
        forbidden: the constituents that must not be there.
        remedy: what to do about constituents that cross, for the error.

    Raises:
        InputError: as `read_evidence`, and if a constituent is required and forbidden.
    """
    letters = letters_before(doc)
    bounds = [(sentence.start, sentence.end) for sentence in sentences]
    wanted = nested(doc, required, letters, bounds, remedy, labelled=False)
    found = []
    for sentence, nodes in zip(sentences, wanted):
        words = [*sentence.words.tolist(), sentence.end]
        post = {int(letters[token]): i for i, token in enumerate(words)}
        places = [(post[start], post[end], label) for start, end, label in nodes]
        whole = (0, len(words) - 1)
        if places and places[0][:2] == whole and places[0][2] in ROOTS:
            places = places[1:]
        chains = [
            (place, [label for *_, label in members if label])
            for place, members in groupby(places, key=itemgetter(0, 1))
        ]
        unwanted = [
            (post[int(letters[span.start])], post[int(letters[span.end])], span.label_)
            for span in forbidden
            if sentence.start <= span.start and span.end <= sentence.end
        ]
        for (start, end), chain in chains:
            if any(node[:2] == (start, end) and node[2] in ("", *chain) for node in unwanted):
                text = doc[words[start] : words[end - 1] + 1].text
                raise InputError(f"{named(doc)}: {text!r} is required and forbidden; {remedy}")
        found.append(Evidence(chains, unwanted))
    return found
