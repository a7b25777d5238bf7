"""Custom attributes that say how sure a component was: of spans, tokens and docs.

`Span._.confidence` and `Doc._.confidence` are read from the span groups of the doc, where
`attrs["scores"]` holds them. A value stored for a span would be shared by all spans of its
offsets, whatever their labels, and the groups survive where user data does not.
"""

import warnings
from typing import Any

import numpy
from spacy.tokens import Doc, Span, Token


def register() -> None:
    """Make `Span._.confidence`, `Doc._.confidence`, `Doc._.ner_uncertainty` and
    `Token._.tag_confidence`. Components with `confidence = true` do it when they are made;
    call it to read saved docs without one.

    Warns where something else has an attribute of that name, and leaves it alone.
    """
    _register(Span, "confidence", getter=span_confidence)
    _register(Doc, "confidence", getter=doc_confidence, setter=set_doc_confidence)
    _register(Doc, "ner_uncertainty", default=None)
    _register(Token, "tag_confidence", default=None)


def span_confidence(span: Span) -> float | None:
    """The probability of a span with its label: that of the same span in the first of
    doc.spans' groups that has it with a score; None where none has."""
    for group in span.doc.spans.values():
        scores = group.attrs.get("scores")
        if scores is None or len(scores) != len(group):
            continue
        for other, score in zip(group, scores):
            if (other.start, other.end, other.label) == (span.start, span.end, span.label):
                return float(score)
    return None


def doc_confidence(doc: Doc) -> dict[str, list[float]]:
    """The scores of each group of doc.spans that has them. As an attribute of the doc, it
    takes them through `Doc.to_json(underscore=["confidence"])` and `Doc.from_json`, which
    leave the attrs of span groups behind."""
    return {
        key: numpy.asarray(group.attrs["scores"]).tolist()
        for key, group in doc.spans.items()
        if group.attrs.get("scores") is not None
    }


def set_doc_confidence(doc: Doc, scores: dict[str, list[float]]) -> None:
    """Give the groups of doc.spans their scores.

    Errors: ValueError where a group is missing or has another number of spans."""
    for key, values in scores.items():
        if key not in doc.spans or len(doc.spans[key]) != len(values):
            raise ValueError(f'doc.spans["{key}"] has not the {len(values)} spans of the scores')
        doc.spans[key].attrs["scores"] = numpy.array(values)


def _register(kind: Any, name: str, **options: Any) -> None:
    if not kind.has_extension(name):
        kind.set_extension(name, **options)
        return
    default, _, getter, _ = kind.get_extension(name)
    if getter is not options.get("getter") or default is not None:
        warnings.warn(
            f"{kind.__name__}._.{name} is already something else and stays so: "
            'read doc.spans[...].attrs["scores"] instead',
            stacklevel=3,
        )
