"""The nested spans with the best expected F1: minimum Bayes risk decoding (Goodman 1996).

    F1(S) = 2 Σ_{c in S} p(c) / (|S| + E|S*|), F1({}) = p(S* = {})

p(c) is the probability that the span c is in the true set S*. This is the ratio of the expected
numbers of right spans and of all, over the sentences of a document. The algorithm of
Dinkelbach 1967 has its maximum by CKY over 2 p(c) - λ, where λ is the F1 of the best set so far.

A label of the distribution may stand for several labels of one span. Of those that stand for
equally many, the one with the most expected right spans is the best whatever λ is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from spacy_psa.structs.label_layers import LabelLayers
from spacy_psa.structs.nested_spans import NestedSpans
from spacy_psa.structs.span_cells import Tree


class Choices(NamedTuple):
    """The rest of the distribution of a sentence that its part of the best sets depends on."""

    dist: NestedSpans
    """The sets that are possible; its scores, (S, K), are the expected right spans of each choice,
    -inf where it is not legal."""
    label: Tensor
    """(S, K) int64, the label of each choice, from 1."""
    size: Tensor
    """(K,) float64, the spans that each choice stands for."""
    gold: float
    """E|S*|."""
    empty: float
    """log p(S* = {})."""
    chances: Tensor | None
    """(S, P) float64, the probability of each of the P labels over each span; None if each label
    stands for itself: then the score of a choice is its probability."""


@torch.no_grad()
def choices(dist: NestedSpans, parts: Tensor) -> list[Choices]:
    """Reduce the distributions of sentences to the choices that a best set may have.

    Args:
        dist: the distributions of B sentences.
        parts: (L, P), 1 where a label of `dist` stands for one of P labels, else 0.

    Returns:
        The choices of each sentence.

    Raises:
        ValueError: if no set is possible. The error names the sentences.
    """
    dist._check_possible(dist._log_z)
    parts = parts.to(dist.labelled.device, torch.float64)
    marginals = dist.marginals.double()
    sizes, group = parts.sum(1).unique(return_inverse=True)
    alone = sizes.tolist() == [1.0]
    chances = marginals if alone else marginals @ parts
    right = chances if alone else chances @ parts.T
    illegal = dist.labelled.isneginf()
    gold = right.new_zeros(len(dist.lengths))
    gold.index_add_(0, dist.sentence.to(gold.device), marginals @ parts.sum(1))
    columns, labels = [], []
    if isinstance(dist, LabelLayers):  # each label has a choice of its own
        alone, chances = False, marginals @ parts
        columns = list(right.masked_fill(illegal, -torch.inf).unbind(1))
        labels = [torch.full_like(group, k + 1)[:1].expand(len(right)) for k in range(len(group))]
        sizes = torch.ones_like(parts.sum(1))
    for k in range(len(sizes) if not columns else 0):
        members = (group == k).nonzero()[:, 0]
        own = right[:, members].masked_fill(illegal[:, members], -torch.inf)
        best = own.max(1)
        columns.append(best.values)
        labels.append(members[best.indices] + 1)
    by_sentence = dist.with_scores(torch.stack(columns, 1)).split()
    counts = dist._cells.row_counts.tolist()
    label = torch.stack(labels, 1).cpu().split(counts)
    kept = [None] * len(counts) if alone else chances.split(counts)
    empty = dist.empty_log_prob.tolist()
    selected = zip(by_sentence, label, gold.tolist(), empty, kept, strict=True)
    return [Choices(own, numbers, sizes, *rest) for own, numbers, *rest in selected]


@torch.no_grad()
def best_expected_f1(sentences: Sequence[Choices], documents: Sequence[int]) -> list[Tree]:
    """Find the sets of sentences with the best expected F1 over each document.

    Args:
        sentences: the choices of each sentence.
        documents: the document of each sentence.

    Examples:
        >>> dist = NestedSpans(torch.tensor([[0.1], [0.0], [-3.0]]), torch.tensor([2]))
        >>> best_expected_f1(choices(dist, torch.ones(1, 1)), [0])
        [[(0, 2, 1), (0, 1, 1)]]
    """
    if not sentences:
        return []
    dist = type(sentences[0].dist).join([each.dist for each in sentences])
    device = dist.labelled.device
    size = sentences[0].size.to(device)
    label = torch.cat([each.label for each in sentences])
    doc = torch.tensor(documents).unique(return_inverse=True)[1]
    gold = torch.zeros(int(doc.max()) + 1, dtype=torch.float64)
    gold.index_add_(0, doc, torch.tensor([each.gold for each in sentences], dtype=torch.float64))
    of_row = doc[dist.sentence]
    f1 = torch.full_like(gold, -1.0)
    threshold = torch.ones_like(f1)
    best = best_choice = label.new_zeros(0)
    while True:
        scores = 2 * dist.labelled - threshold[of_row].to(device)[:, None] * size
        rows, choice = dist.with_scores(scores).best_rows
        right = dist.labelled[rows.to(device), choice.to(device)].cpu()
        right = torch.zeros_like(f1).index_add(0, of_row[rows], right)
        sizes = torch.zeros_like(f1).index_add(0, of_row[rows], size.cpu()[choice])
        reached = 2 * right / (sizes + gold).clamp(min=1e-300)
        gain = reached > f1 + 1e-12
        if not gain.any():
            break
        old, new = ~gain[of_row[best]], gain[of_row[rows]]
        best = torch.cat([best[old], rows[new]])
        best_choice = torch.cat([best_choice[old], choice[new]])
        f1 = torch.where(gain, reached, f1)
        threshold = f1
    empty = torch.zeros_like(f1)
    empty.index_add_(0, doc, torch.tensor([each.empty for each in sentences], dtype=torch.float64))
    kept = (empty.exp() <= f1)[of_row[best]]
    best, best_choice = best[kept], best_choice[kept]
    return dist.sets(best, label[best, best_choice] - 1)
