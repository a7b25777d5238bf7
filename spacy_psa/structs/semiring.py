"""The meaning of "plus" and "times" in a dynamic programme over structures.

One recursion computes the partition function, the best structure, the k best structures or the
entropy, depending on its semiring (Goodman 1999, "Semiring parsing"). The gradient of its total
is the marginals or the structures themselves (Eisner 2016, "Inside-outside and forward-backward
algorithms are just backprop").

A semiring value is a tensor with one axis more than the log potentials that it stands for. This is
the first axis, and it holds the parts of a value. A log potential of -inf marks an impossible step:
all gradients stay finite, and are 0 if nothing is possible.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor


def logsumexp(x: Tensor, dim: int) -> Tensor:
    """Compute log(sum(exp(x))) over `dim`; it is -inf, with gradient 0, if every entry is -inf.

    `torch.logsumexp` has the same values, but its first and second derivatives may be NaN.
    """
    top = x.detach().amax(dim, keepdim=True)
    nothing = top == -torch.inf
    top = top.masked_fill(nothing, 0.0)
    nothing = nothing.squeeze(dim)
    # Not by clamp, whose gradient at the bound differs between versions of torch.
    total = (x - top).exp().sum(dim).masked_fill(nothing, 1.0)
    return (total.log() + top.squeeze(dim)).masked_fill(nothing, -torch.inf)


class Semiring(ABC):
    """Base class of semirings: plus and times over values of shape (m, ...).

    m is 1 in most semirings.

    Examples:
        >>> semiring = Log()
        >>> a, b = semiring.lift(torch.tensor([1.0])), semiring.lift(torch.tensor([2.0]))
        >>> semiring.times(a, b)
        tensor([[3.]])
    """

    def lift(self, scores: Tensor) -> Tensor:
        """Turn log potentials (...) into values (m, ...)."""
        return scores[None]

    def times(self, a: Tensor, b: Tensor) -> Tensor:
        """Multiply two values, broadcast over all axes but the first."""
        return a + b

    @abstractmethod
    def sum(self, values: Tensor, dim: int) -> Tensor:
        """Sum values (m, ...) over the axis `dim`, counted from the end."""


class Log(Semiring):
    """Sums probabilities: the total is the log partition, and its gradient the marginals.

    Examples:
        >>> Log().sum(torch.tensor([[0.0, 0.0]]), -1)
        tensor([0.6931])
    """

    def sum(self, values: Tensor, dim: int) -> Tensor:
        return logsumexp(values, dim)


class Max(Semiring):
    """Keeps the best: the gradient of the total marks the best structure.

    Of equal values, it keeps the one with the lowest index.

    Examples:
        >>> Max().sum(torch.tensor([[1.0, 3.0, 2.0]]), -1)
        tensor([3.])
    """

    def sum(self, values: Tensor, dim: int) -> Tensor:
        return values.max(dim).values


class KMax(Semiring):
    """Keeps the k best, in descending order along the first axis.

    It keeps fewer than k if fewer can be formed. Of equal values, the one with the lowest index
    comes first. The gradient of the i-th total marks the i-th best structure.

    Args:
        k: how many to keep.

    Examples:
        >>> KMax(2).sum(torch.tensor([[1.0, 3.0, 2.0]]), -1)
        tensor([3., 2.])
    """

    def __init__(self, k: int) -> None:
        self.k = k

    def times(self, a: Tensor, b: Tensor) -> Tensor:
        return (a[:, None] + b[None]).flatten(0, 1)

    def sum(self, values: Tensor, dim: int) -> Tensor:
        candidates = values.movedim(dim, 0).flatten(0, 1)
        # topk does not fix the order of equal values. The gather keeps only k indices alive.
        order = candidates.detach().sort(dim=0, descending=True, stable=True).indices
        return candidates.gather(0, order[: self.k].clone())


class Entropy(Semiring):
    """Computes the entropy: a value is a log weight and an entropy in nats.

    This is the semiring of Li & Eisner 2009 ("First- and second-order expectation semirings"). Its
    values are kept normalised here, so that no large numbers are subtracted.

    Examples:
        >>> semiring = Entropy()
        >>> semiring.sum(semiring.lift(torch.zeros(2)), -1)  # log 2 and log 2
        tensor([0.6931, 0.6931])
    """

    def lift(self, scores: Tensor) -> Tensor:
        return torch.stack([scores, torch.zeros_like(scores)])

    def sum(self, values: Tensor, dim: int) -> Tensor:
        weight, entropy = values.unbind(0)
        total = logsumexp(weight, dim)
        impossible = weight == -torch.inf
        surprise = (total.unsqueeze(dim) - weight).masked_fill(impossible, 0.0)
        share = (-surprise).exp().masked_fill(impossible, 0.0)
        return torch.stack([total, (share * (entropy + surprise)).sum(dim)])


class Sample(Log):
    """Draws structures: the gradient of the total marks one, drawn with its probability.

    The values are those of `Log`. In the backward pass, each sum passes its gradient on to one of
    its terms, drawn in proportion to their weights.

    Args:
        generator: source of randomness, on the device of the values; by default torch's own.

    Examples:
        >>> x = torch.tensor([[0.0, -torch.inf]], requires_grad=True)
        >>> Sample().sum(x, -1).sum().backward()
        >>> x.grad
        tensor([[1., 0.]])
    """

    def __init__(self, generator: torch.Generator | None = None) -> None:
        self.generator = generator

    def sum(self, values: Tensor, dim: int) -> Tensor:
        total: Tensor = _SampledSum.apply(values, dim, self.generator)
        return total


class _SampledSum(torch.autograd.Function):
    """Computes `logsumexp`; the gradient goes to one entry, drawn in proportion to exp(x)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, generator: torch.Generator | None) -> Tensor:
        ctx.save_for_backward(x)
        ctx.dim, ctx.generator = dim, generator
        return logsumexp(x, dim)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (x,) = ctx.saved_tensors
        # The maximum of logits with Gumbel noise is never at -inf.
        noise = torch.empty_like(x, memory_format=torch.contiguous_format)
        logits = x - noise.exponential_(generator=ctx.generator).log()
        drawn = logits.argmax(ctx.dim, keepdim=True)
        return torch.zeros_like(x).scatter(ctx.dim, drawn, gradient.unsqueeze(ctx.dim)), None, None
