"""Translates labelled spans into tags of tokens and back, with the transitions that are legal."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

TagFormat = Literal["BIOES", "BIO"]
Labelled = tuple[int, int, str]
"""Start, end and label of a span."""
Spans = list[Labelled]
FEW_TOKENS = 64
"""For so few tokens, a loop is faster than numpy."""
MISSING = -1
"""The number that stands for the tag of a token without annotation."""


class LegalTransitions(NamedTuple):
    """The transitions, first tags and last tags that are legal, over K tags."""

    transitions: NDArray[numpy.bool_]
    """(K, K) bool, from the tag of the row to the tag of the column."""
    start: NDArray[numpy.bool_]
    """(K,) bool, the tags that a sentence may begin with."""
    end: NDArray[numpy.bool_]
    """(K,) bool, the tags that a sentence may end with."""


class SpanScheme:
    """Encodes labelled spans as tags of tokens.

    The tags are "O" and, for each label, its B and I tags, and in BIOES its E and S tags too.

    Args:
        labels: the labels of spans, in the order that numbers the tags.
        tag_format: "BIOES" tells the end of a span and single tokens apart (Wei2020 section
            5.1); "BIO" (IOB2) does not.

    Examples:
        >>> scheme = SpanScheme(["PER", "ORG"], "BIO")
        >>> scheme.tags
        ('O', 'B-PER', 'I-PER', 'B-ORG', 'I-ORG')
        >>> tags = scheme.encode(4, [(0, 2, "PER"), (3, 4, "ORG")])
        >>> tags.tolist()
        [1, 2, 0, 3]
        >>> scheme.decode(tags.tolist())
        [(0, 2, 'PER'), (3, 4, 'ORG')]
    """

    def __init__(self, labels: Sequence[str], tag_format: TagFormat = "BIOES"):
        self.labels = tuple(labels)
        self.tag_format = tag_format
        self.prefixes = "BIES" if tag_format == "BIOES" else "BI"
        self.tags = ("O", *(f"{p}-{label}" for label in labels for p in self.prefixes))
        self._index = {label: i for i, label in enumerate(self.labels)}
        self._place = dict(zip("BIES", range(4) if tag_format == "BIOES" else (0, 1, 1, 0)))
        self._legal: LegalTransitions | None = None

    def tag(self, prefix: str, label: str) -> int:
        """Find the number of a tag; in BIO, S stands for B and E for I."""
        return 1 + self._index[label] * len(self.prefixes) + self._place[prefix]

    def columns(self, prefix: str) -> NDArray[numpy.int64]:
        """Find the numbers of the tags of all labels with a prefix, (labels,) int64; see `tag`."""
        return numpy.array([self.tag(prefix, label) for label in self.labels], dtype="int64")

    def label_index(self, label: str) -> int:
        """Find the index of a label among `labels`; KeyError if there is no such label."""
        return self._index[label]

    def encode(self, length: int, spans: Spans) -> NDArray[numpy.int64]:
        """Encode spans (start, end, label) that do not overlap as tags, (length,) int64."""
        tags = numpy.zeros(length, dtype="int64")
        for start, end, label in spans:
            first = 1 + self._index[label] * len(self.prefixes)
            if end - start == 1:
                tags[start] = first + self._place["S"]
            else:
                tags[start] = first + self._place["B"]
                tags[start + 1 : end - 1] = first + self._place["I"]
                tags[end - 1] = first + self._place["E"]
        return tags

    def decode(self, tags: Sequence[int]) -> Spans:
        """Decode the spans of a legal tag sequence, in order, as (start, end, label)."""
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

    def decode_batch(self, sequences: Sequence[Tensor]) -> list[Spans]:
        """Decode the spans of many legal tag sequences (n,), as `decode` does, in one pass."""
        if sum(map(len, sequences)) <= FEW_TOKENS:
            return [self.decode(tags.tolist()) for tags in sequences]
        spans_of: list[Spans] = [[] for _ in sequences]
        tags = torch.cat(list(sequences)).cpu().numpy()
        ends = numpy.cumsum([len(tags) for tags in sequences])
        # The tags of a label begin with B, the last one in BIOES is S.
        place = (tags - 1) % len(self.prefixes)
        opens = (tags > 0) & ((place == 0) | (place == self.prefixes.find("S")))
        closes = (tags == 0) | opens
        closes[ends[:-1][ends[:-1] < len(tags)]] = True
        bounds = numpy.append(numpy.flatnonzero(closes), len(tags))
        starts = numpy.flatnonzero(opens)
        stops = bounds[numpy.searchsorted(bounds, starts, side="right")]
        rows = numpy.searchsorted(ends, starts, side="right")
        first = (ends - [len(tags) for tags in sequences])[rows]
        labels = (tags[starts] - 1) // len(self.prefixes)
        for row, start, stop, label in zip(
            rows.tolist(), (starts - first).tolist(), (stops - first).tolist(), labels.tolist()
        ):
            spans_of[row].append((start, stop, self.labels[label]))
        return spans_of

    def legal(self) -> LegalTransitions:
        """Return the legal transitions.

        A span starts with B or S and continues with I of its own label. In BIOES it ends with E
        before anything else may follow.
        """
        if self._legal is None:
            self._legal = self._find_legal()
        return self._legal

    def _find_legal(self) -> LegalTransitions:
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
