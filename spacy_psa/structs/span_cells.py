"""Constituency trees, the list of all spans of a batch, and the normal form of a tree.

A tree over n tokens is a list of constituents (start, end, label) in preorder. start and end are
fenceposts, 0 <= start < end <= n. Labels count from 1; the null label 0 is never listed. A span has
at most one constituent, because a unary chain is one label. The first constituent is the whole
sentence.

The spans of a batch are in one list, sentence after sentence and row-major over (start, end) with
start < end: n(n+1)/2 for a sentence of n tokens. The place of a span in this list is its cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from spacy_psa.ragged import positions

Constituent: TypeAlias = tuple[int, int, int]
Tree: TypeAlias = list[Constituent]


class SpanCells:
    """The cells of a batch: sentence, start and end of every span.

    Args:
        lengths: (B,) int64, the tokens of each sentence, each from 1 to `longest`.
        batch: B, the number of sentences.
        longest: the largest length that is allowed.
        width: the most tokens of a span with a label; None for no limit.

    Attributes:
        lengths: (B,) int64 on the CPU.
        longest: the largest length that is allowed.
        width: the most tokens of a span with a label.
        row_counts: (B,) int64 on the CPU, the spans of at most `width` tokens of each sentence.

    Raises:
        ValueError: for lengths of another shape, type or range.

    Examples:
        >>> cells = SpanCells(torch.tensor([2, 1]), batch=2, longest=2)
        >>> list(zip(cells.sentence.tolist(), cells.start.tolist(), cells.end.tolist()))
        [(0, 0, 1), (0, 0, 2), (0, 1, 2), (1, 0, 1)]
        >>> cells.at(0, 1, 2)
        2
    """

    def __init__(self, lengths: Tensor, batch: int, longest: int, width: int | None = None) -> None:
        lengths = lengths.to("cpu")
        if lengths.shape != (batch,) or lengths.dtype != torch.int64:
            raise ValueError(f"lengths must be int64 of shape ({batch},)")
        if bool(((lengths < 1) | (lengths > longest)).any()):
            raise ValueError(f"lengths must be from 1 to {longest}, not {lengths.tolist()}")
        self.lengths = lengths
        self.longest = longest
        self.width = longest if width is None else min(width, longest)
        self._length = lengths.tolist()
        self.row_counts, counts = self._counts(self.width), self._counts(self.limit)
        self._count = counts.tolist()
        self._first = _starts(counts)  # first cell of each sentence
        self._first_row = _starts(self.row_counts)

    @property
    def limit(self) -> int:
        """The most tokens of a span that has a cell."""
        return self.longest

    def _counts(self, limit: int) -> Tensor:
        """Count the spans of at most `limit` tokens of each sentence."""
        short = self.lengths.clamp(max=limit)
        return self.lengths * short - short * (short - 1) // 2

    @cached_property
    def _places(self) -> tuple[Tensor, Tensor, Tensor]:
        sentence, start = positions(self.lengths)
        row, place = positions((self.lengths[sentence] - start).clamp(max=self.limit))
        return sentence[row], start[row], start[row] + place + 1

    @property
    def sentence(self) -> Tensor:
        """The sentence of each cell, (S,) int64 on the CPU."""
        return self._places[0]

    @property
    def start(self) -> Tensor:
        """The first fencepost of each cell, (S,) int64 on the CPU."""
        return self._places[1]

    @property
    def end(self) -> Tensor:
        """The last fencepost of each cell, (S,) int64 on the CPU."""
        return self._places[2]

    def __len__(self) -> int:
        return sum(self._count)

    @cached_property
    def band(self) -> Tensor:
        """The cells of at most `width` tokens, (S,) int64."""
        return (self.end - self.start <= self.width).nonzero()[:, 0]

    @cached_property
    def rows(self) -> Tensor:
        """The place of each cell in `band`, int64; -1 if it is not there."""
        rows = torch.full((len(self),), -1)
        rows[self.band] = torch.arange(len(self.band))
        return rows

    def row(self, sentence: int, start: int, end: int) -> int:
        """Return the place of a span in `band`; -1 if it is too long.

        Raises:
            ValueError: if the sentence has no such span. The error names the sentence.
        """
        return self._place(self._first_row, self.width, sentence, start, end)

    def _place(self, first: list[int], limit: int, sentence: int, start: int, end: int) -> int:
        """Return the place of a span among those of at most `limit` tokens; -1 if it is longer."""
        n = self._length[sentence]
        if not 0 <= start < end <= n:
            raise ValueError(
                f"sentence {sentence}: ({start}, {end}) is not a span of its {n} tokens"
            )
        if end - start > limit:
            return -1
        short = max(0, start - 1 - max(0, n - limit))
        before = start * min(limit, n) - short * (short + 1) // 2
        return first[sentence] + before + end - start - 1

    @property
    def roots(self) -> Tensor:
        """The cells of the whole sentences, (B,) int64."""
        return torch.tensor(self._first, dtype=torch.int64) + self.lengths - 1

    def of(self, sentence: int) -> slice:
        """Return the cells of a sentence as a slice."""
        first = self._first[sentence]
        return slice(first, first + self._count[sentence])

    def at(self, sentence: int, start: int, end: int) -> int:
        """Return the cell of a span; -1 if it is longer than `limit`.

        Raises:
            ValueError: if the sentence has no such span. The error names the sentence.
        """
        return self._place(self._first, self.limit, sentence, start, end)

    def nodes(
        self, trees: Sequence[Iterable[Constituent]], labels: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Put one tree for each sentence into normal form.

        `labels` is the number of labels, with the null label.

        Returns:
            The sentence, the cell and the label of each node: three int64 tensors of the same size.

        Raises:
            ValueError: for a tree that is not one over the tokens of its sentence. The error names
                the sentence.
        """
        if len(trees) != len(self._length):
            raise ValueError(
                f"{len(trees)} tree(s) for {len(self._length)} sentence(s): each needs one"
            )
        rows: list[tuple[int, int, int]] = []
        for b, tree in enumerate(trees):
            try:
                nodes = normal_form(tree, self._length[b], labels)
            except ValueError as error:
                raise ValueError(f"the tree of sentence {b}: {error}") from None
            rows += [(b, self.at(b, start, end), label) for start, end, label in nodes]
        sentence, cells, chosen = torch.tensor(rows, dtype=torch.int64).view(-1, 3).unbind(1)
        return sentence, cells, chosen

    def trees(self, number: Tensor, cells: Tensor, labels: Tensor, count: int) -> list[Tree]:
        """Build `count` trees from their constituents, which may be in any order.

        Args:
            number: int64, the number of the tree of each constituent, from 0 to count - 1.
            cells: int64, the cell of each constituent.
            labels: int64, the label of each constituent.
            count: number of trees.
        """
        start, end = self.start[cells].numpy(), self.end[cells].numpy()
        order = np.lexsort((-end, start, number.numpy()))
        listed: Tree = list(zip(start[order].tolist(), end[order].tolist(), labels[order].tolist()))
        sizes = torch.bincount(number, minlength=count)
        last = torch.cumsum(sizes, 0).tolist()
        return [listed[i:j] for i, j in zip([0, *last], last)]


class NearCells(SpanCells):
    """The cells of at most `width` tokens: n · width instead of n² for a sentence of n tokens.

    Examples:
        >>> cells = NearCells(torch.tensor([3]), batch=1, longest=3, width=2)
        >>> list(zip(cells.start.tolist(), cells.end.tolist()))
        [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
        >>> cells.at(0, 1, 3), cells.at(0, 0, 3)
        (3, -1)
    """

    @property
    def limit(self) -> int:
        return self.width


def _starts(counts: Tensor) -> list[int]:
    starts: list[int] = (torch.cumsum(counts, 0) - counts).tolist()
    return starts


def normal_form(tree: Iterable[Constituent], length: int, labels: int) -> Tree:
    """List the nodes of the one binary tree that stands for a tree, in preorder, with null nodes.

    A node with children c_1 ... c_k becomes (c_1 (c_2 (... c_k))). So null spans of two tokens or
    more are right children only, and no other binary tree stands for the same tree. Tokens that are
    not constituents are null spans of length 1. There are 2n - 1 nodes.

    Args:
        tree: the constituents, in any order.
        length: n, the tokens of the sentence.
        labels: number of labels, with the null label.

    Raises:
        ValueError: for a label or span out of range, for spans that cross or repeat, and if no
            constituent covers the sentence.

    Examples:
        >>> normal_form([(0, 3, 1)], length=3, labels=2)
        [(0, 3, 1), (0, 1, 0), (1, 3, 0), (1, 2, 0), (2, 3, 0)]
    """
    listed = list(tree)
    for start, end, label in listed:
        if not 0 <= start < end <= length:
            raise ValueError(f"({start}, {end}) is not a span of {length} tokens")
        if not 1 <= label < labels:
            raise ValueError(f"label {label} of ({start}, {end}) is not from 1 to {labels - 1}")
    words = {start for start, end, _ in listed if end - start == 1}
    bare = ((i, i + 1, 0) for i in range(length) if i not in words)
    ordered = sorted([*listed, *bare], key=lambda node: (node[0], -node[1]))
    if ordered[0][:2] != (0, length) or not ordered[0][2]:
        raise ValueError(f"no constituent covers all {length} tokens")
    nodes = ordered[:1]
    above = ordered[:1]
    for start, end, label in ordered[1:]:
        while above[-1][1] <= start:
            above.pop()
        first, last, _ = above[-1]
        if end > last or (start, end) == (first, last):
            what = "is listed twice" if end == last else f"crosses ({first}, {last})"
            raise ValueError(f"({start}, {end}) {what}")
        if first < start and end < last:
            nodes.append((start, last, 0))
        nodes.append((start, end, label))
        above.append((start, end, label))
    return nodes


def hamming(tree: Iterable[Constituent], gold: Iterable[Constituent]) -> int:
    """Count the spans in which two trees have different labels.

    A span that is not in a tree has the null label. So a wrong label, a superfluous constituent
    and a missing constituent count 1 each.
    """
    ours = {(start, end): label for start, end, label in tree}
    theirs = {(start, end): label for start, end, label in gold}
    return sum(ours.get(span) != theirs.get(span) for span in ours.keys() | theirs.keys())
