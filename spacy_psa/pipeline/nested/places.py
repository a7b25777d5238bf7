"""The spans of a sentence that a model scores, and what is known of them."""

from collections.abc import Collection, Sequence
from math import isqrt
from typing import Any, NamedTuple

import numpy
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc
from torch import Tensor

from spacy_psa.errors import InputError
from spacy_psa.pipeline.evidence import Evidence, Node
from spacy_psa.sentences import Bounds

JOIN = " + "
"""Between the labels of one span that are joined to a single label."""
Place = tuple[int, int, list[int]]
"""The fenceposts of a span, and the numbers of labels, from 1."""
Places = tuple[NDArray[numpy.int64], NDArray[numpy.int64]]


MOST_TOKENS = 10_000
"""Of a sentence in one layer, whose spans of any length need 6 GB of memory."""
MOST_SCORES = 150_000_000
"""Of a sentence, one for each label of each span, which need 6 GB of memory or more."""


class Known(NamedTuple):
    """The evidence on the spans of a sentence, over its tokens."""

    required: list[Place] = []  # noqa: RUF012
    """Spans that must be there, with one of their labels."""
    forbidden: list[Place] = []  # noqa: RUF012
    """Spans that must not be there with any of their labels."""
    allowed: NDArray[numpy.bool_] | None = None
    """(spans, L) or (spans, 1), the labels that each span may have; None for all."""


def parts_of(label: str) -> list[str]:
    """Separate the labels of one span that are joined."""
    return label.split(JOIN)


def simple_labels(labels: Sequence[str]) -> list[str]:
    """List the labels that spans have, without joined ones, sorted."""
    return sorted({part for label in labels for part in parts_of(label)})


def holding(label: str, labels: Sequence[str]) -> list[int]:
    """List the numbers of the labels that are, or hold, a label; of all labels for an empty one.

    Examples:
        >>> holding("LOC", ["LOC", "LOC + ORG", "ORG"]), holding("LOC + ORG", ["LOC", "LOC + ORG"])
        ([1, 2], [2])
    """
    parts = set(parts_of(label)) if label else set()
    return [i for i, each in enumerate(labels, 1) if parts <= set(parts_of(each))]


def label_parts(labels: Sequence[str]) -> Tensor:
    """Find the labels that each label stands for: (L, P) float64, 0 or 1.

    Examples:
        >>> label_parts(["LOC", "LOC + ORG"])
        tensor([[1., 0.],
                [1., 1.]], dtype=torch.float64)
    """
    names = simple_labels(labels)
    rows = [[float(name in parts_of(label)) for name in names] for label in labels]
    return torch.tensor(rows, dtype=torch.float64)


def check_lengths(pipe: Any, doc: Doc, bounds: Bounds) -> None:
    """Raise InputError if the spans of a sentence would need too much memory."""
    most = token_count(MOST_SCORES // max(1, len(pipe.labels)), pipe._longest)
    if pipe.layers == "one":
        most = min(most, MOST_TOKENS)
    for start, end in bounds:
        if end - start > most:
            raise InputError(
                f"{pipe.name}: the sentence {doc[start : start + 8].text[:100]!r} has "
                f"{end - start:,} tokens, and the most is {most:,}: use a component that sets "
                "sentence boundaries before, such as spaCy's sentencizer"
            )


def places(tokens: int, longest: int | None) -> Places:
    """List the first token of each span of a sentence, and the token after its last one.

    Examples:
        >>> [ends.tolist() for ends in places(3, 2)]
        [[0, 0, 1, 1, 2], [1, 2, 2, 3, 3]]
    """
    counts = numpy.arange(tokens, 0, -1)
    if longest is not None:
        counts = numpy.minimum(counts, longest)
    start = numpy.repeat(numpy.arange(tokens), counts)
    first = numpy.cumsum(counts) - counts
    return start, start + numpy.arange(len(start)) - first[start] + 1


def token_count(spans: int, longest: int | None) -> int:
    """Find the number of tokens of a sentence that has so many spans; see `places`.

    Examples:
        >>> token_count(5, 2), token_count(6, None)
        (3, 3)
    """
    if longest is not None and spans > longest * (longest + 1) // 2:
        return (spans + longest * (longest - 1) // 2) // longest
    return (isqrt(8 * spans + 1) - 1) // 2


def translate(
    doc: Doc,
    evidence: Evidence,
    kept: Sequence[Node],
    bounds: Bounds,
    labels: Sequence[str],
    longest: int | None,
    only: Collection[tuple[int, int]] | None = None,
    layered: bool = False,
) -> list[Known]:
    """Translate the evidence on a doc, for each sentence.

    Spans that begin or end with white space are not possible, unless they are required.

    Args:
        kept: spans of the doc that no predicted span may cross; with `layered`, no predicted span
            of their label may overlap them.
        only: the first token, and the token after the last one, of the spans of the doc that are
            possible without being required; None for all.
    """
    space = doc.to_array("IS_SPACE").astype(bool)
    free = not kept and only is None
    if evidence.is_empty and free and not space.any():
        return [Known()] * len(bounds)
    known = []
    for first, last in bounds:
        own = evidence.within(first, last)
        # A required span over the bounds of a sentence is not one of its spans.
        required = [
            (s, e, holding(label, labels))
            for s, e, label in own.required
            if (first + s, first + e, label) in evidence.required
        ]
        forbidden = [(s, e, holding(label, labels)) for s, e, label in own.forbidden]
        near = [(s - first, e - first, label) for s, e, label in kept if s < last and first < e]
        if not near and only is None and not own.allowed and not space[first:last].any():
            known.append(Known(required, forbidden))
            continue
        start, end = places(last - first, longest)
        edges = space[first:last]
        legal = ~(edges[start] | edges[end - 1])
        if only is not None:
            legal &= [span in only for span in zip(start + first, end + first)]
        for s, e, _ in required:
            legal |= (start == s) & (end == e)
        allowed = legal[:, None]
        for s, e, label in near:
            if layered:
                over = (start < e) & (s < end) & ~((start == s) & (end == e))
                same = [label in parts_of(each) for each in labels]
                allowed = allowed & ~(over[:, None] & numpy.array(same))
            else:
                before = (start < s) & (s < end) & (end < e)
                after = (s < start) & (start < e) & (e < end)
                allowed = allowed & ~(before | after)[:, None]
        for token, may in own.allowed.items():
            right = [all(part in may for part in parts_of(label)) for label in labels]
            over = (start <= token) & (token < end)
            allowed = allowed & (~over[:, None] | numpy.array(right))
        known.append(Known(required, forbidden, allowed))
    return known
