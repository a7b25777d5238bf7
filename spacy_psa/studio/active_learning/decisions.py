"""What people decide about the spans of a text, and what is known after it."""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from spacy_psa.errors import InputError

Verdict = Literal["accepted", "rejected", "complete", "open", "skipped"]
Labelled = tuple[int, int, str]
OUTSIDE = "O"


class Decision(NamedTuple):
    """One decision over the tokens `start` to `end` (excluded) of a text.

    Examples:
        >>> Decision("accepted", 0, 2, "PER").span
        (0, 2, 'PER')
    """

    verdict: Verdict
    """accepted: this span is there. rejected: it is not; without label, no span has these bounds.
    complete: nothing else is in this stretch. open: all of this stretch is undecided again.
    skipped: the text comes later."""
    start: int
    end: int
    label: str = ""

    @property
    def span(self) -> Labelled:
        """Start, end and label."""
        return self.start, self.end, self.label

    def check(self, length: int) -> None:
        """Check the bounds and the label.

        Args:
            length: the number of tokens of the text.

        Raises:
            InputError: if there is no such stretch, an accepted span has no label, or something
                that is no span has one.
        """
        if not 0 <= self.start < self.end <= length:
            raise InputError(
                f"({self.start}, {self.end}) is no stretch of a text of {length} tokens: give the "
                "first token and the one after the last"
            )
        if self.verdict == "accepted" and not self.label:
            raise InputError("a span is accepted without a label: give one")
        if self.verdict not in ("accepted", "rejected") and self.label:
            raise InputError(
                f"{self.verdict!r} has the label {self.label!r}: only spans that are accepted or "
                "rejected have one; leave it out"
            )


class Decided(NamedTuple):
    """What is known of the spans of a text; all else is undecided.

    Examples:
        >>> decided = Decided.after([Decision("accepted", 0, 1, "PER"), Decision("complete", 0, 3)])
        >>> decided.accepted, sorted(decided.outside)
        (((0, 1, 'PER'),), [1, 2])
        >>> decided.covers(3), decided.covers(4)
        (True, False)
        >>> Decided.after([Decision("accepted", 0, 2, "PER"), Decision("accepted", 1, 2, "LOC")])
        Decided(accepted=((1, 2, 'LOC'),), rejected=(), outside=frozenset())
    """

    accepted: tuple[Labelled, ...] = ()
    rejected: tuple[Labelled, ...] = ()
    outside: frozenset[int] = frozenset()
    """The tokens that are in no span."""

    @classmethod
    def after(cls, decisions: Iterable[Decision]) -> "Decided":
        """Take decisions one after the other; a later one replaces those that it contradicts."""
        found = cls()
        for decision in decisions:
            found = found.then(decision)
        return found

    def then(self, decision: Decision) -> "Decided":
        """Take one more decision."""
        start, end, label = decision.span
        stretch = frozenset(range(start, end))
        apart = tuple(span for span in self.accepted if span[1] <= start or end <= span[0])
        if decision.verdict == "accepted":
            rejected = tuple(
                span for span in self.rejected if span not in (decision.span, (start, end, ""))
            )
            return Decided(tuple(sorted({*apart, decision.span})), rejected, self.outside - stretch)
        if decision.verdict == "rejected":
            left = tuple(
                span
                for span in self.accepted
                if span[:2] != (start, end) or label not in ("", span[2])
            )
            return Decided(left, tuple(sorted({*self.rejected, decision.span})), self.outside)
        if decision.verdict == "complete":
            inside = {i for s, e, _ in self.accepted for i in range(s, e)}
            return self._replace(outside=self.outside | (stretch - inside))
        if decision.verdict == "open":
            rejected = tuple(span for span in self.rejected if span[1] <= start or end <= span[0])
            return Decided(apart, rejected, self.outside - stretch)
        return self

    @property
    def tokens(self) -> frozenset[int]:
        """The tokens of which it is known whether they are in a span, and in which."""
        return self.outside | {i for s, e, _ in self.accepted for i in range(s, e)}

    def covers(self, end: int, start: int = 0) -> bool:
        """Tell whether all tokens of a stretch are decided."""
        return self.tokens >= frozenset(range(start, end))

    @property
    def evidence(self) -> dict[str, Any]:
        """The same as arguments of `DocAnalyses.given`."""
        return {
            "require": list(self.accepted),
            "forbid": list(self.rejected),
            "allow": dict.fromkeys(sorted(self.outside), OUTSIDE),
        }
