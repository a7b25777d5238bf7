"""Evidence on the analysis of a doc: spans that it has or has not, and labels of tokens.

The annotation on a doc and what a user asks for are the same kind of value, `Evidence`. The chain
components translate it into masks of tags (`chain/spans.py`, `chain/tagger.py`), the parser into
constraints of the chart (`parser/chart.py`).
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import takewhile
from operator import index
from typing import NamedTuple

from spacy.tokens import Doc, Span, Token

from spacy_psa.errors import InputError, SettingError
from spacy_psa.sentences import Bounds

Asked = Span | tuple[int, int, str] | tuple[int, int]
"""A span of a doc: a `Span`, or (start, end, label) over tokens. Without label it has any label."""
Node = tuple[int, int, str]
"""The first token of a span, the token after its last one, and its label; empty for any label."""
Labels = Mapping[int | Token, str | Iterable[str]]
"""Labels for some tokens of a doc, by token or by its number."""
OUTSIDE = "O"
"""The label of a token in no span."""
CHANGE = "change one of them"
"""The remedy for evidence of a user that contradicts itself."""


class Evidence(NamedTuple):
    """Evidence on the analysis of a doc, over its tokens."""

    required: list[Node] = []  # noqa: RUF012
    """Spans that the analysis has. In a tree, a label may be a unary chain such as "S VP"."""
    forbidden: list[Node] = []  # noqa: RUF012
    """Spans that it does not have."""
    allowed: Mapping[int, set[str]] = {}
    """The labels that tokens may have."""
    suggested: Mapping[Node, float] = {}
    """Soft evidence: spans with the number that is added to their log odds."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known."""
        return not any(self)

    def joined(self, other: "Evidence") -> "Evidence":
        """Join what is known from two sources."""
        if other.is_empty:
            return self
        allowed = dict(self.allowed)
        for token, labels in other.allowed.items():
            allowed[token] = allowed.get(token, labels) & labels
        required = list(dict.fromkeys([*self.required, *other.required]))
        suggested = dict(self.suggested)
        for span, weight in other.suggested.items():
            suggested[span] = suggested.get(span, 0.0) + weight
        return Evidence(required, [*self.forbidden, *other.forbidden], allowed, suggested)

    def within(self, start: int, end: int) -> "Evidence":
        """Select what concerns the tokens of a sentence, and move it to their start.

        Required spans that cross the bounds of the sentence are cut there.
        """
        required = [
            (max(s, start) - start, min(e, end) - start, label)
            for s, e, label in self.required
            if s < end and start < e
        ]
        forbidden = [
            (s - start, e - start, label)
            for s, e, label in self.forbidden
            if start <= s and e <= end
        ]
        allowed = {i - start: labels for i, labels in self.allowed.items() if start <= i < end}
        suggested = {
            (s - start, e - start, label): weight
            for (s, e, label), weight in self.suggested.items()
            if start <= s and e <= end
        }
        return Evidence(required, forbidden, allowed, suggested)

    def concerns(self, start: int, end: int) -> bool:
        """Whether something is known of the tokens of a sentence."""
        spans = [*self.required, *self.forbidden, *self.suggested]
        inside = any(s < end and start < e for s, e, _ in spans)
        return inside or any(start <= i < end for i in self.allowed)


NOTHING = Evidence()


def read_evidence(
    name: str,
    doc: Doc,
    labels: Iterable[str],
    require: Iterable[Asked] = (),
    forbid: Iterable[Asked] = (),
    allow: Labels | None = None,
    token_labels: Iterable[str] = (),
) -> Evidence:
    """Read what a user knows of the analysis of a doc.

    Args:
        labels: the labels that the component knows.
        require: spans that the analysis has; without label, a span may have any.
        forbid: spans that it does not have; without label, a span is forbidden with all labels.
        allow: for a token, the label or labels of the span that it may be in; "O" for no span.
        token_labels: the labels that `allow` may name.
    """
    labels = tuple(labels)
    spans: list[list[Node]] = []
    for asked in (require, forbid):
        nodes = dict.fromkeys(checked_span(name, doc, each) for each in asked)
        for start, end, label in nodes:
            if label:
                check_label(name, label, labels, repr(doc[start:end].text))
        spans.append(sorted(nodes))
    allowed = {}
    for key, value in (allow or {}).items():
        try:
            i = key.i if isinstance(key, Token) else index(key)
        except TypeError:
            raise InputError(f"{name}: {key!r} is not a token: use its number, from 0") from None
        if not 0 <= i < len(doc) or (isinstance(key, Token) and key.doc is not doc):
            raise InputError(
                f"{name}: token {i} is not in the doc of {len(doc)} tokens: use its number, from 0"
            )
        may = {value} if isinstance(value, str) else set(value)
        for label in sorted(may):
            check_label(name, label, token_labels, f"token {i} {doc[i].text!r}")
        allowed[i] = may
    required, forbidden = spans
    return Evidence(required, forbidden, allowed)


def checked_span(name: str, doc: Doc, asked: Asked) -> Node:
    """Read a span of a user; its label is empty if it has none.

    InputError, which begins with `name`, for something that is not a span, and for a span of
    another doc, outside the doc, or without tokens.
    """
    if isinstance(asked, Span):
        if asked.doc is not doc:
            raise InputError(
                f"{name}: {asked.text!r} is a span of another doc: use spans of this one"
            )
        start, end, label = asked.start, asked.end, asked.label_
    else:
        try:
            start, end, label = (*asked, "")[:3]
            start, end, label = index(start), index(end), "" if label is None else label
            if not isinstance(label, str):
                raise TypeError
        except (TypeError, ValueError):
            raise InputError(
                f"{name}: {asked!r} is not a span: use a list of spans, or of (start, end, label) "
                "over tokens"
            ) from None
    if not 0 <= start < end <= len(doc):
        raise InputError(
            f"{name}: ({start}, {end}) is not a span of a doc of {len(doc)} tokens: use the "
            "first token and the one after the last"
        )
    return start, end, label


def check_label(name: str, label: str, labels: Iterable[str], what: str) -> None:
    """Raise InputError unless a component knows the label of something, which `what` names."""
    labels = tuple(labels)
    if label not in labels:
        raise InputError(
            f"{name}: {what} has the label {label!r}, which is not among the labels "
            f"{', '.join(labels)}"
        )


def check_groups(*keys: str | None, written: str | None = None) -> None:
    """Check that evidence is read from span groups of its own.

    Args:
        keys: the groups of spans that are required and forbidden; None for no group.
        written: the group that the component writes; None if it writes to no group.

    Raises:
        SettingError: if `written` is empty, or two of them are one group.
    """
    required, forbidden = keys
    if written is not None:
        if not written:
            raise SettingError("spans_key", written, "it must be the name of a span group")
        if written in keys:
            advice = "required_spans_key and forbidden_spans_key must be other groups"
            raise SettingError("spans_key", written, advice)
    if required is not None and required == forbidden:
        advice = "forbidden_spans_key must be another group"
        raise SettingError("required_spans_key", required, advice)


def check_other_group(setting: str, key: str | None, written: str) -> None:
    """Raise SettingError if a span group that a component reads is empty, or the one it writes."""
    if key == "":
        raise SettingError(setting, key, "it must be the name of a span group")
    if key == written:
        raise SettingError(setting, key, "it must be another group than spans_key")


def check_consistent(
    name: str,
    doc: Doc,
    evidence: Evidence,
    bounds: Bounds,
    clash: Callable[[Node, Node], str | None],
    remedy: str,
    may_cross: Collection[Node] = (),
) -> None:
    """Check that evidence does not contradict itself.

    Args:
        clash: why two spans, in order, cannot both be in an analysis; None if they can.
        may_cross: the spans that may cross the bounds of a sentence.
    """

    def refuse(why: str) -> None:
        raise InputError(f"{name}: {why}, so no analysis agrees: {remedy}")

    required = sorted(set(evidence.required))
    named = {span[:2] for span in required if span[2]}
    required = [span for span in required if span[2] or span[:2] not in named]
    for i, first in enumerate(required):
        for second in takewhile(lambda span: span[0] < first[1], required[i + 1 :]):  # noqa: B023
            if why := clash(first, second):
                refuse(f"{shown(doc, first)} and {shown(doc, second)} {why} and are both required")
    ends = [end for _, end in bounds]
    forbidden = set(evidence.forbidden)
    for span in evidence.required:
        start, end, label = span
        if start == end:
            refuse(f"a span ({label}) before token {start} has no token")
        if any(start < cut < end for cut in ends) and span not in may_cross:
            refuse(f"{shown(doc, span)} is required, but a sentence ends inside of it")
        if any((start, end, part) in forbidden for part in ("", label, *label.split(" "))):
            refuse(f"{shown(doc, span)} is required and forbidden")
        for i in range(start, end):
            may = evidence.allowed.get(i)
            if may is not None and not (label in may if label else may - {OUTSIDE}):
                refuse(f"{shown(doc, span)} is required, but token {i} may not have this label")
    for i, may in evidence.allowed.items():
        if not may:
            refuse(f"token {i} {doc[i].text!r} has neither a label nor {OUTSIDE!r} allowed")


def overlap(first: Node, second: Node) -> str | None:
    """Return "overlap" if two spans, in order, share tokens."""
    return "overlap" if second[0] < first[1] else None


def cross(first: Node, second: Node) -> str | None:
    """Return "cross" if two spans, in order, share tokens, but neither is within the other."""
    return "cross" if first[0] < second[0] < first[1] < second[1] else None


def shown(doc: Doc, span: Node) -> str:
    """Show a span in a message: its text, and its label."""
    start, end, label = span
    return repr(doc[start:end].text) + (f" ({label})" if label else "")
