"""Reads the spans that a user gives as evidence or asks about."""

from collections.abc import Iterable
from operator import index

from spacy.tokens import Doc, Span

from spacy_psa.errors import InputError, SettingError

Asked = Span | tuple[int, int, str] | tuple[int, int]
"""A span of a doc: a `Span`, or (start, end, label) over tokens. Without label it has any label."""


def check_groups(
    required_spans_key: str | None, forbidden_spans_key: str | None, written: str | None = None
) -> None:
    """Check that evidence is read from groups of its own.

    Args:
        required_spans_key: the span group of spans that predictions must have; None for none.
        forbidden_spans_key: the span group of spans that they must not have; None for none.
        written: the span group to which the component writes; None if it writes to no group.

    Raises:
        SettingError: if `written` is empty, or two of them are one group.

    Examples:
        >>> check_groups("yes", "no", "chunks")
        >>> check_groups("yes", "yes")
        Traceback (most recent call last):
            ...
        spacy_psa.errors.SettingError: required_spans_key is 'yes': forbidden_spans_key must be ...
    """
    if written is not None:
        if not written:
            raise SettingError("spans_key", written, "give the name of a span group")
        if written in (required_spans_key, forbidden_spans_key):
            advice = "required_spans_key and forbidden_spans_key must be other groups"
            raise SettingError("spans_key", written, advice)
    if required_spans_key is not None and required_spans_key == forbidden_spans_key:
        advice = "forbidden_spans_key must be another group"
        raise SettingError("required_spans_key", required_spans_key, advice)


def read_spans(
    name: str, doc: Doc, asked: Iterable[Asked], labels: Iterable[str]
) -> list[tuple[int, int, str]]:
    """Read spans that a user gives, each once, in order.

    Args:
        name: the name of the component, for errors.
        doc: the doc.
        asked: the spans.
        labels: the labels that the component knows.

    Returns:
        (start, end, label) of each span; the label is empty if the span has none.

    Raises:
        InputError: for a span of another doc, outside the doc, or without tokens, and for a label
            that the component does not know.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> read_spans("ner", doc, [doc[2:3], (0, 1, "PER"), (0, 1, "PER")], ["PER"])
        [(0, 1, 'PER'), (2, 3, '')]
    """
    found = set()
    for item in asked:
        start, end, label = checked_span(name, doc, item)
        if label:
            check_label(name, label, labels, repr(doc[start:end].text))
        found.add((start, end, label))
    return sorted(found)


def checked_span(name: str, doc: Doc, asked: Asked) -> tuple[int, int, str]:
    """Give (start, end, label) of a span that a user gives; the label is empty if it has none.

    Args:
        name: the name of the component, for errors.
        doc: the doc.
        asked: the span.

    Raises:
        InputError: for what is no span, and for a span of another doc, outside the doc, or without
            tokens.

    Examples:
        >>> import spacy
        >>> checked_span("ner", spacy.blank("en")("Ada met Bob"), (0, 1))
        (0, 1, '')
    """
    if isinstance(asked, Span):
        if asked.doc is not doc:
            raise InputError(
                f"{name}: {asked.text!r} is a span of another doc: give spans of this one"
            )
        start, end, label = asked.start, asked.end, asked.label_
    else:
        try:
            start, end, label = (*asked, "")[:3]
            index(start), index(end)
        except (TypeError, ValueError):
            raise InputError(
                f"{name}: {asked!r} is no span: give a list of spans, or of (start, end, label) "
                "over tokens"
            ) from None
    if not 0 <= start < end <= len(doc):
        raise InputError(
            f"{name}: ({start}, {end}) is no span of a doc of {len(doc)} tokens: give the "
            "first token and the one after the last"
        )
    return start, end, label


def check_label(name: str, label: str, labels: Iterable[str], what: str) -> None:
    """Check that a component knows a label.

    Args:
        name: the name of the component, for the error.
        label: the label.
        labels: those that it knows.
        what: what has the label, for the error.

    Raises:
        InputError: if it does not.
    """
    labels = tuple(labels)
    if label not in labels:
        raise InputError(
            f"{name}: {what} is given the label {label!r}, which is not among the labels "
            f"{', '.join(labels)}"
        )
