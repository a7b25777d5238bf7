"""Tag schemes: converts IOB1, IOB2 and BIOES tags to spans and back.

- IOB1 (CoNLL-2003): `I-` marks each token of a span. `B-` marks only the first token of a span
  that directly follows another span with the same label.
- IOB2: `B-` marks the first token of each span, `I-` the others.
- BIOES: `B-`, `I-` and `E-` mark the first, the inner and the last tokens of a span, `S-` a span
  of one token. `L-` and `U-` (of BILUO) are read as `E-` and `S-`, `M-` (of BMES) as `I-`.

A `TagForm` reads tags that are written otherwise: PER-B, B without a type, or PER without a prefix.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from spacy_psa.errors import InputError

Span = tuple[int, int, str]
"""(start, end, label): token offsets; `end` is excluded."""

TagScheme = Literal["iob1", "iob2", "bioes"]
SCHEMES: tuple[TagScheme, ...] = ("iob1", "iob2", "bioes")

OUTSIDE = ("O", "o", "0")
"""Tags of tokens outside of spans; the latter two are misprints."""
FORMS = {
    "B-TYPE": re.compile("(?P<prefix>[BIESLUM])[-_](?P<label>.+)"),
    "b-type": re.compile("(?P<prefix>[bieslum])[-_](?P<label>.+)"),
    "TYPE-B": re.compile("(?P<label>.+)[-_](?P<prefix>[BIESLUM])"),
    "B": re.compile("(?P<prefix>[BIESLUM])"),
    "TYPE": re.compile(r"(?P<label>[^\W\d_]\S*)"),
}
_SYNONYMS = {"L": "E", "U": "S", "M": "I"}  # in BIOES
_PREFIXES = {"iob1": "BI", "iob2": "BI", "bioes": "BIES"}


class TagError(ValueError):
    """An illegal tag: the index of its token in the sentence, from 0, and the reason."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(f"token {index}: {reason}")
        self.index = index
        self.reason = reason


def _split(tag: str) -> tuple[str, str]:
    """Return the prefix and the label of a tag, or ("", "") if the tag has another form."""
    if tag == "O":
        return "O", ""
    prefix, dash, label = tag.partition("-")
    return (prefix, label) if dash and label else ("", "")


def tags_to_spans(tags: Sequence[str], scheme: TagScheme) -> list[Span]:
    """Read the spans, in order, from the tags of one sentence.

    In IOB1, `B-` always begins a span, also if it directly follows no span of its label; the
    published CoNLL-2003 training file has two such tags.

    Raises:
        TagError: if the scheme does not have a tag, or forbids it after the tag before (IOB2: `I-X`
            that does not follow `B-X` or `I-X`; BIOES: a span that is begun but not ended, or
            continued but not begun).
    """
    spans: list[Span] = []
    start, open_label = 0, ""
    before = "the beginning"
    for i, tag in enumerate([*tags, "O"]):
        prefix, label = _split(tag)
        if scheme == "bioes":
            prefix = _SYNONYMS.get(prefix, prefix)
        if label == "O" or (prefix != "O" and prefix not in tuple(_PREFIXES[scheme])):
            known = ", ".join(f"{p}-TYPE" for p in _PREFIXES[scheme])
            raise TagError(i, f"{tag!r} is not a tag of {scheme.upper()} (O, {known})")
        continues = bool(open_label) and prefix in ("I", "E") and label == open_label
        if scheme == "bioes" and bool(open_label) != continues:
            at_end = i == len(tags)
            after = "the sentence ends" if at_end else f"{tag} follows"
            raise TagError(min(i, len(tags) - 1), f"{after} while {before} is still open")
        if not continues and (prefix == "E" or (prefix == "I" and scheme != "iob1")):
            raise TagError(i, f"{tag} follows {before}, but {scheme.upper()} needs a B- first")
        if open_label and not continues:
            spans.append((start, i, open_label))
        if not continues:
            start, open_label = i, label
        if prefix in ("E", "S"):
            spans.append((start, i + 1, label))
            open_label = ""
        before = tag
    return spans


def loose_spans(tags: Sequence[str]) -> list[Span]:
    """Read the spans of any scheme, or of a mixture of schemes, where no tag is illegal.

    A span begins at B-, S-, U-, after another label, and after E-, S-, L- and U-. The spans of
    legal tags are those of `tags_to_spans`. `TagForm` has made the tags, so they are O or have a
    prefix.
    """
    plain: list[str] = []
    ended = False
    for tag in tags:
        prefix, label = _split(tag)
        begins = prefix in ("B", "S", "U") or ended
        plain.append(f"{'B' if begins else 'I'}-{label}" if label else "O")
        ended = prefix in ("E", "S", "L", "U")
    return tags_to_spans(plain, "iob1")


def spans_to_tags(spans: Iterable[Span], length: int, scheme: TagScheme) -> list[str]:
    """Write spans that do not overlap, in any order, as the tags of a sentence of `length` tokens.

    Raises:
        ValueError: if a span is empty, lies outside the sentence or overlaps another.
    """
    tags = ["O"] * length
    ended: dict[int, str] = {}
    for start, end, label in sorted(spans):
        if not 0 <= start < end <= length or any(tag != "O" for tag in tags[start:end]):
            raise ValueError(
                f"span ({start}, {end}, {label}) is empty, outside the sentence or overlaps another"
            )
        tags[start:end] = [f"I-{label}"] * (end - start)
        if scheme != "iob1" or ended.get(start) == label:
            tags[start] = f"B-{label}"
        if scheme == "bioes":
            tags[end - 1] = f"E-{label}" if end - start > 1 else f"S-{label}"
        ended[end] = label
    return tags


def detect_scheme(sentences: Iterable[Sequence[str]]) -> TagScheme:
    """Detect the scheme from the tags of a whole file.

    It is BIOES if any tag has a prefix that only BIOES has. Otherwise it is IOB1 if any `I-` begins
    a span. Otherwise it is IOB2, and IOB1 would read the same spans. Illegal tags are left to
    `tags_to_spans`.
    """
    scheme: TagScheme = "iob2"
    for tags in sentences:
        previous = ""
        for tag in tags:
            prefix, label = _split(tag)
            if prefix in ("E", "S", *_SYNONYMS):
                return "bioes"
            if prefix == "I" and label != previous:
                scheme = "iob1"
            previous = label
    return scheme


def choose_scheme(
    scheme: TagScheme | Literal["auto"], sentences: Iterable[Sequence[str]]
) -> TagScheme:
    """Return the scheme itself, or for "auto" the one that is detected."""
    if scheme == "auto":
        return detect_scheme(sentences)
    if scheme not in SCHEMES:
        raise InputError(f"unknown scheme {scheme!r}; choose from {', '.join(SCHEMES)}, auto")
    return scheme


class TagForm(NamedTuple):
    """How the tags of a column are written."""

    name: str = "B-TYPE"
    """One of `FORMS`. In "TYPE", tokens that follow each other with the same type are one span."""
    label: str = ""
    """The type of tags without one."""

    def read(self, tag: str) -> str | None:
        """Return a tag in the form O or B-TYPE; None if it is written otherwise."""
        if tag in OUTSIDE:
            return "O"
        match = FORMS[self.name].fullmatch(tag)
        also = ("TYPE-B", "b-type") if self.name == "TYPE" else ("TYPE-B",)
        if not match or form_of(tag) not in (self.name, *also):
            return None
        parts = match.groupdict()
        label = parts.get("label", self.label).strip()
        return (
            f"{parts.get('prefix', 'I').upper()}-{label}" if label not in ("", *OUTSIDE) else None
        )


def form_of(tag: str) -> str | None:
    """Return the first of `FORMS` that a tag may have."""
    return next((name for name, form in FORMS.items() if form.fullmatch(tag)), None)


def detect_form(tags: Counter[str]) -> str | None:
    """Detect the form of the tags of a column by the majority; None if it has other values.

    In the form "TYPE", at least a fifth of the tokens are outside of spans, which distinguishes
    types from parts of speech.
    """
    counts = dict.fromkeys(FORMS, 0)
    for tag, count in tags.items():
        form = form_of(tag)
        if form and tag not in OUTSIDE:
            counts[form] += count
    outside = sum(tags[tag] for tag in OUTSIDE)
    form = max(counts, key=lambda name: counts[name])
    if form == "TYPE" and 5 * outside < tags.total():
        return None
    enough = 2 * (outside + counts[form]) >= tags.total()
    return form if enough and (counts[form] or tags["O"]) else None
