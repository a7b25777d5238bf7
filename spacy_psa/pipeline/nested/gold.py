"""Reads nested spans from docs, and finds those that no analysis can have."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

from spacy_psa.errors import InputError
from spacy_psa.pipeline.evidence import Node, cross, overlap, shown
from spacy_psa.pipeline.nested.places import JOIN
from spacy_psa.sentences import Bounds


class NestedStore:
    """The span group in which `crf_spans` reads gold spans and writes its own.

    Args:
        spans_key: the key of `doc.spans`.
        missing_spans_key: the key of `reference.spans` with stretches of text whose annotation may
            be incomplete; None for none.
        incorrect_spans_key: the key of `reference.spans` with spans that are known to be wrong;
            None for none.
    """

    def __init__(
        self,
        spans_key: str,
        missing_spans_key: str | None = None,
        incorrect_spans_key: str | None = None,
    ):
        self.spans_key = spans_key
        self.missing_spans_key = missing_spans_key
        self.incorrect_spans_key = incorrect_spans_key

    def gold(self, name: str, example: Example) -> tuple[list[Node], NDArray[numpy.bool_]]:
        """Read the gold spans of an example, over the tokens of the predicted doc.

        Returns:
            The spans (start, end, label), and a bool array (n,) that is true for tokens whose
            annotation may be incomplete.
        """
        missing = numpy.zeros(len(example.predicted), dtype=bool)
        spans = self.reference(name, example.reference)
        if spans is None:
            return [], ~missing
        for span in self.group(example, self.missing_spans_key):
            missing[span.start : span.end] = True
        nodes = {(s.start, s.end, s.label_) for s in self.group(example, self.spans_key)}
        return sorted(nodes, key=lambda node: (node[0], -node[1], node[2])), missing

    def group(self, example: Example, key: str | None) -> list[Span]:
        """Read a span group of the reference over the tokens of the predicted doc."""
        spans = list(example.reference.spans.get(key or "") or ())
        if not spans or numpy.array_equal(
            example.predicted.to_array("ORTH"), example.reference.to_array("ORTH")
        ):
            return spans
        return list(example.get_aligned_spans_y2x(spans, allow_overlap=True))

    def reference(self, name: str, doc: Doc) -> list[Span] | None:
        """Read the gold spans of a reference doc; None if it has no such annotation.

        Raises:
            InputError: if a span has no token, or if its label looks like a joined one.
        """
        if self.spans_key not in doc.spans:
            return None
        spans = list(doc.spans[self.spans_key])
        for span in spans:
            if not len(span) or JOIN in span.label_:
                what = "no token" if not len(span) else f"{JOIN!r} in its label"
                raise InputError(
                    f'{name}: a span ({span.label_}) of spans["{self.spans_key}"] in the '
                    f"reference {doc.text[:100]!r} has {what}: correct the annotation"
                )
        return spans

    def write(self, doc: Doc, spans: list[Span], scores: list[float] | None) -> None:
        """Write spans, in order, to a doc in place of those on it."""
        attrs = {} if scores is None else {"scores": numpy.array(scores)}
        doc.spans[self.spans_key] = SpanGroup(doc, name=self.spans_key, attrs=attrs, spans=spans)


class Unfit(NamedTuple):
    """A gold span that no analysis has."""

    why: str
    """The reason, as the predicate of a message."""
    text: str
    limit: bool
    """Whether it is only too long for the model."""


def fit(
    doc: Doc,
    nodes: Iterable[Node],
    bounds: Bounds,
    longest: int | None,
    *,
    join: bool,
    layered: bool = False,
) -> tuple[list[list[Node]], list[Unfit]]:
    """Select the gold spans that one analysis can have.

    Of two spans that cross, the one that begins first stays. Several labels of one span become one
    joined label.

    Args:
        doc: the doc of the spans.
        nodes: the spans.
        bounds: the sentences of the doc.
        longest: the most tokens of a span; None for no limit.
        join: whether the labels of a span are joined; otherwise only the first one fits.
        layered: whether only spans of the same label exclude each other, if they overlap.

    Returns:
        The spans of each sentence in preorder, over its tokens, and those that do not fit.
    """
    ordered = sorted(set(nodes), key=lambda node: (node[0], -node[1], node[2]))
    fitting: list[list[Node]] = [[] for _ in bounds]
    unfit = []
    number = 0
    for start, end, label in ordered:
        while number < len(bounds) - 1 and bounds[number][1] <= start:
            number += 1
        first, last = bounds[number]
        own, node = fitting[number], (start - first, end - first, label)
        why = ""
        if end > last:
            why = "go over the bounds of a sentence"
        elif longest is not None and end - start > longest:
            why = f"have more than {longest} tokens"
        elif layered:
            if any(overlap(each, node) for each in own if each[2] == label):
                why = "overlap another span of their label"
            else:
                own.append(node)
        elif own and own[-1][:2] == node[:2] and join:
            own[-1] = (*own[-1][:2], own[-1][2] + JOIN + label)
        elif own and own[-1][:2] == node[:2]:
            why = "have a second label"
        elif any(cross(each, node) for each in own):
            why = "cross another span"
        else:
            own.append(node)
        if why:
            unfit.append(Unfit(why, shown(doc, (start, end, label)), "tokens" in why))
    return fitting, unfit
