"""The tree with the best expected F1: minimum Bayes risk decoding (Goodman 1996).

    F1(T) = 2 Σ_{c in T} p(c) / (|T| + E|T*|)

p(c) is the probability that the constituent c is in the true tree T*. This is the ratio of the
expected numbers of right constituents and of all. Dinkelbach 1967 gives its maximum by CKY over
2 p(c) - λ, where λ is the F1 of the best tree so far: each round finds a better tree, and the round
that finds none has found the best.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spacy_psa.structs.span_cells import Tree
from spacy_psa.structs.tree import SpanTree


@torch.no_grad()
def best_expected_f1(dist: SpanTree, parts: Tensor) -> tuple[list[Tree], Tensor]:
    """Find the tree of each sentence with the best expected F1, and this F1.

    Args:
        dist: the distribution over trees.
        parts: (L - 1, P), how often each of P constituent labels is in each label of the chart: a
            label of the chart may be a unary chain of several, or none.

    Returns:
        The trees, and their expected F1, (B,) float64; it is 1 where no tree has a constituent.

    Raises:
        ValueError: if no tree is possible. The error names the sentences.

    Examples:
        >>> dist = SpanTree.from_spans(torch.tensor([[0.1], [0.0], [0.2]]), torch.tensor([2]))
        >>> best_expected_f1(dist, torch.ones(1, 1))
        ([[(0, 2, 1), (0, 1, 1), (1, 2, 1)]], tensor([0.8177], dtype=torch.float64))
    """
    parts = parts.to(dist.labelled.device, torch.float64)
    marginals = dist.span_marginals.double()
    right = marginals @ parts @ parts.T  # (S, L - 1): expected right constituents of each choice
    size = parts.sum(1)
    sentence = dist._cells.sentence.to(right.device)
    gold = right.new_zeros(len(dist.lengths)).index_add(0, sentence, marginals @ size)
    legal = dist.labelled > -torch.inf
    trees = dist.argmax
    f1 = _expected_f1(dist, trees, right, size, gold)
    while True:
        scores = (2 * right - f1[sentence, None] * size).masked_fill(~legal, -torch.inf)
        null = torch.zeros_like(dist.null, dtype=torch.float64)
        null = null.masked_fill(dist.null == -torch.inf, -torch.inf)
        better = dist._with(scores, null).argmax
        reached = _expected_f1(dist, better, right, size, gold)
        gain = reached > f1 + 1e-12
        if not gain.any():
            return trees, f1.cpu()
        trees = [new if up else old for new, old, up in zip(better, trees, gain.tolist())]
        f1 = torch.where(gain, reached, f1)


def _expected_f1(
    dist: SpanTree, trees: list[Tree], right: Tensor, size: Tensor, gold: Tensor
) -> Tensor:
    sentence, cells, labels = dist._cells.nodes(trees, dist.labelled.shape[1] + 1)
    known = labels > 0
    owner, at = sentence[known].to(right.device), labels[known].to(right.device) - 1
    zero = torch.zeros_like(gold)
    matched = zero.index_add(0, owner, right[cells[known].to(right.device), at])
    sizes = zero.index_add(0, owner, size[at])
    return torch.where(sizes + gold > 0, 2 * matched / (sizes + gold).clamp(min=1e-300), 1.0)
