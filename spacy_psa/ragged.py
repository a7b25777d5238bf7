"""Batches of sentences of different lengths, stored as one flat tensor without padding.

Every module gets the token vectors of a batch as `x`, (N, d), one sentence after the other, and
`lengths`, (B,) int64 on the CPU. B is the number of sentences, each length is at least 1, and
N = sum(lengths). Padding is neither stored nor computed. Code that needs a rectangular tensor
(a recurrence on a GPU, an n × n attention matrix) pads inside and removes the padding again.
"""

from collections.abc import Iterator

import torch
from torch import Tensor


def to_device(x: Tensor, device: torch.device | None) -> Tensor:
    """Move what was computed on the CPU, such as places of tokens, to where it is needed.

    For a GPU it is first put into pinned memory. So the program goes on while it is copied; it
    would wait for all work of the GPU otherwise.

    Args:
        x: a tensor on any device.
        device: None leaves the tensor where it is.
    """
    if device is None or x.device == device:
        return x
    if device.type == "cuda" and x.device.type == "cpu":
        return x.pin_memory().to(device, non_blocking=True)
    return x.to(device)


def positions(lengths: Tensor, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """Find the sentence of each flat token, and its place in that sentence.

    Args:
        lengths: (B,) int64, the tokens of each sentence.
        device: device of the results; by default the CPU.

    Returns:
        The index of the sentence and the place in it, counted from 0: two (N,) int64 tensors.

    Examples:
        >>> positions(torch.tensor([2, 3]))
        (tensor([0, 0, 1, 1, 1]), tensor([0, 1, 0, 1, 2]))
    """
    sentence = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    starts = torch.cumsum(lengths, 0) - lengths
    place = torch.arange(len(sentence)) - starts[sentence]
    if device is None:
        return sentence, place
    return to_device(sentence, device), to_device(place, device)


def pad(x: Tensor, lengths: Tensor, value: float = 0.0) -> Tensor:
    """Copy a flat batch into a rectangle: (N, ...) -> (B, n, ...) with n = max(lengths).

    Args:
        x: (N, ...), the flat batch.
        lengths: (B,) int64, the tokens of each sentence.
        value: the number that fills the places after the end of a sentence.

    Examples:
        >>> pad(torch.tensor([1, 2, 3, 4, 5]), torch.tensor([2, 3]))
        tensor([[1, 2, 0],
                [3, 4, 5]])
    """
    sentence, place = positions(lengths, x.device)
    shape = (len(lengths), int(lengths.max()), *x.shape[1:])
    return x.new_full(shape, value).index_put((sentence, place), x)


def unpad(padded: Tensor, lengths: Tensor) -> Tensor:
    """Remove the padding of a batch, as the inverse of `pad`: (B, n, ...) -> (N, ...).

    Examples:
        >>> unpad(torch.tensor([[1, 2, 0], [3, 4, 5]]), torch.tensor([2, 3]))
        tensor([1, 2, 3, 4, 5])
    """
    return padded[positions(lengths, padded.device)]


def mask(lengths: Tensor, device: torch.device | None = None) -> Tensor:
    """Mark the places of a padded batch that hold a token: (B, max(lengths)) bool.

    Examples:
        >>> mask(torch.tensor([2, 3]))
        tensor([[ True,  True, False],
                [ True,  True,  True]])
    """
    return to_device(torch.arange(int(lengths.max()))[None, :] < lengths[:, None], device)


def with_boundaries(lengths: Tensor, device: torch.device | None = None) -> Tensor:
    """List the rows that put a start row before each sentence and a stop row after it.

    The result indexes `torch.cat([x, start, stop])`, where x is (N, d) and start and stop are
    (1, d). So row N of that tensor is the start row and row N + 1 the stop row.

    Args:
        lengths: (B,) int64, the tokens of each sentence.
        device: device of the result; by default the CPU.

    Returns:
        (N + 2B,) int64.

    Examples:
        >>> with_boundaries(torch.tensor([2, 1]))
        tensor([3, 0, 1, 4, 3, 2, 4])
    """
    total = int(lengths.sum())
    longer = lengths + 2
    ends = torch.cumsum(longer, 0)
    rows = torch.full((total + 2 * len(lengths),), total)
    rows[ends - 1] = total + 1
    sentence, place = positions(lengths)
    rows[(ends - longer)[sentence] + place + 1] = torch.arange(total)
    return to_device(rows, device)


def batches_by_size(sizes: list[int], budget: int) -> Iterator[list[int]]:
    """Group items of similar size into batches, the largest items first.

    A batch holds as many items as fit the budget if each of them had the size of the first. A
    single item may exceed the budget. Empty items are left out.

    Args:
        sizes: the size of each item.
        budget: largest product of the number of items in a batch and the size of its first item.

    Yields:
        The indices of the items in a batch.

    Examples:
        >>> list(batches_by_size([3, 0, 5, 2], budget=6))
        [[2], [0, 3]]
    """
    filled = filter(sizes.__getitem__, range(len(sizes)))
    order = sorted(filled, key=sizes.__getitem__, reverse=True)
    start = 0
    while start < len(order):
        count = max(1, budget // sizes[order[start]])
        yield order[start : start + count]
        start += count
