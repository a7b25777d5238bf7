"""Ragged batches of random token vectors."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def batch(
    lengths: Sequence[int] | Tensor, width: int, seed: int = 1, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    """Random token vectors, (sum(lengths), width), and the lengths as a tensor."""
    lengths = torch.as_tensor(lengths)
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(int(lengths.sum()), width, generator=generator, dtype=dtype), lengths


def one_by_one(module: nn.Module, x: Tensor, lengths: Tensor) -> Tensor:
    """What a module gives for the sentences of a batch, each in a batch of its own."""
    sentences = x.split(lengths.tolist())
    return torch.cat([module(each, torch.tensor([len(each)])) for each in sentences])
