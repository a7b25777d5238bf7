"""The k best trees, by lazy enumeration (Huang and Chiang 2005, algorithm 3).

A forest has three kinds of vertices over a span: its inner part, which is a split into a left and a
right child; the span as a left child, with a label; and the span as a right child, with a label or
null. A vertex lists its derivations from the best on, and only as far as they are asked for. A
derivation is a pair of ranks in two lists below; when it is taken, the pairs with the next rank on
either side become candidates.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_psa.structs.span_cells import Tree

INNER, LEFT, RIGHT = range(3)
Floats = NDArray[np.floating[Any]]


class _Vertex:
    """The derivations of one kind of one span, as far as they are known.

    Attributes:
        known: (score, choice, rank, rank) of each derivation, the best first. The choice is the
            split of an inner part, or the rank of the label.
        candidates: a heap of derivations with negative scores.
        pending: derivations that become candidates when the ranks below are known.
        done: whether all derivations are in `known`.
    """

    __slots__ = ("candidates", "done", "known", "pending", "seen")

    def __init__(self, candidates: list[tuple[float, int, int, int]]) -> None:
        self.known: list[tuple[float, int, int, int]] = []
        self.candidates = candidates
        self.pending: list[tuple[int, int, int]] = []
        self.seen: set[tuple[int, int, int]] = set()
        self.done = False


class Forest:
    """All trees of one sentence, listed from the best on.

    Args:
        labelled: (n (n + 1) / 2, L - 1), the scores of all labels but null.
        null: (n (n + 1) / 2,), the scores of the null label.
        n: the number of tokens.
        left: (n + 1, n + 1), the best score of each span as a left child.
        right: (n + 1, n + 1), the best score of each span as a right child.

    Examples:
        >>> from spacy_psa.kernels.tree import best_children
        >>> labelled = np.array([[-1.0], [0.0], [2.0]])  # the spans (0, 1), (0, 2), (1, 2)
        >>> children = best_children(labelled.max(1), np.zeros(3), 2)
        >>> Forest(labelled, np.zeros(3), 2, *children).best(2)
        [(2.0, [(0, 2, 1), (1, 2, 1)]), (1.0, [(0, 2, 1), (0, 1, 1), (1, 2, 1)])]
    """

    def __init__(self, labelled: Floats, null: Floats, n: int, left: Floats, right: Floats) -> None:
        self.labelled, self.null, self.n = labelled, null, n
        self.left, self.right = left, right
        self.vertices: dict[tuple[int, int, int], _Vertex] = {}
        self.ranked: dict[tuple[bool, int, int], tuple[list[float], list[int]]] = {}

    def best(self, k: int) -> list[tuple[float, Tree]]:
        """Find the k best trees with their scores; fewer if fewer are possible."""
        root = (LEFT, 0, self.n)
        trees: list[tuple[float, Tree]] = []
        while len(trees) < k and self._ready(root, len(trees)):
            trees.append((self._vertex(root).known[len(trees)][0], self._tree(len(trees))))
        return trees

    def _ready(self, key: tuple[int, int, int], rank: int) -> bool:
        """List derivations of a vertex up to a rank; tell whether there is one of this rank."""
        vertex = self._vertex(key)
        while len(vertex.known) <= rank and not vertex.done:
            self._extend(key)
        return len(vertex.known) > rank

    def _extend(self, key: tuple[int, int, int]) -> None:
        """Find the next derivation of a vertex. A stack stands for recursion."""
        stack = [key]
        while stack:
            vertex = self._vertex(stack[-1])
            below = self._unknown_below(stack[-1], vertex)
            if below is not None:
                stack.append(below)
                continue
            for choice, left, right in vertex.pending:
                score = self._score(stack[-1], choice, left, right)
                if score > -np.inf:
                    heappush(vertex.candidates, (-score, choice, left, right))
            vertex.pending = []
            if vertex.candidates:
                score, choice, left, right = heappop(vertex.candidates)
                vertex.known.append((-score, choice, left, right))
                vertex.pending = self._after(stack[-1], vertex, choice, left, right)
            else:
                vertex.done = True
            stack.pop()

    def _unknown_below(
        self, key: tuple[int, int, int], vertex: _Vertex
    ) -> tuple[int, int, int] | None:
        """Find a vertex below whose next derivation a pending one needs."""
        for choice, left, right in vertex.pending:
            for below, rank in self._below(key, choice, left, right):
                part = self._vertex(below)
                if len(part.known) <= rank and not part.done:
                    return below
        return None

    def _below(
        self, key: tuple[int, int, int], choice: int, left: int, right: int
    ) -> list[tuple[tuple[int, int, int], int]]:
        """List the vertices of a derivation and its ranks in them."""
        kind, start, end = key
        if kind != INNER:
            return [((INNER, start, end), right)] if end > start + 1 else []
        return [((LEFT, start, choice), left), ((RIGHT, choice, end), right)]

    def _after(
        self, key: tuple[int, int, int], vertex: _Vertex, choice: int, left: int, right: int
    ) -> list[tuple[int, int, int]]:
        """List the derivations that follow one, and have not followed another."""
        after = []
        for each in ((choice, left + 1, right), (choice, left, right + 1)):
            if each not in vertex.seen:
                vertex.seen.add(each)
                after.append(each)
        return after

    def _score(self, key: tuple[int, int, int], choice: int, left: int, right: int) -> float:
        kind, start, end = key
        total = 0.0
        if kind != INNER:
            scores, _ = self._labels(key)
            if left >= len(scores):
                return -np.inf
            total = scores[left]
            if end == start + 1:
                return total if right == 0 else -np.inf
        for below, rank in self._below(key, choice, left, right):
            known = self._vertex(below).known
            if rank >= len(known):
                return -np.inf
            total += known[rank][0]
        return float(total)

    def _vertex(self, key: tuple[int, int, int]) -> _Vertex:
        if key not in self.vertices:
            kind, start, end = key
            if kind == INNER:
                scores = self.left[start, start + 1 : end] + self.right[end, start + 1 : end]
                first = [
                    (-score, start + 1 + i, 0, 0)
                    for i, score in enumerate(scores.tolist())
                    if score > -np.inf
                ]
                heapify(first)
                self.vertices[key] = _Vertex(first)
            else:
                self.vertices[key] = vertex = _Vertex([])
                vertex.pending = [(0, 0, 0)]
        return self.vertices[key]

    def _labels(self, key: tuple[int, int, int]) -> tuple[list[float], list[int]]:
        """Sort the labels that a span may have as a child, with null if it may have none."""
        kind, start, end = key
        # A left child of several tokens, and the sentence, must have a label.
        sure = kind == LEFT and (end > start + 1 or self.n == 1)
        if (sure, start, end) not in self.ranked:
            at = start * self.n - start * (start - 1) // 2 + end - start - 1
            scores = self.labelled[at].astype(np.float64)
            numbers = np.arange(1, len(scores) + 1)
            if not sure:
                scores = np.append(np.float64(self.null[at]), scores)
                numbers = np.append(0, numbers)
            order = np.argsort(-scores, kind="stable")
            order = order[scores[order] > -np.inf]
            self.ranked[sure, start, end] = scores[order].tolist(), numbers[order].tolist()
        return self.ranked[sure, start, end]

    def _tree(self, rank: int) -> Tree:
        """List the constituents of a tree in preorder."""
        tree: Tree = []
        stack = [((LEFT, 0, self.n), rank)]
        while stack:
            key, rank = stack.pop()
            kind, start, end = key
            self._ready(key, rank)
            _, choice, left, right = self._vertex(key).known[rank]
            if kind != INNER:
                label = self._labels(key)[1][left]
                if label:
                    tree.append((start, end, label))
            stack += reversed(self._below(key, choice, left, right))
        return tree
