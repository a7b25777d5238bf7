"""Span labels as token tags and back: BIOES and BIO, with the transitions that are legal."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy
from numpy.typing import NDArray

TagFormat = Literal["BIOES", "BIO"]
Spans = list[tuple[int, int, str]]
MISSING = -1


class LegalTransitions(NamedTuple):
    """What a legal tag sequence may do: bool arrays over K tags."""

    transitions: NDArray[numpy.bool_]  # (K, K), from the row's tag to the column's
    start: NDArray[numpy.bool_]  # (K,)
    end: NDArray[numpy.bool_]  # (K,)


class SpanScheme:
    """Tags of a span labelling: "O" and, for each label, its B, I (and E, S) tags.

    labels: span labels, in the order that fixes the tags' numbers.
    tag_format: "BIOES" (Wei2020 section 5.1) tells a span's end and single tokens apart; "BIO"
    (IOB2) does not.
    """

    def __init__(self, labels: Sequence[str], tag_format: TagFormat = "BIOES"):
        self.labels = tuple(labels)
        self.tag_format = tag_format
        self.prefixes = "BIES" if tag_format == "BIOES" else "BI"
        self.tags = ("O", *(f"{p}-{label}" for label in labels for p in self.prefixes))
        self._index = {label: i for i, label in enumerate(self.labels)}

    def tag(self, prefix: str, label: str) -> int:
        """The number of a tag, for a prefix of BIES (in BIO, S is B and E is I)."""
        if self.tag_format == "BIO":
            prefix = {"S": "B", "E": "I"}.get(prefix, prefix)
        return 1 + self._index[label] * len(self.prefixes) + self.prefixes.index(prefix)

    def columns(self, prefix: str) -> NDArray[numpy.int64]:
        """(labels,) the numbers of the labels' tags with a prefix of BIES, as in `tag`."""
        return numpy.array([self.tag(prefix, label) for label in self.labels], dtype="int64")

    def label_index(self, label: str) -> int:
        """The place of a label among `labels`; KeyError for another."""
        return self._index[label]

    def encode(self, length: int, spans: Spans) -> NDArray[numpy.int64]:
        """(n,) tag numbers of spans (start, end, label) that do not overlap."""
        tags = numpy.zeros(length, dtype="int64")
        for start, end, label in spans:
            if end - start == 1:
                tags[start] = self.tag("S", label)
            else:
                tags[start] = self.tag("B", label)
                tags[start + 1 : end - 1] = self.tag("I", label)
                tags[end - 1] = self.tag("E", label)
        return tags

    def decode(self, tags: Sequence[int]) -> Spans:
        """The spans of a legal tag sequence."""
        spans, start = [], -1
        for i, tag in enumerate([*tags, 0]):
            prefix = "" if tag == 0 else self.prefixes[(tag - 1) % len(self.prefixes)]
            if start >= 0 and (prefix == "" or prefix in "BS"):
                label = self.labels[(tags[start] - 1) // len(self.prefixes)]
                spans.append((start, i, label))
                start = -1
            if prefix and prefix in "BS":
                start = i
        return spans

    def legal(self) -> LegalTransitions:
        """The legal transitions: a span starts with B or S, goes on with its own label's I,
        and in BIOES ends with E before anything else may follow."""
        if self.tag_format == "BIO":
            opens = numpy.array([t[0] in "OB" for t in self.tags])
            closes = numpy.ones(len(self.tags), dtype=bool)
        else:
            opens = numpy.array([t[0] in "OBS" for t in self.tags])
            closes = numpy.array([t[0] in "OES" for t in self.tags])
        label = numpy.array([t[1:] for t in self.tags])
        inside = numpy.array([t[0] in "BI" for t in self.tags])
        goes_on = numpy.array([t[0] in "IE" for t in self.tags])
        same = (label[:, None] == label[None, :]) & inside[:, None] & goes_on[None, :]
        return LegalTransitions((closes[:, None] & opens[None, :]) | same, opens, closes)
