"""Spans of docs as the chain components read them: cut at sentences, checked, compared."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy
from spacy.tokens import Span
from spacy.training import Example

from spacy_psa.pipeline.chain.span_tags import Spans


def clip(spans: Spans, start: int, end: int) -> Spans:
    """Select the spans of a sentence, cut at its bounds.

    Args:
        spans: spans (start, end, label) of a doc.
        start: the first token of the sentence.
        end: the token after its last one.

    Returns:
        The spans, with offsets from the start of the sentence.

    Examples:
        >>> clip([(0, 1, "PER"), (2, 5, "ORG")], start=1, end=4)
        [(1, 3, 'ORG')]
    """
    return [
        (max(s, start) - start, min(e, end) - start, label)
        for s, e, label in spans
        if s < end and e > start
    ]


class Conflict(NamedTuple):
    """Why no analysis has all of some spans.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("the old man")
        >>> Conflict(Span(doc, 1, 1, "NP"), "a span (NP) before token 1 has no token").span.start
        1
    """

    span: Span
    text: str


def conflict(spans: Iterable[Span]) -> Conflict | None:
    """Find a span without a token, or two that overlap; None if one analysis can have all spans.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("the old man")
        >>> conflict([Span(doc, 0, 1, "DP"), Span(doc, 1, 3, "NP")]) is None
        True
        >>> conflict([Span(doc, 0, 3, "NP"), Span(doc, 1, 3, "NP")]).text
        "'the old man' (NP) and 'old man' (NP) overlap"
        >>> conflict([Span(doc, 1, 1, "NP")]).text
        'a span (NP) before token 1 has no token'
    """
    ordered = sorted(spans, key=lambda span: (span.start, span.end))
    for span in ordered:
        if span.start == span.end:
            return Conflict(span, f"a span ({span.label_}) before token {span.start} has no token")
    for one, other in pairwise(ordered):
        if other.start < one.end:
            what = f"{one.text!r} ({one.label_}) and {other.text!r} ({other.label_}) overlap"
            return Conflict(other, what)
    return None


def same_tokens(example: Example) -> bool:
    """Whether the predicted doc and the reference doc have the same tokens."""
    predicted, reference = example.predicted, example.reference
    return len(predicted) == len(reference) and numpy.array_equal(
        predicted.to_array(["ORTH"]), reference.to_array(["ORTH"])
    )


def labels_of(spans: Iterable[Any]) -> set[str]:
    """Collect the labels of spans, without the empty label."""
    return {span.label_ for span in spans if span.label}
