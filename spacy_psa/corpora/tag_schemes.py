"""Tag schemes: IOB1, IOB2 and BIOES tags to spans and back.

- IOB1 (CoNLL-2003): `I-` inside a span; `B-` only where a span follows another
  of its own label without a gap.
- IOB2: `B-` begins every span, `I-` continues it.
- BIOES: `B-` `I-` `E-` for spans of several tokens, `S-` for one. `L-` and `U-`
  (BILUO) are read as `E-` and `S-`, `M-` (BMES) as `I-`.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

Span = tuple[int, int, str]
"""(start, end, label): token offsets, `end` excluded."""

TagScheme = Literal["iob1", "iob2", "bioes"]
SCHEMES: tuple[TagScheme, ...] = ("iob1", "iob2", "bioes")

_SYNONYMS = {"L": "E", "U": "S", "M": "I"}  # of BIOES
_PREFIXES = {"iob1": "BI", "iob2": "BI", "bioes": "BIES"}


class TagError(ValueError):
    """An illegal tag: `index` is its place in the sentence, `reason` says why."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(f"token {index}: {reason}")
        self.index = index
        self.reason = reason


def _split(tag: str) -> tuple[str, str]:
    """(prefix, label); ("", "") where the tag has another form."""
    if tag == "O":
        return "O", ""
    prefix, dash, label = tag.partition("-")
    return (prefix, label) if dash and label else ("", "")


def tags_to_spans(tags: Sequence[str], scheme: TagScheme) -> list[Span]:
    """Read spans, in order, from the tags of one sentence.

    IOB1 is read so that `B-` always begins a span, also where it need not stand:
    the published CoNLL-2003 training file has two of those.

    Raises:
        TagError: a tag that the scheme lacks, or a move that it forbids (IOB2:
            `I-X` not after `B-X` or `I-X`; BIOES: a span opened and not closed,
            or continued and not opened).
    """
    spans: list[Span] = []
    start, open_label = 0, ""
    before = "the beginning"
    for i, tag in enumerate([*tags, "O"]):
        prefix, label = _split(tag)
        if scheme == "bioes":
            prefix = _SYNONYMS.get(prefix, prefix)
        if prefix != "O" and prefix not in tuple(_PREFIXES[scheme]):
            known = ", ".join(f"{p}-TYPE" for p in _PREFIXES[scheme])
            raise TagError(i, f"{tag!r} is no {scheme.upper()} tag (O, {known})")
        continues = bool(open_label) and prefix in ("I", "E") and label == open_label
        if scheme == "bioes" and bool(open_label) != continues:
            at_end = i == len(tags)
            after = "the sentence ends" if at_end else f"{tag} follows"
            raise TagError(min(i, len(tags) - 1), f"{after} where {before} is still open")
        if not continues and (prefix == "E" or (prefix == "I" and scheme != "iob1")):
            raise TagError(i, f"{tag} follows {before}, where {scheme.upper()} needs a B- first")
        if open_label and not continues:
            spans.append((start, i, open_label))
        if not continues:
            start, open_label = i, label
        if prefix in ("E", "S"):
            spans.append((start, i + 1, label))
            open_label = ""
        before = tag
    return spans


def spans_to_tags(spans: Iterable[Span], length: int, scheme: TagScheme) -> list[str]:
    """Write spans that do not overlap as the tags of a sentence of `length` tokens.

    Raises:
        ValueError: a span is empty, outside the sentence or overlaps another.
    """
    tags = ["O"] * length
    ended: dict[int, str] = {}
    for start, end, label in sorted(spans):
        if not 0 <= start < end <= length or any(tag != "O" for tag in tags[start:end]):
            raise ValueError(f"span ({start}, {end}, {label}) is empty, outside or overlaps")
        tags[start:end] = [f"I-{label}"] * (end - start)
        if scheme != "iob1" or ended.get(start) == label:
            tags[start] = f"B-{label}"
        if scheme == "bioes":
            tags[end - 1] = f"E-{label}" if end - start > 1 else f"S-{label}"
        ended[end] = label
    return tags


def detect_scheme(sentences: Iterable[Sequence[str]]) -> TagScheme:
    """The scheme that the tags of a whole file are in.

    BIOES where any tag has one of its own prefixes, else IOB1 where any `I-`
    begins a span, else IOB2 (which IOB1 reads alike). Illegal tags are left to
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
