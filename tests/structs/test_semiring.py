"""What the recursions are built on."""

import torch

from spacy_psa.structs.semiring import logsumexp
from tests.helpers.structs import INF


def test_logsumexp_has_two_derivatives_without_nan():
    x = torch.tensor([[0.5, -INF, 2.0], [-INF, -INF, -INF]], dtype=torch.float64)
    torch.testing.assert_close(logsumexp(x, -1), torch.logsumexp(x, -1))
    x.requires_grad_()
    (first,) = torch.autograd.grad(logsumexp(x, -1).sum(), x, create_graph=True)
    torch.testing.assert_close(first[0], x[0].softmax(0))
    assert first[1].tolist() == [0.0, 0.0, 0.0]
    (second,) = torch.autograd.grad(first.square().sum(), x)
    assert second.isfinite().all()


def test_a_single_way_has_the_gradient_one():
    """Also in torch 2.14, whose clamp has none at its bound."""
    x = torch.tensor([[0.0, -torch.inf], [3.0, -torch.inf]], requires_grad=True)
    logsumexp(x, -1).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[1.0, 0.0], [1.0, 0.0]]
