"""What "plus" and "times" mean in a dynamic programme over structures.

One recursion gives the partition function, the best structure, the k best and the
entropy, according to the semiring it runs in (Goodman 1999, "Semiring parsing"); the
gradient of its total then gives marginals or the structures themselves (Eisner 2016,
"Inside-outside and forward-backward algorithms are just backprop").

A semiring value is a tensor with one more axis than the log potentials it stands for,
the first, which holds what one value is made of. A log potential of -inf marks the
impossible: all gradients stay finite, and are 0, where nothing is possible.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor


def logsumexp(x: Tensor, dim: int) -> Tensor:
    """log(sum(exp(x))) over `dim`: -inf, with gradient 0, where every entry is -inf.

    `torch.logsumexp` has the same values, but not first and second derivatives that are
    always free of NaN.
    """
    top = x.detach().amax(dim, keepdim=True)
    nothing = top == -torch.inf
    top = top.masked_fill(nothing, 0.0)
    # The sum is at least 1 wherever anything is possible, so this changes only 0.
    total = (x - top).exp().sum(dim).clamp(min=1.0)
    return (total.log() + top.squeeze(dim)).masked_fill(nothing.squeeze(dim), -torch.inf)


class Semiring(ABC):
    """Plus and times over values of shape (m, ...); m is 1 unless a semiring says else."""

    def lift(self, scores: Tensor) -> Tensor:
        """Log potentials (...) as values (m, ...)."""
        return scores[None]

    def times(self, a: Tensor, b: Tensor) -> Tensor:
        """The product of two values, broadcast over all axes but the first."""
        return a + b

    @abstractmethod
    def sum(self, values: Tensor, dim: int) -> Tensor:
        """The sum of values (m, ...) over an axis `dim`, counted from the end."""


class Log(Semiring):
    """Sums probabilities: the total is the log partition, its gradient the marginals."""

    def sum(self, values: Tensor, dim: int) -> Tensor:
        return logsumexp(values, dim)


class Max(Semiring):
    """Keeps the best: the gradient of the total marks the best structure.

    Of equals it takes the one with the lowest index.
    """

    def sum(self, values: Tensor, dim: int) -> Tensor:
        return values.max(dim).values


class KMax(Semiring):
    """Keeps the k best, in descending order along the first axis.

    There are fewer than k where fewer can be formed. Of equals the one with the lowest
    index comes first. The gradient of the i-th total marks the i-th best structure.
    """

    def __init__(self, k: int) -> None:
        self.k = k

    def times(self, a: Tensor, b: Tensor) -> Tensor:
        return (a[:, None] + b[None]).flatten(0, 1)

    def sum(self, values: Tensor, dim: int) -> Tensor:
        candidates = values.movedim(dim, 0).flatten(0, 1)
        # topk leaves the order of equals open; the gather keeps only k indices alive.
        order = candidates.detach().sort(dim=0, descending=True, stable=True).indices
        return candidates.gather(0, order[: self.k].clone())


class Entropy(Semiring):
    """Pairs of log weight and entropy in nats (Li & Eisner 2009, "First- and second-order
    expectation semirings", kept normalised here, so that nothing large is subtracted)."""

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

    The values are those of `Log`. Going back, each sum passes its gradient on to one of its
    terms, drawn in proportion to their weights.
    """

    def __init__(self, generator: torch.Generator | None = None) -> None:
        self.generator = generator

    def sum(self, values: Tensor, dim: int) -> Tensor:
        total: Tensor = _SampledSum.apply(values, dim, self.generator)
        return total


class _SampledSum(torch.autograd.Function):
    """`logsumexp` whose gradient goes to one entry, drawn in proportion to exp(x)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, generator: torch.Generator | None) -> Tensor:
        ctx.save_for_backward(x)
        ctx.dim, ctx.generator = dim, generator
        return logsumexp(x, dim)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (x,) = ctx.saved_tensors
        # The maximum of logits with Gumbel noise never falls on -inf.
        noise = torch.empty_like(x, memory_format=torch.contiguous_format)
        logits = x - noise.exponential_(generator=ctx.generator).log()
        drawn = logits.argmax(ctx.dim, keepdim=True)
        return torch.zeros_like(x).scatter(ctx.dim, drawn, gradient.unsqueeze(ctx.dim)), None, None
