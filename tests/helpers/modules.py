"""Torch modules with weights that hide no mistake, their sizes and their gradients."""

from collections.abc import Iterable
from typing import TypeVar

import torch
from torch import Tensor, nn

Module = TypeVar("Module", bound=nn.Module)

EXACT = {"rtol": 0, "atol": 1e-10}  # of `torch.testing.assert_close`, in float64


def randomised(
    module: Module, seed: int = 0, scale: float = 0.5, dtype: torch.dtype = torch.float64
) -> Module:
    """The module in evaluation, all its parameters random, so that none is 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
    return module.to(dtype).eval()


def parameter_count(module: nn.Module) -> int:
    """How many numbers a module trains."""
    return sum(parameter.numel() for parameter in module.parameters())


def gradcheck(module: nn.Module, x: Tensor, lengths: Tensor, fast_mode: bool = True) -> bool:
    """Whether the gradients of the input and of every parameter equal finite differences."""
    names = [name for name, _ in module.named_parameters()]

    def run(x: Tensor, *parameters: Tensor) -> Tensor:
        return torch.func.functional_call(module, dict(zip(names, parameters)), (x, lengths))

    inputs = (x.detach().requires_grad_(), *module.parameters())
    return torch.autograd.gradcheck(run, inputs, fast_mode=fast_mode)


def with_gradients(output: Tensor, inputs: Iterable[Tensor]) -> list[Tensor]:
    """The output, and the gradients of a weighted sum of it by each of the inputs."""
    weights = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view_as(output)
    return [output, *torch.autograd.grad((output * weights).sum(), list(inputs))]
