"""Dropout, compiled for the CPU.

torch draws the numbers for a mask one after the other. This kernel computes each of them from its
place: LLVM turns the loop into vector instructions, and the backward pass computes the mask again
instead of storing it.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spacy_psa.kernels.compiled import compiled

Array = NDArray[Any]

# More elements than this would meet the same random numbers again.
MOST_ELEMENTS = 2**32

_u = np.uint32


@compiled(error_model="numpy")
def _drop(x: Array, first: Any, second: Any, threshold: Any, scale: Any, out: Array) -> None:
    """Set out to x · scale where a random number is at least `threshold`, and to 0 elsewhere.

    The number of a place is that place, mixed twice with a key (`first`, `second`) in between. The
    constants are those of "lowbias32" (Wellons 2018), which is a bijection of the 32-bit integers.
    """
    zero = x.dtype.type(0)
    for i in range(len(x)):
        h = _u(_u(i) ^ first)
        h = _u(_u(h ^ _u(h >> _u(16))) * _u(0x7FEB352D))
        h = _u(_u(h ^ _u(h >> _u(15))) * _u(0x846CA68B))
        h = _u(_u(h ^ _u(h >> _u(16))) ^ second)
        h = _u(_u(h ^ _u(h >> _u(16))) * _u(0x7FEB352D))
        h = _u(_u(h ^ _u(h >> _u(15))) * _u(0x846CA68B))
        h = _u(h ^ _u(h >> _u(16)))
        out[i] = x[i] * scale if h >= threshold else zero


class Dropout(torch.autograd.Function):
    """Sets random elements of a float32 or float64 tensor on the CPU to 0, and scales the others.

    Arguments of `apply`: the tensor, the rate (from 0 to 1, less than 1), and the key, two integers
    from 0 to 2³² - 1. The same key makes the same mask.

    Examples:
        >>> Dropout.apply(torch.ones(8), 0.5, (1, 2))
        tensor([2., 2., 2., 2., 0., 2., 2., 2.])
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float, key: tuple[int, int]) -> Tensor:
        ctx.rate, ctx.key = rate, key
        x = x.detach().contiguous()
        out = torch.empty_like(x)
        numbers = x.numpy().reshape(-1)
        scale = numbers.dtype.type(1 / (1 - rate))
        first, second = map(_u, key)
        threshold = _u(min(round(rate * 2**32), 2**32 - 1))
        _drop(numbers, first, second, threshold, scale, out.numpy().reshape(-1))
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return Dropout.apply(gradient, ctx.rate, ctx.key), None, None
