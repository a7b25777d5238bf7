"""Required and forbidden spans, and labels that tokens may have, as evidence for a chain."""

from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc

from spacy_psa.errors import InputError
from spacy_psa.pipeline.asked_spans import Asked, read_spans
from spacy_psa.pipeline.chain.doc_spans import clip
from spacy_psa.pipeline.chain.evidence import OUTSIDE, Known, Labels, read_labels
from spacy_psa.pipeline.chain.span_tags import Spans, SpanScheme
from spacy_psa.sentences import Bounds


class SpanEvidence(NamedTuple):
    """What a user knows of the spans of a doc; an empty label stands for any label.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> evidence = SpanEvidence.read("ner", doc, ["PER"], require=[(0, 1)], forbid=[doc[2:3]])
        >>> (known,) = evidence.known([(0, 3)], SpanScheme(["PER"], "BIO"))
        >>> known.forbidden
        [(2, 3, 'PER')]
        >>> known.allowed[0]  # of the tags O, B-PER and I-PER
        array([False,  True, False])
    """

    required: Spans
    forbidden: Spans
    allowed: dict[int, set[str]]
    """The labels that tokens may have; "O" stands for no span."""

    @classmethod
    def read(
        cls,
        name: str,
        doc: Doc,
        labels: Collection[str],
        *,
        require: Iterable[Asked] = (),
        forbid: Iterable[Asked] = (),
        allow: Labels | None = None,
    ) -> "SpanEvidence":
        """Read what a user gives.

        Args:
            name: the name of the component, for errors.
            doc: the doc.
            labels: the labels that the component knows.
            require: spans that the analysis must have.
            forbid: spans that it must not have.
            allow: the labels that tokens may have.

        Raises:
            InputError: for what is no span, token or label.
        """
        return cls(
            read_spans(name, doc, require, labels),
            read_spans(name, doc, forbid, labels),
            read_labels(name, doc, allow or {}, (*labels, OUTSIDE)),
        )

    def check(
        self, name: str, doc: Doc, bounds: Bounds, held: Spans, outside: NDArray[numpy.bool_]
    ) -> None:
        """Check that the evidence does not contradict itself, or what is on the doc.

        Args:
            name: the name of the component, for errors.
            doc: the doc.
            bounds: its sentences.
            held: the spans on the doc that are evidence.
            outside: (n,) bool, the tokens that are known to be in no span.

        Raises:
            InputError: for the first contradiction.
        """

        def shown(span: tuple[int, int, str]) -> str:
            start, end, label = span
            return repr(doc[start:end].text) + (f" ({label})" if label else "")

        def refuse(why: str) -> None:
            raise InputError(f"{name}: {why}, so no analysis agrees: change one of them")

        named = {span for span in (*self.required, *held) if span[2]}
        known = {span[:2] for span in named}
        every = sorted(named | {span for span in self.required if span[:2] not in known})
        for one, other in pairwise(every):
            if other[0] < one[1]:
                refuse(f"{shown(one)} and {shown(other)} overlap and are both required")
        ends = {end for _, end in bounds}
        for span in self.required:
            start, end, label = span
            if span not in held and (doc[start].is_space or doc[end - 1].is_space):
                refuse(f"{shown(span)} is required, but begins or ends with white space")
            if any(start < cut < end for cut in ends):
                refuse(f"{shown(span)} is required, but a sentence ends inside of it")
            if span in self.forbidden or (start, end, "") in self.forbidden:
                refuse(f"{shown(span)} is required and forbidden")
            for i in range(start, end):
                may = self.allowed.get(i)
                if may is not None and not (label in may if label else may - {OUTSIDE}):
                    refuse(f"{shown(span)} is required, but token {i} may not have this label")
                if outside[i]:
                    refuse(f"{shown(span)} is required, but token {i} is blocked on the doc")
        for i, may in self.allowed.items():
            if not may:
                refuse(f"token {i} {doc[i].text!r} has neither a label nor {OUTSIDE!r} allowed")

    def known(self, bounds: Bounds, scheme: SpanScheme) -> list[Known]:
        """Translate the evidence into what is known of each sentence.

        Args:
            bounds: the sentences of the doc.
            scheme: the meaning of the tags.
        """
        return [self._of_sentence(start, end, scheme) for start, end in bounds]

    def _of_sentence(self, start: int, end: int, scheme: SpanScheme) -> Known:
        required = clip(self.required, start, end)
        labelled = {i - start: may for i, may in self.allowed.items() if start <= i < end}
        forbidden = [
            (s - start, e - start, one)
            for s, e, label in self.forbidden
            if start <= s and e <= end
            for one in ([label] if label else scheme.labels)
        ]
        if not required and not labelled:
            return Known(None, forbidden)
        allowed = numpy.ones((end - start, len(scheme.tags)), dtype=bool)
        for span in required:
            _require(allowed, scheme, span)
        of_tag = [OUTSIDE, *(label for label in scheme.labels for _ in scheme.prefixes)]
        for i, may in labelled.items():
            allowed[i] &= [label in may for label in of_tag]
        return Known(allowed, forbidden)


def _require(allowed: NDArray[numpy.bool_], scheme: SpanScheme, span: tuple[int, int, str]) -> None:
    """Exclude the tags that a required span cannot have; `allowed` (n, K) is changed in place."""
    start, end, label = span
    there = numpy.zeros_like(allowed[start:end])
    for one in [label] if label else scheme.labels:
        tags = scheme.encode(end - start, [(0, end - start, one)])
        there[numpy.arange(end - start), tags] = True
        allowed[end : end + 1, scheme.tag("I", one)] = False  # the span does not go on
    allowed[start:end] &= there


def allowed_by(
    held: Spans, outside: NDArray[numpy.bool_], bounds: Bounds, scheme: SpanScheme
) -> list[NDArray[numpy.bool_] | None]:
    """Find the tags that the spans on a doc allow.

    Args:
        held: the spans, which do not overlap. Nothing is predicted over those with other labels
            than the scheme's.
        outside: (n,) bool, the tokens that are known to be in no span.
        bounds: the sentences of the doc.
        scheme: the meaning of the tags.

    Returns:
        (length, K) bool for each sentence.
    """
    known = outside.copy()
    for start, end, _ in held:
        known[start:end] = True
    spans = [span for span in held if span[2] in scheme.labels]
    found: list[NDArray[numpy.bool_] | None] = []
    for start, end in bounds:
        inside = clip(spans, start, end)
        tags = scheme.encode(end - start, inside)
        allowed = numpy.ones((end - start, len(scheme.tags)), dtype=bool)
        for _, after, label in inside:  # a known span does not go on
            allowed[after : after + 1, scheme.tag("I", label)] = False
        fixed = known[start:end]
        # Spans with labels that the model does not know are tagged O.
        allowed[fixed] = numpy.eye(len(scheme.tags), dtype=bool)[tags[fixed]]
        found.append(allowed)
    return found
