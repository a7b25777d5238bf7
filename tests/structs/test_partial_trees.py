"""NestedSpans against a dense tree CRF with latent nodes, written after Fu2021.

The dense one is a chart of (label, start, end) potentials over binary trees. The first labels are
observed, the last is latent. Its inside pass sums over splits, and its partial inside pass over
the trees in which the observed spans have their labels and all other nodes are latent, as in
section 3.2 of Fu2021. Two charts keep each set of spans to one binary tree: a latent node of
several tokens is not a left child.
"""

import itertools

import pytest
import torch
from torch import Tensor

from spacy_psa.structs.nested_spans import NestedSpans
from tests.helpers.nested import nested_sets, spans_of

N, LABELS = 4, 2
NO = -1e9  # as the authors' code has it


def inside(potentials: Tensor, mask: Tensor, *, once: bool) -> Tensor:
    """log Σ over binary trees of n tokens; potentials and mask (n, n, K), ends included."""
    n = len(potentials)
    scores = potentials.masked_fill(~mask, NO)
    as_left = torch.full((n, n), NO, dtype=scores.dtype)
    as_right = as_left.clone()
    for width, start in ((w, s) for w in range(n) for s in range(n - w)):
        end = start + width
        split = torch.zeros((), dtype=scores.dtype)
        if width:
            parts = [as_left[start, m] + as_right[m + 1, end] for m in range(start, end)]
            split = torch.stack(parts).logsumexp(0)
        any_label = scores[start, end].logsumexp(0) + split
        as_right[start, end] = any_label
        labelled = scores[start, end, :-1].logsumexp(0) + split
        as_left[start, end] = labelled if once and width else any_label
    return as_right[0, n - 1]


def dense(scores: Tensor) -> Tensor:
    """Potentials (n, n, L + 1) of the scores of `NestedSpans`: a latent node scores 0."""
    potentials = torch.zeros(N, N, LABELS + 1, dtype=scores.dtype)
    start, end = torch.tensor(spans_of(N, None)).T
    return potentials.index_put((start, end - 1), torch.cat([scores, 0 * scores[:, :1]], 1))


def partial_mask(own) -> Tensor:
    """Observed spans have their labels, all other nodes are latent, and none crosses them."""
    mask = torch.zeros(N, N, LABELS + 1, dtype=torch.bool)
    mask[..., -1] = True
    for start, end, label in own:
        for i, j in itertools.combinations(range(N + 1), 2):
            if start < i < end < j or i < start < j < end:
                mask[i, j - 1] = False
        mask[start, end - 1] = False
        mask[start, end - 1, label - 1] = True
    return mask


@pytest.fixture
def scores():
    torch.manual_seed(3)
    count = N * (N + 1) // 2
    return torch.randn(count, LABELS, dtype=torch.float64, requires_grad=True)


def test_the_likelihood_and_its_gradient_are_those_of_the_partial_tree_crf(path, scores):
    everything = torch.ones(N, N, LABELS + 1, dtype=torch.bool)
    for own in nested_sets(N, LABELS)[::97]:
        ours = NestedSpans(scores, torch.tensor([N])).log_prob([own])[0]
        potentials = dense(scores)
        theirs = inside(potentials, partial_mask(own), once=True)
        theirs = theirs - inside(potentials, everything, once=True)
        torch.testing.assert_close(ours, theirs)
        expected = torch.autograd.grad(theirs, scores)
        torch.testing.assert_close(torch.autograd.grad(ours, scores), expected)


def test_without_a_normal_form_sets_count_as_often_as_they_can_be_binarised(scores):
    """Fu2021 sums these, so the best binary tree is not always the best set of spans."""
    potentials = dense(scores.detach())[:3, :3]
    everything = torch.ones(3, 3, LABELS + 1, dtype=torch.bool)
    total = inside(potentials, everything, once=False)
    masks = [partial_mask(own)[:3, :3] for own in nested_sets(3, LABELS)]
    parts = [inside(potentials, mask, once=False) for mask in masks]
    torch.testing.assert_close(torch.stack(parts).logsumexp(0), total)
    count = inside(torch.zeros(N, N, LABELS + 1), partial_mask([]), once=False).exp()
    assert round(float(count)) == 5  # the binary trees over 4 tokens, with no span at all
