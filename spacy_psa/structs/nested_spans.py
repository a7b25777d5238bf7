"""A distribution over sets of nested, labelled spans: a tree CRF with latent nodes (Fu2021).

    p(S) = Z(trees whose labelled nodes are S) / Z(all trees) = exp(Σ_{(i,j,l) in S} s(i, j, l)) / Z

The observed nodes of a tree are the spans of S, all others are latent: they have no label, and the
score 0. Fu2021 sums over all binary trees, so a set counts as often as it can be binarised. Here
each set counts once, by the normal form of `structs.tree`. So the best set, the k best and the
entropy are those of sets of spans, and not of binary trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spacy_psa.ragged import to_device
from spacy_psa.structs.distribution import StructuredDistribution, recording
from spacy_psa.structs.semiring import logsumexp
from spacy_psa.structs.span_cells import Constituent, SpanCells, Tree
from spacy_psa.structs.tree import SpanTree
from spacy_psa.structs.tree_evidence import Span, evidence_on, spans_crossing


class NestedSpans(StructuredDistribution[Tree]):
    """A distribution over the sets of nested spans of each of B sentences.

    A value is a list of spans (start, end, label) in preorder, over fenceposts 0 <= start < end
    <= n. Labels count from 1. Two spans are nested or apart, and a pair of fenceposts has at most
    one span. The list may be empty. Flat spans are a special case.

    The labels of a pair of fenceposts are reduced to one score; then a `SpanTree` with one label
    does the cubic part. Only spans of at most `longest` tokens are possible.

    See `StructuredDistribution` for what holds for all distributions.

    Args:
        labelled: (S, L) float, the log potential of each label over each span; that of no label is
            0. The sentences are one after the other, and their spans of at most `longest` tokens
            are ordered by start and then by end. -inf excludes a label.
        lengths: (B,) int64, the tokens of each sentence, at least 1.
        longest: the most tokens of a span; None for no limit.

    Raises:
        ValueError: for shapes, types or lengths that do not fit.

    Examples:
        >>> spans = NestedSpans(torch.zeros(3, 1), torch.tensor([2]))  # (0, 1), (0, 2), (1, 2)
        >>> spans.log_partition.exp()  # 8 sets: no two of these spans cross
        tensor([8.])
        >>> spans.log_prob([[(0, 2, 1), (1, 2, 1)]]).exp()
        tensor([0.1250])
    """

    structure = "set of nested spans"
    _list = SpanCells

    def __init__(self, labelled: Tensor, lengths: Tensor, longest: int | None = None) -> None:
        size = int(lengths.max()) if len(lengths) else 0
        cells = self._list(lengths, len(lengths), size, longest)
        if labelled.dim() != 2 or len(labelled) != len(cells.band) or not labelled.shape[1]:
            shape = tuple(labelled.shape)
            raise ValueError(f"labelled must be of shape ({len(cells.band)}, L), not {shape}")
        if not labelled.is_floating_point():
            raise ValueError(f"scores must be floating point, not {labelled.dtype}")
        self._fill(labelled, labelled.new_zeros(len(cells), dtype=torch.float64), cells)

    def _fill(self, labelled: Tensor, null: Tensor, cells: SpanCells) -> Any:
        self.labelled = labelled
        # (C,) float64 over all cells: 0, or -inf where a span must have a label. At the cell of a
        # whole sentence, it is the score of a sentence that is not a span itself.
        self._null = null
        self._cells = cells
        self.lengths = cells.lengths
        return self

    def with_scores(self, labelled: Tensor) -> NestedSpans:
        """Make a distribution over the same sets with other scores, (S, any number of labels)."""
        return type(self).__new__(type(self))._fill(labelled, self._null, self._cells)

    def uniform(self) -> NestedSpans:
        """Make a distribution in which all possible sets have the same probability.

        It has no gradients.

        Examples:
            >>> spans = NestedSpans(torch.randn(3, 1), torch.tensor([2]))
            >>> spans.uniform().log_partition.exp()  # the number of sets
            tensor([8.])
        """
        excluded = self.labelled == -torch.inf
        return self.with_scores(torch.zeros_like(self.labelled).masked_fill(excluded, -torch.inf))

    def double(self) -> NestedSpans:
        """Make the same distribution in double precision."""
        return self.with_scores(self.labelled.double())

    def split(self) -> list[NestedSpans]:
        """Make a distribution for each sentence."""
        cells = self._cells
        parts = []
        for b, own in enumerate(self.labelled.split(cells.row_counts.tolist())):
            n = int(self.lengths[b])
            alone = self._list(self.lengths[b : b + 1], 1, n, cells.width)
            parts.append(type(self).__new__(type(self))._fill(own, self._null_of(b), alone))
        return parts

    def _null_of(self, sentence: int) -> Tensor:
        return self._null[self._cells.of(sentence)]

    @classmethod
    def join(cls, parts: Sequence[NestedSpans]) -> NestedSpans:
        """Join the distributions of sentences, at least one, with the same limit and labels."""
        lengths = torch.cat([part.lengths for part in parts])
        longest = max(part._cells.width for part in parts)
        cells = cls._list(lengths, len(lengths), int(lengths.max()), longest)
        labelled = torch.cat([part.labelled for part in parts])
        return cls.__new__(cls)._fill(labelled, torch.cat([part._null for part in parts]), cells)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The number of sentences B, the length n of the longest, and the number of labels L."""
        return len(self.lengths), self._cells.longest, self.labelled.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        """The type of the scores."""
        return self.labelled.dtype

    @property
    def sentence(self) -> Tensor:
        """The sentence of each row of `labelled`, (S,) int64."""
        counts = self._cells.row_counts
        return torch.repeat_interleave(torch.arange(len(counts)), counts)

    def row(self, sentence: int, start: int, end: int) -> int:
        """Return the row of a span in `labelled`; -1 if it is too long.

        Raises:
            ValueError: if the sentence has no such span.
        """
        return self._cells.row(sentence, start, end)

    # ------------------------------------------------------------------ probabilities

    @cached_property
    def _sums(self) -> SpanTree:
        """The trees over spans with the sum of their labels."""
        with recording():
            return self._tree(logsumexp(self.labelled.double(), 1)[:, None])

    def _tree(self, scores: Tensor) -> SpanTree:
        """Make the trees over the scores (S, k) of k labels; the label k + 1 is for no span."""
        cells, device = self._cells, scores.device
        full = scores.new_full((len(cells), scores.shape[1] + 1), -torch.inf)
        full[to_device(cells.band, device), :-1] = scores
        roots = to_device(cells.roots, device)
        full[roots, -1] = self._null[roots].to(full)
        return SpanTree.__new__(SpanTree)._fill(full, self._null.to(full), cells)

    @property
    def _log_z(self) -> Tensor:
        return self._sums._log_z

    @property
    def span_probabilities(self) -> Tensor:
        """The probability that a span is there, with any label, (S,) float64."""
        return self._sums.span_marginals[to_device(self._cells.band, self.labelled.device), 0]

    @cached_property
    def marginals(self) -> Tensor:
        """The probability of each span and label, (S, L), in the layout of `labelled`."""
        with recording():
            shares = (self.labelled.double() - self._label_sums[:, None]).exp()
            marginals = self.span_probabilities[:, None] * shares
        return marginals.to(self.dtype)

    @property
    def _label_sums(self) -> Tensor:
        sums = self._sums.labelled[to_device(self._cells.band, self.labelled.device), 0]
        return sums.masked_fill(sums == -torch.inf, 0.0)

    @cached_property
    def entropy(self) -> Tensor:
        """The entropy of the distribution over sets of spans, (B,) nats."""
        with recording():
            log_shares = self.labelled.double() - self._label_sums[:, None]
            among = -(log_shares.exp() * log_shares.masked_fill(log_shares == -torch.inf, 0)).sum(1)
            owner = to_device(self.sentence, among.device)
            entropy = self._sums.entropy.index_add(0, owner, self.span_probabilities * among)
        return entropy.to(self.dtype)

    def expected_score(self, other: NestedSpans) -> Tensor:
        """Compute the expected score of a set that `other` draws, (B,) float64.

        Args:
            other: a distribution over the same sentences and labels. It gets no gradient.
        """
        weight = other.marginals.detach().double()
        scores = self.labelled.double().masked_fill(weight == 0, 0.0)
        expected = (weight * scores).sum(1)
        zero = expected.new_zeros(len(self.lengths))
        return zero.index_add(0, to_device(self.sentence, zero.device), expected)

    # --------------------------------------------------------------------- structures

    @property
    def max(self) -> Tensor:
        """The score of the best set, (B,); -inf if no set is possible."""
        return self._score(self._best[1]).to(self.dtype)

    @property
    def empty_log_prob(self) -> Tensor:
        """The log probability of the set without spans, (B,) float64."""
        return self._empty - self._log_z

    @property
    def _empty(self) -> Tensor:
        """The score of the set without spans: that of the null nodes of its normal form."""
        cells, null = self._cells, self._null
        nodes = (cells.end == self.lengths[cells.sentence]) | (cells.end - cells.start == 1)
        start = null.new_zeros(len(self.lengths))
        return start.index_add(0, to_device(cells.sentence[nodes], null.device), null[nodes])

    @property
    def best_rows(self) -> tuple[Tensor, Tensor]:
        """The rows and the labels, from 0, of the best set of each sentence, int64 on the CPU."""
        return self._best_set[1:]

    @cached_property
    def _best_set(self) -> tuple[Tensor, Tensor, Tensor]:
        """The best scores, (B,) float64, and `best_rows`; no rows if no set is possible."""
        top, label = self.labelled.detach().double().max(1)
        scores, cells, rank = self._tree(top[:, None])._best_nodes
        rows = self._cells.rows[cells.cpu()[rank.cpu() == 1]]  # rank 2: the sentence is not a span
        return scores, rows, label.cpu()[rows]

    @cached_property
    def _best(self) -> tuple[Tensor, list[Tree]]:
        scores, *chosen = self._best_set
        return scores, self.sets(*chosen)

    def sets(self, rows: Tensor, labels: Tensor) -> list[Tree]:
        """Build the set of each sentence from rows of `labelled` and their labels, from 0."""
        return self._cells.trees(
            self.sentence[rows], self._cells.band[rows], labels + 1, len(self.lengths)
        )

    def _kbest(self, k: int) -> tuple[Tensor, list[list[Tree]]]:
        count = min(k, self.labelled.shape[1])
        top, label = self.labelled.detach().double().sort(dim=1, descending=True, stable=True)
        scores, ranked = self._tree(top[:, :count])._kbest(k)
        return scores, [self._named(trees, label[:, :count].cpu().numpy()) for trees in ranked]

    def _sample(self, n: int, generator: torch.Generator | None) -> list[list[Tree]]:
        drawn = self._sums._sample(n, generator)
        flat = [self._named([trees[i] for trees in drawn], None) for i in range(n)]
        rows = torch.tensor(
            [self.row(b, s, e) for sets in flat for b, own in enumerate(sets) for s, e, _ in own],
            dtype=torch.int64,
        )
        rows = to_device(rows, self.labelled.device)
        shares = torch.softmax(self.labelled.detach().double()[rows], 1)
        labels = iter(
            (torch.multinomial(shares, 1, generator=generator)[:, 0] + 1).tolist()
            if len(rows)
            else ()
        )
        named = [[[(s, e, next(labels)) for s, e, _ in own] for own in sets] for sets in flat]
        return [[sets[b] for sets in named] for b in range(len(self.lengths))]

    def _named(self, trees: Sequence[Tree], label: NDArray[np.int64] | None) -> list[Tree]:
        """Turn trees of `_tree` into sets: `label` has the label of each row and rank, from 0."""
        sets = []
        for b, (tree, n) in enumerate(zip(trees, self.lengths.tolist(), strict=True)):
            none = 2 if label is None else label.shape[1] + 1
            own = [node for node in tree if node[:2] != (0, n) or node[2] != none]
            if label is not None:
                own = [(s, e, int(label[self.row(b, s, e), rank - 1]) + 1) for s, e, rank in own]
            sets.append(own)
        return sets

    def _score(self, values: Sequence[Iterable[Constituent]]) -> Tensor:
        labels = self.labelled.shape[1]
        none = labels + 1
        trees = []
        for own, n in zip(values, self.lengths.tolist(), strict=True):
            tree = list(own)
            if max((label for *_, label in tree), default=0) > labels:
                raise ValueError(f"a label of {tree} is not from 1 to {labels}")
            trees.append(tree if any(t[:2] == (0, n) for t in tree) else [(0, n, none), *tree])
        sentence, cells, chosen = self._cells.nodes(trees, none + 1)
        known = (chosen > 0) & (chosen < none)
        rows = self._cells.rows[cells[known]]
        device = self.labelled.device
        rows = to_device(rows, device)
        scores = self.labelled[rows, to_device(chosen[known], device) - 1].double()
        scores = scores.masked_fill(rows < 0, -torch.inf)  # spans that are too long
        null = to_device(self._null[to_device(cells[~known], self._null.device)], device)
        start = scores.new_zeros(len(self.lengths))
        start = start.index_add(0, to_device(sentence[known], device), scores)
        return start.index_add(0, to_device(sentence[~known], device), null)

    # ----------------------------------------------------------------------- evidence

    def constrain(
        self,
        allowed: Tensor | None = None,
        *,
        required: Sequence[Iterable[Span]] | None = None,
        forbidden: Sequence[Iterable[Span]] | None = None,
    ) -> NestedSpans:
        """Condition on evidence: sets that contradict it get the probability 0.

        Args:
            allowed: (S, L) or (S, 1) bool, the labels that each span may have.
            required: for each sentence, the spans (start, end), of any label, and (start, end,
                label) that must be there. Several labels, of which one must be there, are a list.
            forbidden: for each sentence, the spans that must not be there.

        Raises:
            ValueError: for a mask of another shape or type, and for a span or label out of range.

        Examples:
            >>> spans = NestedSpans(torch.zeros(3, 1), torch.tensor([2]))
            >>> evidence = spans.constrain(required=[[(0, 2)]], forbidden=[[(0, 1)]])
            >>> (evidence.log_partition - spans.log_partition).exp()
            tensor([0.2500])
        """
        labels = self.labelled.shape[1]
        legal = torch.ones(len(self.labelled), labels, dtype=torch.bool)
        if allowed is not None:
            if allowed.dtype != torch.bool or len(allowed) != len(legal):
                raise ValueError(f"allowed must be bool of {len(legal)} rows")
            legal &= allowed.cpu()
        cells, null = self._cells, self._null.cpu().clone()
        batch = len(self.lengths)
        for b, start, end, chosen in evidence_on("required", required, batch, labels + 1):
            own = cells.of(b)
            clash = spans_crossing(cells, own, start, end)
            null[own] = null[own].masked_fill(clash, -torch.inf)
            rows = cells.rows[own][clash]
            legal[rows[rows >= 0]] = False
            null[cells.at(b, start, end)] = -torch.inf
            row = self.row(b, start, end)
            if row >= 0:
                legal[row] &= chosen[1:]
        for b, start, end, chosen in evidence_on("forbidden", forbidden, batch, labels + 1):
            row = self.row(b, start, end)
            if row >= 0:
                legal[row] &= ~chosen[1:]
        labelled = self.labelled.masked_fill(~to_device(legal, self.labelled.device), -torch.inf)
        null = to_device(null, self._null.device)
        return type(self).__new__(type(self))._fill(labelled, null, cells)
