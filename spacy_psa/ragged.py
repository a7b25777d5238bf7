"""Sentences of different lengths as one flat array.

Every module takes the token vectors of a batch one sentence after the other,
`x: (N, d)` with `N = sum(lengths)`, and `lengths: (B,)`, a CPU tensor of
int64, each at least 1. No padding is stored or computed on; what needs a rectangle (a
recurrence on a GPU, an n × n attention matrix) pads inside and unpads again.
"""

import torch
from torch import Tensor


def positions(lengths: Tensor, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """The sentence and the place in it of each flat token.

    lengths: (B,) int64. Returns two (N,) int64 tensors on `device`.
    """
    sentence = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    starts = torch.cumsum(lengths, 0) - lengths
    place = torch.arange(len(sentence)) - starts[sentence]
    return sentence.to(device), place.to(device)


def pad(x: Tensor, lengths: Tensor, value: float = 0.0) -> Tensor:
    """(N, ...) -> (B, max(lengths), ...), filled up with `value`."""
    sentence, place = positions(lengths, x.device)
    shape = (len(lengths), int(lengths.max()), *x.shape[1:])
    return x.new_full(shape, value).index_put((sentence, place), x)


def unpad(padded: Tensor, lengths: Tensor) -> Tensor:
    """(B, n, ...) -> (N, ...), the inverse of `pad`."""
    return padded[positions(lengths, padded.device)]


def mask(lengths: Tensor, device: torch.device | None = None) -> Tensor:
    """(B, max(lengths)) bool, true where there is a token."""
    return (torch.arange(int(lengths.max()))[None, :] < lengths[:, None]).to(device)


def with_boundaries(lengths: Tensor, device: torch.device | None = None) -> Tensor:
    """(N + 2B,): the rows of `torch.cat([x, start, stop])` that put a start row before
    and a stop row after the tokens of each sentence; x: (N, d), start and stop: (1, d)."""
    total = int(lengths.sum())
    longer = lengths + 2
    ends = torch.cumsum(longer, 0)
    rows = torch.full((total + 2 * len(lengths),), total)
    rows[ends - 1] = total + 1
    sentence, place = positions(lengths)
    rows[(ends - longer)[sentence] + place + 1] = torch.arange(total)
    return rows.to(device)
