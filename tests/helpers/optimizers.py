"""Small networks of torch and of thinc, with equal weights and gradients, for optimizers."""

import numpy
import torch
from thinc.api import Linear, Model
from torch import nn


def small_net(seed: int = 0) -> nn.Sequential:
    """A torch module of two layers."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def thinc_and_torch(seed: int = 0) -> tuple[Model, nn.Linear]:
    """A linear layer of thinc and one of torch, of equal weights."""
    torch.manual_seed(seed)
    ours, thinc = nn.Linear(3, 2), Linear(2, 3).initialize()
    thinc.set_param("W", ours.weight.detach().numpy().copy())
    thinc.set_param("b", ours.bias.detach().numpy().copy())
    return thinc, ours


def set_gradients(module: nn.Module, seed: int, scale: float = 1.0) -> None:
    """Give every parameter a random gradient."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.grad = scale * torch.randn(parameter.shape, generator=generator)


def set_equal_gradients(thinc: Model, ours: nn.Linear, seed: int, scale: float = 1.0) -> None:
    """Give the layers of `thinc_and_torch` the same random gradients."""
    set_gradients(ours, seed, scale)
    thinc.inc_grad("W", ours.weight.grad.numpy().copy())
    thinc.inc_grad("b", ours.bias.grad.numpy().copy())


def assert_equal_layers(thinc: Model, ours: nn.Linear) -> None:
    """Assert that the layers of `thinc_and_torch` have equal weights."""
    numpy.testing.assert_allclose(thinc.get_param("W"), ours.weight.detach(), atol=1e-6)
    numpy.testing.assert_allclose(thinc.get_param("b"), ours.bias.detach(), atol=1e-6)


def assert_equal_weights(ours: nn.Module, theirs: nn.Module) -> None:
    """Assert that two torch modules have equal weights."""
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-6)
