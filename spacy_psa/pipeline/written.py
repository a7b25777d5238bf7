"""Notes of the predictions on a doc, and spans that follow when tokens change.

A component must not use its own predictions as evidence when it sees a doc again. So it notes
each span and token that it writes in the user data of the doc, in the form of a custom attribute.
spaCy keeps these notes when it splits and joins docs. If user data is lost, as in a DocBin without
`store_user_data`, predictions cannot be distinguished from evidence.

Notes and spans know their characters. So they follow when tokens are merged or split.
"""

import struct
import warnings
from collections.abc import Iterable
from functools import partial
from itertools import repeat
from typing import Any

import numpy
import srsly
from spacy.tokens import Doc, Span, SpanGroup, Token

PACKED = ">QQQllll"
"""A span as SpanGroup.to_bytes packs it: id, kb_id, label, tokens, characters."""
Key = tuple[str, str, int, int | None]  # as spaCy's keys of custom attributes


def note(
    name: str,
    doc: Doc,
    items: Iterable[Span | Token],
    scores: Iterable[float] | None = None,
) -> None:
    """Note what a component has predicted for a doc, in place of its earlier notes.

    Args:
        name: the name of the component, or of the span group that it writes.
        items: the predicted spans, or the tokens with predicted tags.
        scores: the probability of each item, if the component wrote them.
    """
    notes: Any = doc.user_data
    begin = f"{name}:predicted:"
    for key in list(notes):
        if isinstance(key, tuple) and len(key) == 4 and str(key[1]).startswith(begin):
            del notes[key]
    values = repeat(True) if scores is None else map(float, scores)
    notes.update(zip(map(partial(_key, name), items), values, strict=scores is not None))


def is_noted(name: str, item: Span | Token) -> bool:
    """Whether a component predicted a span with its label, or the tag of a token."""
    return _key(name, item) in item.doc.user_data


def noted_score(name: str, span: Span) -> float | None:
    """Find the probability of a predicted span with its label; None if it was not noted."""
    score: Any = span.doc.user_data.get(_key(name, span))  # type: ignore[call-overload]
    return score if isinstance(score, float) else None


def noted_names(doc: Doc) -> list[str]:
    """Find the names under which there are notes on a doc."""
    keys = (key for key in doc.user_data if isinstance(key, tuple) and len(key) == 4)
    parts = (str(key[1]).partition(":predicted:") for key in keys)
    return list(dict.fromkeys(name for name, mark, _ in parts if mark))


def _key(name: str, item: Span | Token) -> Key:
    if isinstance(item, Token):
        return ("._.", f"{name}:predicted:{item.tag_}", item.idx, None)
    return ("._.", f"{name}:predicted:{item.label_}", item.start_char, item.end_char)


def spans_now(doc: Doc, key: str) -> SpanGroup:
    """Return a span group at the tokens that its spans have now; KeyError if there is none."""
    group = doc.spans[key]
    return follow_tokens(doc, key) if has_moved(group) else group


def spans_in(doc: Doc, key: str | None) -> Iterable[Span]:
    """Return the spans of a group at the tokens that they have now; none if there is no group."""
    return () if key is None or key not in doc.spans else spans_now(doc, key)


def write_group(
    doc: Doc, key: str, spans: Iterable[Span], scores: Iterable[float] | None = None
) -> None:
    """Write a span group in place of the one on a doc, with the probability of each span."""
    attrs = {} if scores is None else {"scores": numpy.array(list(scores))}
    doc.spans[key] = SpanGroup(doc, name=key, attrs=attrs, spans=spans)


def group_scores(group: SpanGroup) -> Any:
    """Return the probabilities of the spans of a group, in their order.

    None if it has none, or if spans were added or removed after they were written.
    """
    scores = group.attrs.get("scores")
    return scores if scores is not None and len(scores) == len(group) else None


def has_moved(group: SpanGroup) -> bool:
    """Whether spans have other characters than their tokens, which were merged or split."""
    try:
        return any(map(is_moved, group))
    except IndexError:  # there are fewer tokens now
        return True


def is_moved(span: Span) -> bool:
    """Whether a span has other characters than its tokens."""
    doc = span.doc
    if span.start == span.end:
        return False
    last = doc[span.end - 1]
    return (doc[span.start].idx, last.idx + len(last)) != (span.start_char, span.end_char)


def follow_tokens(doc: Doc, key: str, *, cut: bool = False) -> SpanGroup:
    """Write a span group anew: in preorder, at the tokens that have the characters of its spans.

    Scores stay with their spans. A warning counts the spans that now begin or end inside a token;
    they are left out.

    Args:
        key: the span group.
        cut: whether white space at the ends of a span is cut off; a span of white space only is
            left out then.

    Returns:
        The new span group.
    """
    group = doc.spans[key]
    # A span at tokens that are gone cannot be made, so its characters are read packed.
    packed = srsly.msgpack_loads(group.to_bytes())["spans"]
    rows = [struct.unpack(PACKED, each) for each in packed]
    starts = {token.idx: token.i for token in doc}
    ends = {token.idx + len(token): token.i + 1 for token in doc}
    spans = {
        i: doc[starts[first] : ends[last]]
        for i, (*_, first, last) in enumerate(rows)
        if first in starts and last in ends
    }
    lost = len(rows) - len(spans)
    if cut:
        spans = {i: part for i, span in spans.items() if (part := bare(span)) is not None}
    kept = sorted(spans, key=lambda i: (*preorder(spans[i]), rows[i][5], -rows[i][6]))
    attrs = {key: value for key, value in group.attrs.items() if key != "scores"}
    if (scores := group_scores(group)) is not None:
        attrs["scores"] = [scores[i] for i in kept]
    moved = []
    for i in kept:
        own, kb, label, *_ = rows[i]
        place = (spans[i].start, spans[i].end)
        moved.append(Span(doc, *place, label=label, kb_id=kb, span_id=own))
    doc.spans[key] = SpanGroup(doc, name=group.name, attrs=attrs, spans=moved)
    if lost:
        warnings.warn(
            f'{lost} span(s) of doc.spans["{key}"] begin or end inside a token, because tokens '
            "were merged after they were written: they are left out",
            stacklevel=4,
        )
    return doc.spans[key]


def bare(span: Span) -> Span | None:
    """Cut white space off the ends of a span; None if there is nothing else."""
    words = [token.i for token in span if token.text.strip()]
    return span.doc[words[0] : words[-1] + 1] if words else None


def preorder(span: Span) -> tuple[int, int]:
    """Return the sort key of spans in preorder, by characters."""
    return span.start_char, -span.end_char
