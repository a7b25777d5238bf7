"""Texts with marked characters, as annotation tools export them, and their way to tokens."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span

INCORRECT = "incorrect_spans"
"""The group of `doc.spans` with spans that are known to be wrong."""


class Mark(NamedTuple):
    """A labelled stretch of a text, in characters; the end is excluded."""

    start: int
    end: int
    label: str
    quote: str | None = None
    """The marked text as the tool exports it, if it does."""
    place: str | None = None
    """File and line of the mark, where they are not those of the text."""


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
    complete: bool = True
    """Whether the rest of the text is known to have no entities."""
    missing: list[tuple[int, int]] = field(default_factory=list)
    """Stretches of characters of which nothing is known."""
    wrong: list[Mark] = field(default_factory=list)
    """Spans that are known not to be entities, or to have another label."""


@dataclass
class Misfits:
    """Marks that no entity could be made of."""

    lines: list[str] = field(default_factory=list)
    """One line for each, with file, line and text."""
    counts: Counter[str] = field(default_factory=Counter)
    """The number of each kind."""

    def add(self, place: str, kind: str, what: str, why: str) -> None:
        """Note a mark: file and line, the fault as its kind is called, text, and details."""
        self.lines.append(f"{place}: {what}: {kind}{': ' if why else ''}{why}")
        self.counts[kind] += 1


def mark_doc(nlp: Language, marked: MarkedText, misfits: Misfits) -> Doc:
    """Make a `Doc` of a text, with an entity for each mark that meets the bounds of tokens.

    Blanks at the ends of a mark are left out. A mark that begins or ends inside a token becomes
    missing annotation, so that training does not read it as `O`. Of marks that overlap, the
    longest is kept. Marks that are wrong are in `doc.spans["incorrect_spans"]`.

    `misfits` collects the marks that are not kept as they are.
    """
    doc, offsets = _tokens(nlp, marked)
    starts = {start: i for i, (start, _) in enumerate(offsets)}
    ends = {end: i + 1 for i, (_, end) in enumerate(offsets)}
    ents = []
    unclear = [
        doc[i : i + 1]
        for i, (s, e) in enumerate(offsets)
        if any(s < end and e > start for start, end in marked.missing)
    ]
    for mark in marked.marks:
        start, end = _inner(marked.text, mark)
        what = f"{marked.text[max(mark.start, 0) : mark.end]!r} ({mark.label})"
        place = mark.place or marked.place
        if mark.quote is not None and _plain(mark.quote) != _plain(marked.text[start:end]):
            misfits.add(place, "is not the text that the file quotes", what, repr(mark.quote))
        elif not _is_inside(marked.text, start, end) or not mark.label:
            fault = f"characters {mark.start} to {mark.end} of {len(marked.text)}"
            misfits.add(place, "has no text in the document, or no label", what, fault)
        elif start in starts and end in ends:
            ents.append(Span(doc, starts[start], ends[end], mark.label))
        else:
            touched = [i for i, (s, e) in enumerate(offsets) if s < end and e > start]
            words = " ".join(marked.text[slice(*offsets[i])] for i in touched)
            misfits.add(place, "begins or ends inside a token", what, repr(words))
            unclear += [doc[i : i + 1] for i in touched]
    kept = _without_overlap(ents, marked.place, misfits)
    taken = {i for span in kept for i in range(span.start, span.end)}
    missing = [doc[i : i + 1] for i in sorted({span.start for span in unclear} - taken)]
    doc.set_ents(kept, missing=missing, default="outside" if marked.complete else "missing")
    wrong = [
        Span(doc, starts[mark.start], ends[mark.end], mark.label)
        for mark in marked.wrong
        if mark.start in starts and mark.end in ends
    ]
    if wrong:
        doc.spans[INCORRECT] = wrong
    return doc


def _tokens(nlp: Language, marked: MarkedText) -> tuple[Doc, list[tuple[int, int]]]:
    if marked.tokens is None:
        doc = nlp.make_doc(marked.text)
        return doc, [(token.idx, token.idx + len(token)) for token in doc]
    text, offsets = marked.text, [(s, e) for s, e in marked.tokens if s < e]
    nexts = [start for start, _ in offsets[1:]] + [len(text)]
    doc = Doc(
        nlp.vocab,
        words=[text[s:e] for s, e in offsets],
        spaces=[e < after for (_, e), after in zip(offsets, nexts)],
        tags=marked.tags,
    )
    return doc, offsets


def _inner(text: str, mark: Mark) -> tuple[int, int]:
    """Return the bounds of a mark without the blanks at its ends."""
    inside = text[max(mark.start, 0) : mark.end]
    if not inside.strip() or mark.start < 0 or mark.end > len(text):
        return mark.start, mark.end
    return (
        mark.start + len(inside) - len(inside.lstrip()),
        mark.end - len(inside) + len(inside.rstrip()),
    )


def _is_inside(text: str, start: int, end: int) -> bool:
    return 0 <= start < end <= len(text) and not text[start:end].isspace()


def _plain(text: str) -> str:
    return "".join(text.split())


def _without_overlap(spans: Iterable[Span], place: str, misfits: Misfits) -> list[Span]:
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
        over = next((k for k in kept if k.start < span.end and k.end > span.start), None)
        if over is None:
            kept.append(span)
            continue
        what = f"{span.text!r} ({span.label_})"
        if (over.start, over.end, over.label) != (span.start, span.end, span.label):
            misfits.add(place, "overlaps another", what, f"{over.text!r} ({over.label_}) is kept")
    return kept
