"""The tree CRF: a distribution over the constituency trees of a sentence, from scores of spans.

    p(T | scores) = exp(s(T)) / Z, s(T) = Σ_{(i,j,l) in T} s(i, j, l)             (Kitaev2018 Eq. 1)

Stern et al. 2017 introduced the margin loss, Finkel et al. 2008 the likelihood.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import cast

import torch
from torch import Tensor

from spacy_psa import kernels
from spacy_psa.ragged import to_device
from spacy_psa.structs import tree_kernels
from spacy_psa.structs.distribution import StructuredDistribution, recording
from spacy_psa.structs.inside import (
    LogPartition,
    label_entropy,
    marginals_by_autograd,
    reduce_labels,
    spread_labels,
    total,
)
from spacy_psa.structs.semiring import Entropy, KMax, Log, Max, Sample, Semiring
from spacy_psa.structs.span_cells import Constituent, SpanCells, Tree, hamming
from spacy_psa.structs.tree_evidence import Span, legal_labels
from spacy_psa.structs.tree_kbest import Forest


class SpanTree(StructuredDistribution[Tree]):
    """A distribution over the constituency trees of each of B sentences of at most n tokens.

    A tree is a list of constituents (start, end, label), see `structs.span_cells`. It is n-ary, a
    unary chain is one label, and the whole sentence is always a constituent. Each tree counts once,
    by its normal form: the one binary tree in which null spans of two tokens or more are right
    children only. The score of a tree is the sum over its constituents and over the null spans of
    its normal form. If the null scores are 0 (`from_spans`), this is the sum over its constituents,
    which does not depend on the binarisation. Evidence sets null scores to -inf.

    See `StructuredDistribution` for what holds for all distributions. Here gradients also flow from
    `hinge`.

    The scores of a span's labels are first reduced to one number, on which the cubic part works.
    Compiled kernels do the cubic part if they can (`structs.tree_kernels`). Otherwise, and for
    gradients of `marginals` and `entropy`, the cubic part is a recursion in a semiring on the
    device of the scores, with one step for each width of spans.

    Args:
        scores: (B, n+1, n+1, L) float. `scores[b, i, j, l]` is the log potential of label l over
            the tokens i to j - 1; l = 0 is the null label. Only 0 <= i < j <= lengths[b] is read.
            -inf excludes a label; NaN and +inf have no meaning.
        lengths: (B,) int64, the tokens of each sentence, each from 1 to n.

    Raises:
        ValueError: for shapes, types or lengths that do not fit.

    Examples:
        >>> trees = SpanTree(torch.zeros(1, 4, 4, 2), torch.tensor([3]))
        >>> trees.log_partition  # log 24: 3 shapes, each of 3 tokens with or without a label
        tensor([3.1781])
        >>> trees.log_prob([[(0, 3, 1), (1, 3, 1)]])
        tensor([-3.1781])
    """

    structure = "tree"

    def __init__(self, scores: Tensor, lengths: Tensor) -> None:
        if scores.dim() != 4 or scores.shape[1] != scores.shape[2] or scores.shape[3] < 2:
            shape = tuple(scores.shape)
            raise ValueError(f"scores must be of shape (B, n+1, n+1, L), L at least 2, not {shape}")
        cells = SpanCells(lengths, len(scores), scores.shape[1] - 1)
        flat = scores[self._places(cells, scores.device)]
        self._fill(flat[:, 1:], flat[:, 0], cells)

    @classmethod
    def from_spans(cls, flat: Tensor, lengths: Tensor) -> SpanTree:
        """Build the distribution from a score for each label but null, whose score is 0.

        Args:
            flat: (S, L - 1) float, the scores of the labels from 1 on. The sentences are one after
                the other. A sentence has n(n+1)/2 spans, ordered by start and then by end.
            lengths: (B,) int64, the tokens of each sentence.

        Raises:
            ValueError: for shapes, types or lengths that do not fit.

        Examples:
            >>> flat = torch.tensor([[-1.0], [0.0], [2.0]])  # (0, 1), (0, 2), (1, 2)
            >>> SpanTree.from_spans(flat, torch.tensor([2])).argmax
            [[(0, 2, 1), (1, 2, 1)]]
        """
        cells = SpanCells(lengths, len(lengths), int(lengths.max()) if len(lengths) else 0)
        if flat.dim() != 2 or len(flat) != len(cells) or not flat.shape[1]:
            shape = tuple(flat.shape)
            raise ValueError(f"flat must be of shape ({len(cells)}, L - 1), not {shape}")
        return cls.__new__(cls)._fill(flat, flat.new_zeros(len(flat)), cells)

    def _fill(self, labelled: Tensor, null: Tensor, cells: SpanCells) -> SpanTree:
        if not labelled.is_floating_point():
            raise ValueError(f"scores must be floating point, not {labelled.dtype}")
        self.labelled = labelled  # (S, L - 1), as in `from_spans`
        self.null = null  # (S,)
        self.lengths = cells.lengths
        self._cells = cells
        return self

    def _with(self, labelled: Tensor, null: Tensor) -> SpanTree:
        """Make a distribution over the same sentences with other scores."""
        return SpanTree.__new__(SpanTree)._fill(labelled, null, self._cells)

    @staticmethod
    def _places(cells: SpanCells, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        sentence, start, end = cells.sentence, cells.start, cells.end
        return to_device(sentence, device), to_device(start, device), to_device(end, device)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The number of sentences B, the length n of the longest, and the number of labels L."""
        return len(self.lengths), self._cells.longest, self.labelled.shape[1] + 1

    # ------------------------------------------------------------------ probabilities

    def expected_score(self, other: SpanTree) -> Tensor:
        """Compute the mean score of a tree if another distribution draws it.

        The score of a tree is a sum over its spans, so the marginals of the other are enough.

        Args:
            other: distributions of the same sentences over the same labels, which get no gradient.

        Returns:
            (B,) float64; -inf if this one excludes a tree that the other does not.

        Examples:
            >>> one, other = (
            ...     SpanTree.from_spans(torch.tensor([[x], [0.0], [0.0]]), torch.tensor([2]))
            ...     for x in (2.0, 0.0)
            ... )
            >>> one.expected_score(other)  # half of the trees have a label over the first token
            tensor([1.], dtype=torch.float64)
        """
        labelled, null = (counts.detach().double() for counts in other._expected)
        # Not plain products, because excluded spans have the score -inf and the count 0.
        scores = torch.where(labelled > 0, labelled * self.labelled, 0.0).sum(1)
        scores = scores + torch.where(null > 0, null * self.null, 0.0)
        start = scores.new_zeros(len(self.lengths))
        return start.index_add(0, to_device(self._cells.sentence, scores.device), scores)

    @property
    def dtype(self) -> torch.dtype:
        """The type of the scores."""
        return self.labelled.dtype

    @cached_property
    def marginals(self) -> Tensor:
        """The probability p((i, j, l) in T) of each span and label, (B, n+1, n+1, L).

        It is 0 at entries that are not a span of the sentence. For l = 0 it is the probability of a
        null span in the normal form, which is the gradient of the null score. The probability that
        a span is not a constituent is 1 minus the sum over the other labels.
        """
        labelled, null = self._expected
        side = self._cells.longest + 1
        dense = labelled.new_zeros(len(self.lengths), side, side, labelled.shape[1] + 1)
        both = torch.cat([null[:, None], labelled], 1)
        return dense.index_put(self._places(self._cells, dense.device), both)

    @property
    def span_marginals(self) -> Tensor:
        """The probability p((i, j, l) in T), (S, L - 1), in the layout of `from_spans`."""
        return self._expected[0]

    @cached_property
    def entropy(self) -> Tensor:
        """The entropy of the distribution over trees, (B,) nats."""
        if self._compiled and not self._requires_grad:
            label, with_label, _, entropy = self._inside_outside
            among = with_label * label_entropy(self.labelled, label)
            entropy = entropy.index_add(0, to_device(self._cells.sentence, entropy.device), among)
        else:
            with recording():
                entropy = total(Entropy(), self.labelled, self.null, self._cells, 2)[1]
        return entropy.to(self.labelled.dtype)

    # -------------------------------------------------------------------------- trees

    @cached_property
    def argmax(self) -> list[Tree]:
        """The best tree of each sentence (CKY).

        Of equally good trees, null is taken before a label and a low label before a high label,
        then the lowest split of the normal form.

        Raises:
            ValueError: if no tree is possible. The error names the sentences.
        """
        return super().argmax

    @cached_property
    def max(self) -> Tensor:
        """The score of the best tree, (B,); -inf if no tree is possible."""
        scores, trees = self._best
        whole = [
            tree or [(0, n, 1)] for tree, n in zip(trees, self.lengths.tolist(), strict=True)
        ]  # if no tree is possible, any tree stands in for it
        with recording():
            best = self._score(whole)
            impossible = to_device(scores == -torch.inf, best.device)
            return best.masked_fill(impossible, -torch.inf).to(self.labelled.dtype)

    # ------------------------------------------------------------------------- margin

    def augment(self, trees: Sequence[Iterable[Constituent]]) -> SpanTree:
        """Add the cost Δ(T, T*) to the score of each tree T, where T* is the gold tree.

        Δ is the number of spans with different labels in T and T*; a span that is not a constituent
        has null (see `hamming`). It is the Hamming loss of Kitaev2018. Δ is a sum over the
        constituents of T: |T*|, which is added to the whole sentence, and for each span of T, 1 if
        T* has no label there, 0 if it has another label, and -1 if it has the same label. The cost
        of the published code adds 1 to each wrong node of the binary tree instead. Unlike that
        cost, Δ is the same for all binarisations and charges each missing constituent.

        Args:
            trees: T*, one tree for each sentence.

        Raises:
            ValueError: for a tree that is not one over the tokens of its sentence. The error names
                the sentence.

        Examples:
            >>> trees = SpanTree(torch.zeros(1, 4, 4, 2), torch.tensor([3]))
            >>> gold = [(0, 3, 1), (1, 3, 1)]
            >>> trees.augment([gold]).score([gold])
            tensor([0.])
            >>> trees.augment([gold]).score([[(0, 3, 1)]])
            tensor([1.])
        """
        sentence, cells, labels = self._cells.nodes(trees, self.labelled.shape[1] + 1)
        gold = labels > 0
        sentence, cells, labels = sentence[gold], cells[gold], labels[gold]
        cost = torch.ones(len(self._cells), 1)
        cost[cells] = 0.0
        cost[self._cells.roots, 0] += torch.bincount(sentence, minlength=len(trees))
        labelled = self.labelled + cost.to(self.labelled)
        right = labelled.new_full((len(cells),), -1.0)
        at = to_device(cells, right.device), to_device(labels, right.device) - 1
        labelled.index_put_(at, right, accumulate=True)  # in place: the sum above is a new tensor
        return self._with(labelled, self.null)

    def hinge(self, trees: Sequence[Iterable[Constituent]]) -> Tensor:
        """Compute the margin loss max_T [s(T) + Δ(T, T*)] - s(T*), (B,), at least 0.

        Δ is as in `augment`. Gradients reach only the spans of T* and of the one tree that attains
        the maximum.

        Args:
            trees: T*, the gold tree of each sentence.

        Raises:
            ValueError: if T* is not possible, or not a tree over the tokens of its sentence. The
                error names the sentences.

        Examples:
            >>> trees = SpanTree(torch.zeros(1, 4, 4, 2), torch.tensor([3]))
            >>> trees.hinge([[(0, 3, 1), (1, 3, 1)]])  # the worst tree has 5 other labels
            tensor([5.])
        """
        trees = [list(tree) for tree in trees]
        gold = self._score(trees)
        impossible = (gold == -torch.inf).nonzero()[:, 0].tolist()
        if impossible:
            raise ValueError(f"the trees of the sentences {impossible} are not possible")
        with torch.no_grad():
            worst = self.augment(trees).argmax
        cost = gold.new_tensor([hamming(*pair) for pair in zip(worst, trees, strict=True)])
        margin = self._score(worst) + cost - gold
        return torch.relu(margin).to(self.labelled.dtype)

    # ----------------------------------------------------------------------- evidence

    def constrain(
        self,
        allowed: Tensor | None = None,
        *,
        required: Sequence[Iterable[Span]] | None = None,
        forbidden: Sequence[Iterable[Span]] | None = None,
    ) -> SpanTree:
        """Condition on evidence: trees that contradict it get the probability 0.

        `constrained.log_partition - self.log_partition` is the log probability of the evidence.

        Args:
            allowed: (B, n+1, n+1, L) bool, the labels that each span may have. Without label 0, the
                span may not be null in the normal form.
            required: for each sentence, the spans (start, end), of any label, and the constituents
                (start, end, label) that must be in its tree. Spans that cross them become
                impossible. Several labels, of which one must be there, are a list.
            forbidden: for each sentence, the spans and constituents that must not be in its tree.

        Raises:
            ValueError: for a mask of another shape or type, and for a span or label out of range.
                The error names the sentence.

        Examples:
            >>> trees = SpanTree(torch.zeros(1, 4, 4, 2), torch.tensor([3]))
            >>> evidence = trees.constrain(required=[[(0, 2)]])
            >>> (evidence.log_partition - trees.log_partition).exp()
            tensor([0.3333])
        """
        labels = self.labelled.shape[1] + 1
        legal = legal_labels(self._cells, labels, allowed, required, forbidden)
        illegal = ~to_device(legal, self.labelled.device)
        return self._with(
            self.labelled.masked_fill(illegal[:, 1:], -torch.inf),
            self.null.masked_fill(illegal[:, 0], -torch.inf),
        )

    def merge(self, spans: Sequence[Iterable[tuple[int, int]]], label: int = 1) -> SpanTree:
        """Count trees that differ only in certain spans as one tree, in which these spans are.

        The probability of such a tree is the sum over all labels that the spans may have, and over
        being no constituents. Trees that cross the spans become impossible. The null scores must be
        0, as from `from_spans`, or -inf.

        Args:
            spans: for each sentence, the spans (start, end).
            label: the label that the spans get.

        Raises:
            ValueError: for a span out of range. The error names the sentence.

        Examples:
            >>> trees = SpanTree(torch.zeros(1, 3, 3, 2), torch.tensor([2]))
            >>> for log_prob, tree in trees.merge([[(0, 1)]]).kbest(9)[0]:
            ...     print(round(log_prob, 4), tree)
            -0.6931 [(0, 2, 1), (0, 1, 1)]
            -0.6931 [(0, 2, 1), (0, 1, 1), (1, 2, 1)]
        """
        merged = self.constrain(required=spans)
        labelled = merged.labelled.clone()
        for b, (own, n) in enumerate(zip(spans, self.lengths.tolist(), strict=True)):
            for start, end in own:
                cell = self._cells.at(b, start, end)
                scores = self.labelled[cell]
                if (start, end) != (0, n):  # the whole sentence is always a constituent
                    scores = torch.cat([scores, self.null[cell : cell + 1]])
                labelled[cell] = -torch.inf
                labelled[cell, label - 1] = scores.logsumexp(0)
        return self._with(labelled, merged.null)

    # ---------------------------------------------------------------------- inference

    @property
    def _compiled(self) -> bool:
        return kernels.available()

    @property
    def _requires_grad(self) -> bool:
        return self.labelled.requires_grad or self.null.requires_grad

    @cached_property
    def _log_z(self) -> Tensor:
        with recording():
            if not self._compiled:
                return total(Log(), self.labelled, self.null, self._cells)[0]
            if self._requires_grad:
                return cast(Tensor, LogPartition.apply(self.labelled, self.null, self._cells))
        return tree_kernels.log_partition(reduce_labels(self.labelled), self.null, self._cells)

    @cached_property
    def _inside_outside(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The log sums of the labels, p(a label) and p(null), all (S,), and the entropy (B,)."""
        label = reduce_labels(self.labelled)
        sums = tree_kernels.inside_outside(label, self.null, self._cells)
        _, with_label, without, entropy = sums
        return label, with_label, without, entropy

    @cached_property
    def _expected(self) -> tuple[Tensor, Tensor]:
        """The gradients of log Z, (S, L - 1) and (S,)."""
        if self._requires_grad or not self._compiled:
            with recording():
                return marginals_by_autograd(self.labelled, self.null, self._cells)
        label, with_label, without, _ = self._inside_outside
        return spread_labels(self.labelled, label, with_label), without.to(self.null.dtype)

    @cached_property
    def _best(self) -> tuple[Tensor, list[Tree]]:
        # The tree is empty if none is possible.
        scores, cells, labels = self._best_nodes
        return scores, self._trees(cells, labels)

    @cached_property
    def _best_nodes(self) -> tuple[Tensor, Tensor, Tensor]:
        """The best scores, (B,) float64, and the cells and labels of the best trees, int64."""
        if not self._compiled:
            scores, ((cells, labels),) = self._trace(Max(), 1)
            return scores[0], cells, labels
        top, label = self.labelled.detach().max(1)
        best, cells = tree_kernels.cky(top, self.null, self._cells)
        return best, cells, label[cells] + 1

    def _trees(self, cells: Tensor, labels: Tensor) -> list[Tree]:
        """Build a tree for each sentence from its constituents."""
        cells, labels = cells.cpu(), labels.cpu()
        return self._cells.trees(self._cells.sentence[cells], cells, labels, len(self.lengths))

    def _kbest(self, k: int) -> tuple[Tensor, list[list[Tree]]]:
        batch = len(self.lengths)
        if not self._compiled:
            scores, nodes = self._trace(KMax(k), k)
            return scores, [self._trees(*own) for own in nodes]
        from spacy_psa.kernels import tree as kernel

        labelled, null = map(tree_kernels.to_numpy, (self.labelled, self.null))
        ranked = torch.full((k, batch), -torch.inf, dtype=torch.float64)
        best: list[list[Tree]] = [[[] for _ in range(batch)] for _ in range(k)]
        for b, n in enumerate(self.lengths.tolist()):
            own = self._cells.of(b)
            children = kernel.best_children(labelled[own].max(1), null[own], n, self._cells.width)
            ranking = Forest(labelled[own], null[own], n, *children).best(k)
            for rank, (score, tree) in enumerate(ranking):
                ranked[rank, b], best[rank][b] = score, tree
        return ranked, best

    def _sample(self, n: int, generator: torch.Generator | None) -> list[list[Tree]]:
        # There are n copies of the sentences, and each copy draws one tree.
        cells = SpanCells(self.lengths.repeat(n), n * len(self.lengths), self._cells.longest)
        copies = SpanTree.__new__(SpanTree)
        copies._fill(self.labelled.detach().repeat(n, 1), self.null.detach().repeat(n), cells)
        _, (nodes,) = copies._trace(Sample(generator), 1)
        trees, batch = copies._trees(*nodes), len(self.lengths)
        return [trees[b::batch] for b in range(batch)]

    def _trace(self, semiring: Semiring, k: int) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Return scores (k, B) float64, and the cells and labels of the k trees of each sentence.

        The gradients of the scores mark the trees. Missing trees have no cells.
        """
        with recording():
            labelled = self.labelled.detach().clone().requires_grad_()
            scores = total(semiring, labelled, self.null.detach(), self._cells, k)
            nodes = []
            for score in scores:
                (chosen,) = torch.autograd.grad(score.sum(), labelled, retain_graph=True)
                sentence = to_device(self._cells.sentence, score.device)
                chosen = chosen * (score > -torch.inf)[sentence, None]
                cells, labels = chosen.nonzero(as_tuple=True)
                nodes.append((cells, labels + 1))
        return scores.detach(), nodes

    def _score(self, trees: Sequence[Iterable[Constituent]]) -> Tensor:
        device = self.labelled.device
        nodes = self._cells.nodes(trees, self.labelled.shape[1] + 1)
        sentence, cells, labels = (to_device(index, device) for index in nodes)
        known = labels > 0
        scores = torch.cat(
            [self.labelled[cells[known], labels[known] - 1], self.null[cells[~known]]]
        )
        owner = torch.cat([sentence[known], sentence[~known]])
        start = scores.new_zeros(len(self.lengths), dtype=torch.float64)
        return start.index_add(0, owner, scores.double())
