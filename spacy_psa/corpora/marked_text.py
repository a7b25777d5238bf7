"""Texts with marked characters, as annotation tools export them, and their way to tokens."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span

INCORRECT = "incorrect_spans"
"""The group of `doc.spans` with spans that are known to be wrong."""
NESTED, MISSING = "sc", "missing_spans"
"""The groups of `doc.spans` with marks that may be nested, and with tokens of unknown ones."""
KEPT, MOVED = "kept", "moved to the nearest place of the text that the file quotes"
"""Outcomes of marks that become entities."""
REPEATS, OVERLAPS = "repeats another", "overlaps another"
"""Outcomes of marks over tokens that others have."""
BROKEN = "is discontinuous"
"""The outcome of marks in several pieces."""


class Mark(NamedTuple):
    """A labelled stretch of a text, in characters; the end is excluded.

    Blanks around the text and the label do not count.
    """

    start: int
    end: int
    label: str
    quote: str | None = None
    """The marked text as the tool exports it, if it does."""
    place: str | None = None
    """File and line of the mark, where they are not those of the text."""
    broken: bool = False
    """Whether there is other text between its pieces."""


@dataclass(frozen=True)
class MarkedText:
    """One record of an export."""

    place: str
    """File and line, for messages."""
    text: str
    marks: list[Mark]
    tokens: list[tuple[int, int]] | None = None
    """The first character of each token and the one after its last; None if spaCy makes tokens."""
    tags: list[str] | None = None
    """The parts of speech of the tokens."""
    sentences: set[int] | None = None
    """The first characters of sentences, if the file has tokens and sentences."""
    complete: bool = True
    """Whether the rest of the text is known to have no entities."""
    missing: list[tuple[int, int]] = field(default_factory=list)
    """Stretches of characters of which nothing is known."""
    wrong: list[Mark] = field(default_factory=list)
    """Spans that are known not to be entities, or to have another label."""
    nested: list[Mark] | None = None
    """Marks that may be nested, if the record has them next to entities that are not."""


@dataclass
class Misfits:
    """The tally of marks, and those that no entity could be made of."""

    lines: list[str] = field(default_factory=list)
    """One line for each misfit, with file, line and text."""
    counts: Counter[str] = field(default_factory=Counter)
    """The number of misfits of each kind."""
    labels: dict[str, Counter[str]] = field(default_factory=dict)
    """For each label, the number of its marks that are `KEPT` or `MOVED`, and of each kind."""

    def add(self, place: str, kind: str, what: str, why: str) -> None:
        """Note a misfit: file and line, the fault as its kind is called, text, and details."""
        self.lines.append(f"{place}: {what}: {kind}{': ' if why else ''}{why}")
        self.counts[kind] += 1

    def count(self, label: str, outcome: str) -> None:
        """Count a mark by its label."""
        self.labels.setdefault(label, Counter())[outcome] += 1

    @property
    def moved(self) -> int:
        """The number of marks that were moved to the place of their quote."""
        return sum(outcomes[MOVED] for outcomes in self.labels.values())

    @property
    def moves(self) -> list[str]:
        """The number of marks that were moved, in words, if there are any."""
        return [f"{self.moved:,} mark(s) {MOVED}"] if self.moved else []

    @property
    def warnings(self) -> list[str]:
        """The numbers of marks that were moved or left out, in words."""
        return self.moves + [f"{n:,} mark(s) left out: {kind}" for kind, n in self.counts.items()]


def marked_spans(doc: Doc) -> list[Span]:
    """Return the nested spans of a doc, or else its entities."""
    return list(doc.spans.get(NESTED, doc.ents))


def mark_doc(nlp: Language, marked: MarkedText, misfits: Misfits, nested: bool = False) -> Doc:
    """Make a `Doc` of a text, with an entity for each mark that meets the bounds of tokens.

    Blanks at the ends of a mark are left out. A mark whose text is not the one that the file quotes
    is moved to the nearest place of the quote. Of marks that overlap, the longest is kept. The
    tokens of all other marks become missing annotation, so that training does not read them as
    `O`; these are all tokens if a mark lies outside the text. Marks that are wrong are in
    `doc.spans["incorrect_spans"]`.

    With `nested`, all marks that meet the bounds of tokens are in `doc.spans["sc"]`, whether they
    overlap or not, and each token of the others is in `doc.spans["missing_spans"]`. The doc then
    has no entities.

    `misfits` collects the marks that are not kept as they are.
    """
    doc, offsets = _tokens(nlp, marked)
    starts = {start: i for i, (start, _) in enumerate(offsets)}
    ends = {end: i + 1 for i, (_, end) in enumerate(offsets)}
    ents: list[tuple[Span, str]] = []
    text = marked.text
    unclear = {i for stretch in marked.missing for i in _touched(offsets, stretch, len(text))}

    def leave_out(mark: Mark, kind: str, why: str, touched: Iterable[int]) -> None:
        what = f"{text[max(mark.start, 0) : max(mark.end, 0)]!r} ({mark.label})"
        misfits.add(mark.place or marked.place, kind, what, why)
        misfits.count(mark.label, kind)
        unclear.update(touched)

    for mark in marked.nested if nested and marked.nested is not None else marked.marks:
        mark = mark._replace(label=mark.label.strip())
        start, end = _inner(text, mark)
        touched = _touched(offsets, (start, end), len(text))
        outcome = KEPT
        if mark.broken:
            leave_out(mark, BROKEN, "", touched)
            continue
        if mark.quote is not None and _plain(mark.quote) != _plain(text[max(start, 0) : end]):
            place = _nearest(text, mark.quote, start)
            if place is None:
                kind = "is not the text that the file quotes"
                leave_out(mark, kind, repr(mark.quote), touched)
                continue
            (start, end), outcome = place, MOVED
            touched = _touched(offsets, place, len(text))
        inside = 0 <= start < end <= len(text) and not text[start:end].isspace()
        if not inside or not mark.label:
            fault = f"characters {mark.start} to {mark.end} of {len(text)}"
            leave_out(mark, "has no text in the document, or no label", fault, touched)
        elif start not in starts or end not in ends:
            words = " ".join(text[slice(*offsets[i])] for i in touched)
            leave_out(mark, "begins or ends inside a token", repr(words), touched)
        else:
            ents.append((Span(doc, starts[start], ends[end], mark.label), outcome))
    if nested:
        doc.spans[NESTED] = _distinct(ents, marked.place, misfits)
        unknown = sorted(unclear) if marked.complete else range(len(doc))
        if unknown:
            doc.spans[MISSING] = [Span(doc, i, i + 1, "MISSING") for i in unknown]
    else:
        kept, dropped = _without_overlap(ents, marked.place, misfits)
        taken = {i for span in kept for i in range(span.start, span.end)}
        missing = [doc[i : i + 1] for i in sorted((unclear | dropped) - taken)]
        doc.set_ents(kept, missing=missing, default="outside" if marked.complete else "missing")
    wrong = []
    for mark in marked.wrong:
        if mark.start in starts and mark.end in ends:
            wrong.append(Span(doc, starts[mark.start], ends[mark.end], mark.label))
        else:
            what = f"{text[max(mark.start, 0) : mark.end]!r} (not {mark.label})"
            misfits.add(mark.place or marked.place, "begins or ends inside a token", what, "")
    if wrong:
        doc.spans[INCORRECT] = wrong
    return doc


def _tokens(nlp: Language, marked: MarkedText) -> tuple[Doc, list[tuple[int, int]]]:
    if marked.tokens is None:
        doc = nlp.tokenizer(marked.text)  # of any length, as it is cut into sentences
        return doc, [(token.idx, token.idx + len(token)) for token in doc]
    text, kept = marked.text, [i for i, (s, e) in enumerate(marked.tokens) if s < e]
    offsets = [marked.tokens[i] for i in kept]
    nexts = [start for start, _ in offsets[1:]] + [len(text)]
    starts: list[bool | int | None] | None = None
    if marked.sentences is not None:
        starts = [start in marked.sentences for start, _ in offsets]
    doc = Doc(
        nlp.vocab,
        words=[text[s:e] for s, e in offsets],
        spaces=[e < after for (_, e), after in zip(offsets, nexts)],
        tags=[marked.tags[i] for i in kept] if marked.tags else None,
        sent_starts=starts,
    )
    return doc, offsets


def utf16_offsets(text: str) -> list[int]:
    """Where each character and the end are in units of UTF-16, as Java and browsers count."""
    return [0, *accumulate(1 + (ord(character) > 0xFFFF) for character in text)]


def _inner(text: str, mark: Mark) -> tuple[int, int]:
    """Return the bounds of a mark without the blanks at its ends."""
    inside = text[max(mark.start, 0) : mark.end]
    if not inside.strip() or mark.start < 0 or mark.end > len(text):
        return mark.start, mark.end
    return (
        mark.start + len(inside) - len(inside.lstrip()),
        mark.end - len(inside) + len(inside.rstrip()),
    )


def _plain(text: str) -> str:
    return "".join(text.split())


def _nearest(text: str, quote: str, start: int) -> tuple[int, int] | None:
    """Find the occurrence of a quote that is nearest to `start`, with any blanks in it."""
    words = r"\s+".join(map(re.escape, quote.split()))
    places = [match.span() for match in re.finditer(words, text)] if words else []
    return min(places, key=lambda place: abs(place[0] - start), default=None)


def _touched(
    offsets: list[tuple[int, int]], stretch: tuple[int, int], length: int
) -> Iterable[int]:
    """Return the tokens of a stretch of a text; all tokens if it is outside of the text."""
    start, end = stretch
    if start >= length or end < 0:
        return range(len(offsets))
    first = bisect_right(offsets, start, key=lambda token: token[1])
    return range(first, bisect_left(offsets, max(end, start + 1), key=lambda token: token[0]))


def _distinct(ents: Iterable[tuple[Span, str]], place: str, misfits: Misfits) -> list[Span]:
    """Return spans in order, the outer ones first, and each only once."""
    spans: dict[tuple[int, int, str], Span] = {}
    for span, outcome in sorted(ents, key=lambda ent: (ent[0].start, -ent[0].end)):
        if spans.setdefault((span.start, span.end, span.label_), span) is not span:
            outcome = REPEATS
            misfits.add(place, REPEATS, f"{span.text!r} ({span.label_})", "")
        misfits.count(span.label_, outcome)
    return list(spans.values())


def _without_overlap(
    ents: Iterable[tuple[Span, str]], place: str, misfits: Misfits
) -> tuple[list[Span], set[int]]:
    """Return the longest of spans that overlap, and the tokens of the others."""
    kept: list[Span] = []
    owners: dict[int, Span] = {}
    dropped: set[int] = set()
    for span, outcome in sorted(ents, key=lambda ent: (ent[0].start - ent[0].end, ent[0].start)):
        tokens = range(span.start, span.end)
        over = next((owners[i] for i in tokens if i in owners), None)
        if over is None:
            kept.append(span)
            owners.update(dict.fromkeys(tokens, span))
        else:
            twice = (over.start, over.end, over.label) == (span.start, span.end, span.label)
            outcome = REPEATS if twice else OVERLAPS
            why = f"{over.text!r} ({over.label_}) is kept"
            misfits.add(place, outcome, f"{span.text!r} ({span.label_})", why)
            dropped.update(tokens)
        misfits.count(span.label_, outcome)
    return kept, dropped
