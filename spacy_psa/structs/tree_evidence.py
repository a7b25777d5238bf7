"""Which labels the spans of a batch may have, given what is known of its trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from spacy_psa.structs.distribution import check_masks
from spacy_psa.structs.span_cells import SpanCells

Span: TypeAlias = "tuple[int, int] | tuple[int, int, int] | tuple[int, int, Sequence[int]]"
"""Start and end, and a label or several; without a label, any."""


def legal_labels(
    cells: SpanCells,
    labels: int,
    allowed: Tensor | None = None,
    required: Sequence[Iterable[Span]] | None = None,
    forbidden: Sequence[Iterable[Span]] | None = None,
) -> Tensor:
    """Find the labels that each span may have: (S, labels) bool, the null label included.

    The evidence and the errors are those of `SpanTree.constrain`.

    Examples:
        >>> cells = SpanCells(torch.tensor([2]), batch=1, longest=2)
        >>> legal_labels(cells, 2, required=[[(0, 1)]])  # the cells (0, 1), (0, 2), (1, 2)
        tensor([[False,  True],
                [ True,  True],
                [ True,  True]])
    """
    batch, side = len(cells.lengths), cells.longest + 1
    legal = torch.ones(len(cells), labels, dtype=torch.bool)
    if allowed is not None:
        check_masks(allowed=(allowed, (batch, side, side, labels)))
        legal &= allowed.cpu()[cells.sentence, cells.start, cells.end]
    for b, start, end, chosen in evidence_on("required", required, batch, labels):
        own = cells.of(b)
        legal[own] &= ~spans_crossing(cells, own, start, end)[:, None]
        legal[cells.at(b, start, end)] &= chosen
    for b, start, end, chosen in evidence_on("forbidden", forbidden, batch, labels):
        legal[cells.at(b, start, end)] &= ~chosen
    return legal


def spans_crossing(cells: SpanCells, own: slice, start: int, end: int) -> Tensor:
    """Tell which of the cells `own` of a sentence cross a span, (cells,) bool."""
    starts, ends = cells.start[own], cells.end[own]
    crossing = (starts < start) & (start < ends) & (ends < end)
    return crossing | ((start < starts) & (starts < end) & (end < ends))


def evidence_on(
    name: str, spans: Sequence[Iterable[Span]] | None, batch: int, labels: int
) -> Iterator[tuple[int, int, int, Tensor]]:
    """Yield sentence, start and end of each span of evidence, and its labels as (labels,) bool."""
    if spans is not None and len(spans) != batch:
        raise ValueError(f"{name} is for {len(spans)} sentences, not {batch}")
    for b, asked in enumerate(spans or ()):
        for start, end, *label in asked:
            chosen = torch.arange(labels) > 0
            if label:
                numbers = [label[0]] if isinstance(label[0], int) else list(label[0])
                for number in numbers:
                    if not 1 <= number < labels:
                        raise ValueError(
                            f"sentence {b}: label {number} is not from 1 to {labels - 1}"
                        )
                chosen = torch.isin(torch.arange(labels), torch.tensor(numbers, dtype=torch.int64))
            yield b, start, end, chosen
