"""Partially observed trees (Fu2021), compared with the tree CRF of torch-struct, as the authors'.

They count each binary tree, so every span has a label here: one of those that are observed, or one
of the latent ones. The layer of the authors (`TreeCRFLayer` in FranxYao/Partially-Observed-TreeCRFs
at e239284, by either of its two algorithms) was compared once in the same way, for a batch of two
lengths: log probabilities and gradients were equal to 1e-14.
"""

import pytest
import torch

from spacy_psa.structs.tree import SpanTree

torch_struct = pytest.importorskip(
    "torch_struct", reason="torch-struct is not installed: nox -s peers"
)
N, OBSERVED, LATENT = 6, 3, 2
ENTITIES = [(0, 4, 2), (1, 3, 1), (4, 6, 3)]


def partially_observed():
    """The labels that spans may have given `ENTITIES`, null first: (n+1, n+1, L) bool."""
    allowed = torch.zeros(N + 1, N + 1, 1 + OBSERVED + LATENT, dtype=torch.bool)
    allowed[..., 1 + OBSERVED :] = True
    for start, end, label in ENTITIES:
        allowed[start, end] = False
        allowed[start, end, label] = True
        for i in range(N):
            for j in range(i + 1, N + 1):
                if i < start < j < end or start < i < end < j:
                    allowed[i, j] = False
    return allowed


def theirs(scores):
    """The same trees: a chart of first and last tokens, without the null label."""
    return torch_struct.TreeCRF(scores[None, :-1, 1:, 1:].clamp(min=-1e9))


def test_partitions_marginals_the_loss_and_its_gradient_are_those_of_torch_struct():
    torch.manual_seed(0)
    scores = torch.randn(N + 1, N + 1, 1 + OBSERVED + LATENT, dtype=torch.float64)
    scores[..., 0] = -torch.inf
    scores.requires_grad_()
    trees = SpanTree(scores[None], torch.tensor([N]))
    allowed = partially_observed()
    known = trees.constrain(allowed[None])
    every, partial = theirs(scores), theirs(scores.masked_fill(~allowed, -torch.inf))
    torch.testing.assert_close(trees.log_partition, every.partition)
    torch.testing.assert_close(known.log_partition, partial.partition)
    loss = trees.log_partition - known.log_partition
    other_loss = every.partition - partial.partition
    torch.testing.assert_close(loss, other_loss)
    gradient, expected = (torch.autograd.grad(each.sum(), scores)[0] for each in (loss, other_loss))
    places = torch.ones(N + 1, N + 1, dtype=torch.bool).triu(1)
    torch.testing.assert_close(gradient[places][:, 1:], expected[places][:, 1:])
    for ours, other in ((trees, every), (known, partial)):
        expected = other.marginals[0]
        for start in range(N):
            for end in range(start + 1, N + 1):
                torch.testing.assert_close(
                    ours.marginals[0, start, end, 1:], expected[start, end - 1]
                )
