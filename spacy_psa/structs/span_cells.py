"""Constituency trees, the flat list of all spans, and the one binary tree for each tree.

A tree over n tokens is a list of constituents (start, end, label): fenceposts
0 <= start < end <= n, label from 1 on (0 is the null label and never listed), at most one
for each span (a unary chain is one label), in preorder. The first covers the sentence.

The spans of a batch stand in one list, sentence after sentence and row-major over
(start, end) with start < end: n(n+1)/2 for a sentence of n tokens. The place of a span in
this list is its cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from spacy_psa.ragged import positions

Constituent: TypeAlias = tuple[int, int, int]
Tree: TypeAlias = list[Constituent]


class SpanCells:
    """The cells of a batch: sentence, start and end, (S,) int64 each, on the CPU.

    lengths: (B,) int64, each from 1 to `longest`. Raises ValueError for others.
    """

    def __init__(self, lengths: Tensor, batch: int, longest: int) -> None:
        lengths = lengths.to("cpu")
        if lengths.shape != (batch,) or lengths.dtype != torch.int64:
            raise ValueError(f"lengths must be int64 of shape ({batch},)")
        if bool(((lengths < 1) | (lengths > longest)).any()):
            raise ValueError(f"lengths must be from 1 to {longest}: {lengths.tolist()}")
        self.lengths = lengths
        self.longest = longest
        sentence_of_row, start_of_row = positions(lengths)
        row, place = positions(lengths[sentence_of_row] - start_of_row)
        self.sentence = sentence_of_row[row]
        self.start = start_of_row[row]
        self.end = self.start + place + 1
        spans = lengths * (lengths + 1) // 2
        self._first = (torch.cumsum(spans, 0) - spans).tolist()  # of each sentence
        self._length = lengths.tolist()

    def __len__(self) -> int:
        return len(self.sentence)

    @property
    def roots(self) -> Tensor:
        """(B,) int64, the cells of the whole sentences."""
        return torch.tensor(self._first, dtype=torch.int64) + self.lengths - 1

    def of(self, sentence: int) -> slice:
        """The cells of a sentence."""
        first, n = self._first[sentence], self._length[sentence]
        return slice(first, first + n * (n + 1) // 2)

    def at(self, sentence: int, start: int, end: int) -> int:
        """The cell of a span. Raises ValueError, naming the sentence, if it has no such span."""
        n = self._length[sentence]
        if not 0 <= start < end <= n:
            raise ValueError(f"sentence {sentence}: ({start}, {end}) is no span of {n} tokens")
        return self._first[sentence] + start * n - start * (start - 1) // 2 + end - start - 1

    def nodes(
        self, trees: Sequence[Iterable[Constituent]], labels: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The sentences, cells and labels of the normal forms of one tree a sentence.

        Raises ValueError, naming the sentence, for what is no tree over its tokens.
        """
        if len(trees) != len(self._length):
            raise ValueError(f"{len(trees)} trees for {len(self._length)} sentences")
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
        """`count` trees, of constituents in any order: the tree, cell and label of each."""
        start, end = self.start[cells].numpy(), self.end[cells].numpy()
        order = np.lexsort((-end, start, number.numpy()))
        listed: Tree = list(zip(start[order].tolist(), end[order].tolist(), labels[order].tolist()))
        sizes = torch.bincount(number, minlength=count)
        last = torch.cumsum(sizes, 0).tolist()
        return [listed[i:j] for i, j in zip([0, *last], last)]


def normal_form(tree: Iterable[Constituent], length: int, labels: int) -> Tree:
    """The nodes of the one binary tree that stands for `tree`, in preorder, null ones too.

    A node with children c_1 ... c_k becomes (c_1 (c_2 (... c_k))): null spans of two
    tokens or more are right children only, so no other binary tree gives the same tree.
    Tokens that are no constituents are null spans of length 1. There are 2n - 1 nodes.

    tree: in any order; labels: how many labels there are, with null.

    Raises ValueError for a label or span out of range, spans that cross or repeat, and
    where no constituent covers the sentence.
    """
    listed = list(tree)
    for start, end, label in listed:
        if not 0 <= start < end <= length:
            raise ValueError(f"({start}, {end}) is no span of {length} tokens")
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
            what = "is there twice" if end == last else f"crosses ({first}, {last})"
            raise ValueError(f"({start}, {end}) {what}")
        if first < start and end < last:
            nodes.append((start, last, 0))
        nodes.append((start, end, label))
        above.append((start, end, label))
    return nodes


def hamming(tree: Iterable[Constituent], gold: Iterable[Constituent]) -> int:
    """In how many spans two trees have different labels; a span not in a tree has null.

    A wrong label counts 1, as does a constituent too many and one too few.
    """
    ours = {(start, end): label for start, end, label in tree}
    theirs = {(start, end): label for start, end, label in gold}
    return sum(ours.get(span) != theirs.get(span) for span in ours.keys() | theirs.keys())
