"""The tree with the best expected F1: minimum Bayes risk decoding (Goodman 1996).

    F1(T) = 2 Σ_{c in T} p(c) / (|T| + E|T*|)

p(c) is the probability that the constituent c is in the true tree T*. This is the ratio of the
expected numbers of right constituents and of all. Dinkelbach 1967 finds its maximum by CKY over
2 p(c) - λ, where λ is the F1 of the best tree so far: each round finds a better tree, and the round
that finds none has found the best.

A label of the chart may be a chain of several constituents. Of the labels with equally many, the
one with the most expected right constituents is the best whatever λ is: CKY needs no others.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from spacy_psa.ragged import to_device
from spacy_psa.structs.span_cells import Tree
from spacy_psa.structs.tree import SpanTree

BLOCK = 2**14
"""The spans whose labels are compared at once."""


@torch.no_grad()
def best_expected_f1(dist: SpanTree, parts: Tensor) -> tuple[list[Tree], Tensor]:
    """Find the tree of each sentence with the best expected F1, and this F1.

    Args:
        parts: (L - 1, P), 1 where a label of the chart has a constituent, else 0: a label of the
            chart may be a unary chain of several constituents, or none.

    Returns:
        The trees, and their expected F1, (B,) float64; it is 1 where no tree has a constituent.

    Raises:
        ValueError: if no tree is possible. The error names the sentences.

    Examples:
        >>> dist = SpanTree.from_spans(torch.tensor([[0.1], [0.0], [0.2]]), torch.tensor([2]))
        >>> best_expected_f1(dist, torch.ones(1, 1))
        ([[(0, 2, 1), (0, 1, 1), (1, 2, 1)]], tensor([0.8177], dtype=torch.float64))
    """
    device = dist.labelled.device
    parts = parts.to(device, torch.float64)
    size = parts.sum(1)
    choices, gold = _choices(dist, parts, size)
    sentence = to_device(dist._cells.sentence, device)
    null = torch.zeros_like(dist.null, dtype=torch.float64)
    null = null.masked_fill(dist.null == -torch.inf, -torch.inf)
    scores, cells, label = dist._best_nodes
    dist._check_possible(scores)
    label = label - 1
    right = dist.span_marginals[cells].double() @ parts @ parts.T
    right = right.gather(1, label[:, None])[:, 0]
    f1 = _expected_f1(sentence[cells], right, size[label], gold)
    while True:
        scores = 2 * choices.right - f1[sentence, None] * choices.size
        _, other, group = dist._with(scores, null)._best_nodes
        group = group - 1
        right = choices.right[other, group]
        reached = _expected_f1(sentence[other], right, choices.size[group], gold)
        gain = reached > f1 + 1e-12
        if not gain.any():
            return dist._trees(cells, label + 1), f1.cpu()
        kept, new = ~gain[sentence[cells]], gain[sentence[other]]
        cells = torch.cat([cells[kept], other[new]])
        label = torch.cat([label[kept], choices.label[other, group][new]])
        f1 = torch.where(gain, reached, f1)


class _Choices(NamedTuple):
    """The labels that a best tree may have: of those of one size, the best of each span."""

    right: Tensor
    """(S, K) float64, the expected right constituents of the label; -inf where none is legal."""
    label: Tensor
    """(S, K) int64, the label, from 0."""
    size: Tensor
    """(K,) float64, the constituents in the label."""


def _choices(dist: SpanTree, parts: Tensor, size: Tensor) -> tuple[_Choices, Tensor]:
    """Find the choices of each span, and E|T*| of each sentence, (B,).

    Spans are taken block by block, so that nothing of the size (S, L - 1) is made.
    """
    marginals = dist.span_marginals
    sizes, group = size.unique(return_inverse=True)
    right = marginals.new_empty((len(marginals), len(sizes)), dtype=torch.float64)
    label = torch.empty_like(right, dtype=torch.int64)
    gold = right.new_zeros(len(dist.lengths))
    sentence = to_device(dist._cells.sentence, right.device)
    for rows in torch.arange(len(marginals), device=right.device).split(BLOCK):
        block = marginals[rows].double()
        gold.index_add_(0, sentence[rows], block @ size)
        expected = (block @ parts @ parts.T).masked_fill(dist.labelled[rows].isneginf(), -torch.inf)
        for k in range(len(sizes)):
            members = (group == k).nonzero()[:, 0]
            best = expected[:, members].max(1)
            right[rows, k], label[rows, k] = best.values, members[best.indices]
    return _Choices(right, label, sizes), gold


def _expected_f1(owner: Tensor, right: Tensor, size: Tensor, gold: Tensor) -> Tensor:
    """Compute the expected F1 of the trees with these constituents, (B,)."""
    zero = torch.zeros_like(gold)
    matched = zero.index_add(0, owner, right)
    sizes = zero.index_add(0, owner, size)
    return torch.where(sizes + gold > 0, 2 * matched / (sizes + gold).clamp(min=1e-300), 1.0)
