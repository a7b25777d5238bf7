"""Decisions of people about the spans of a text, and what is known after them."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from typing import Any, Literal, NamedTuple

import numpy

from spacy_psa.errors import InputError

Verdict = Literal["accepted", "rejected", "complete", "open", "skipped"]
Labelled = tuple[int, int, str]
OUTSIDE = "O"


class Decision(NamedTuple):
    """One decision over the tokens `start` to `end` (excluded) of a text."""

    verdict: Verdict
    """accepted: this span is there. rejected: it is not; without label, no span has these bounds.
    complete: nothing else is in this stretch. open: all of this stretch is undecided again.
    skipped: the text comes later. A tag is a span of one token."""
    start: int
    end: int
    label: str = ""

    @property
    def span(self) -> Labelled:
        """Start, end and label."""
        return self.start, self.end, self.label

    def check(self, length: int, labels: Collection[str], tags: bool = False) -> None:
        """Check the bounds and the label of a decision about a text of `length` tokens."""
        if not 0 <= self.start < self.end <= length:
            raise InputError(
                f"({self.start}, {self.end}) is not a stretch of a text of {length} tokens: name "
                "the first token and the one after the last"
            )
        if self.verdict == "accepted" and not self.label:
            raise InputError("a span is accepted without a label: choose one")
        if self.verdict not in ("accepted", "rejected") and self.label:
            raise InputError(
                f"{self.verdict!r} has the label {self.label!r}: only spans that are accepted or "
                "rejected have one; leave it out"
            )
        named = self.verdict in ("accepted", "rejected")
        if tags and (self.verdict == "complete" or (named and self.end - self.start > 1)):
            raise InputError("each word has one tag: decide about the tag of one word at a time")
        if tags and named and not self.label:
            raise InputError("each word has a tag: name the tag that is wrong")
        if self.label and self.label not in labels:
            raise InputError(
                f"the label {self.label!r} is not among those of the model: use one of "
                f"{', '.join(labels)}"
            )


class Decided(NamedTuple):
    """Everything that is known of the spans of a text; all else is undecided."""

    accepted: tuple[Labelled, ...] = ()
    rejected: tuple[Labelled, ...] = ()
    outside: frozenset[int] = frozenset()
    """The tokens that are in no span."""

    def then(self, decisions: Iterable[Decision]) -> "Decided":
        """Apply decisions one after the other; a later one replaces those that it contradicts."""
        decisions = list(decisions)
        ends = [end for _, end, _ in self.accepted] + [i + 1 for i in self.outside]
        length = max([0, *ends, *(decision.end for decision in decisions)])
        accepted = list(self.accepted)  # disjoint and in order, so that their ends are in order
        rejected = dict.fromkeys(self.rejected, -1)  # each with the number of its last decision
        inside, outside = numpy.zeros((2, length), dtype=bool)
        opened = numpy.full(length, -1)  # the last decision that opened each token
        outside[list(self.outside)] = True
        for start, end, _ in accepted:
            inside[start:end] = True
        for number, (verdict, start, end, label) in enumerate(decisions):
            span = (start, end, label)
            if verdict in ("accepted", "open"):
                first = bisect_right(accepted, start, key=lambda other: other[1])
                last = bisect_left(accepted, end, key=lambda other: other[0])
                for s, e, _ in accepted[first:last]:
                    inside[s:e] = False
                outside[start:end] = False
                accepted[first:last] = [span] if verdict == "accepted" else []
                if verdict == "accepted":
                    inside[start:end] = True
                    rejected.pop(span, None)
                    rejected.pop((start, end, ""), None)
                else:
                    opened[start:end] = number
            elif verdict == "rejected":
                rejected[span] = number
                i = bisect_left(accepted, span)
                if accepted[i : i + 1] == [span] or (
                    not label and i < len(accepted) and accepted[i][:2] == (start, end)
                ):
                    del accepted[i]
                    inside[start:end] = False
            elif verdict == "complete":
                outside[start:end] |= ~inside[start:end]
        kept = (s for s, number in rejected.items() if not (opened[s[0] : s[1]] > number).any())
        return Decided(
            tuple(accepted), tuple(sorted(kept)), frozenset(outside.nonzero()[0].tolist())
        )

    @property
    def tokens(self) -> frozenset[int]:
        """The tokens of which it is known whether they are in a span, and in which."""
        return self.outside | {i for s, e, _ in self.accepted for i in range(s, e)}

    def covers(self, end: int, start: int = 0) -> bool:
        """Check whether all tokens of a stretch are decided."""
        return self.tokens.issuperset(range(start, end))

    @property
    def evidence(self) -> dict[str, Any]:
        """The same as arguments of `DocAnalyses.given`."""
        return {
            "require": list(self.accepted),
            "forbid": list(self.rejected),
            "allow": dict.fromkeys(sorted(self.outside), OUTSIDE),
        }


def agreement(annotators: Iterable[Decided]) -> tuple[Decided, list[Labelled]]:
    """Join the decisions of several annotators about a text.

    Tokens that one of them has left undecided contradict nothing. A span is contradicted by another
    over one of its tokens, by a token that is in no span, and by its rejection. Tokens of
    contradicted spans are undecided. Returns the decisions on which they agree, and the spans that
    one has accepted and another has not.
    """
    annotators = list(annotators)
    spans = sorted({span for view in annotators for span in view.accepted})
    refused = {span for view in annotators for span in _contradicted(view, spans)}
    disputed = {i for start, end, _ in refused for i in range(start, end)}
    accepted = tuple(span for span in spans if span not in refused)
    kept = {i for start, end, _ in accepted for i in range(start, end)}
    outside = frozenset(i for view in annotators for i in view.outside) - disputed - kept
    bounds = {span[:2] for span in refused}
    rejected = {
        span
        for view in annotators
        for span in view.rejected
        if span not in refused and (span[2] or span[:2] not in bounds)
    }
    return Decided(accepted, tuple(sorted(rejected)), outside), sorted(refused)


def _contradicted(view: Decided, spans: Iterable[Labelled]) -> list[Labelled]:
    """Select the spans that contradict the decisions of an annotator."""
    known, accepted, rejected = view.tokens, set(view.accepted), set(view.rejected)
    return [
        (start, end, label)
        for start, end, label in spans
        if (start, end, label) not in accepted
        and (
            not known.isdisjoint(range(start, end))
            or not rejected.isdisjoint([(start, end, label), (start, end, "")])
        )
    ]
