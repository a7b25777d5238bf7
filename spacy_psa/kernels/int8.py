"""Conversion of numbers to int8 and back, row by row, compiled for the CPU.

The twins are in `modules.int8`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_psa.kernels.compiled import compiled

Array = NDArray[Any]

_compiled = compiled(error_model="numpy", fastmath={"contract"})
_LEAST = np.float32(1e-12)
_MOST = np.float32(127)
_NO_SIGN = np.int32(0x7FFFFFFF)


@_compiled
def _largest(bits: Array) -> Any:
    """Find the largest absolute value of float32 numbers, whose bits compare as they do."""
    largest = np.int32(0)
    for d in range(len(bits)):
        largest = max(largest, np.int32(bits[d] & _NO_SIGN))
    once = np.int32(largest)  # numba can only view a variable that is set once
    return once.view(np.float32)


@_compiled
def _round(x: Array, factor: Any, q: Array) -> None:
    for d in range(len(x)):
        q[d] = np.int8(np.rint(x[d] * factor))


@_compiled
def to_int8(x: Array, stride: int, q: Array, scale: Array) -> None:
    """Round x (M, d) float32 to q (M, d) int8 with scale (M,): x = q · scale to half a step.

    Args:
        x: (…,), the memory of the rows from the first on; row i begins at i · stride.
        stride: numbers from the beginning of a row to the next, d or more.
        q: (M or more, d) int8, of which M rows are changed.
        scale: (M,) float32, which is changed.
    """
    bits = x.view(np.int32)
    for row in range(len(scale)):
        begin = row * stride
        end = begin + q.shape[1]
        largest = max(_largest(bits[begin:end]), _LEAST)
        scale[row] = largest / _MOST
        _round(x[begin:end], _MOST / largest, q[row])


@_compiled
def _scaled(row: Array, scale: Any, columns: Array, out: Array) -> None:
    for d in range(len(out)):
        out[d] += np.float32(row[d]) * (scale * columns[d])


@_compiled
def add_scaled(product: Array, scale: Array, columns: Array, out: Array) -> None:
    """Add the product (M, k), times the scales of its rows and columns, to out (M, k).

    Args:
        product: (M, k) int32.
        scale: (M,), the scales of the rows.
        columns: (k,), the scales of the columns.
        out: (M, k) float32, which is changed.
    """
    for row in range(len(out)):
        _scaled(product[row], scale[row], columns, out[row])


@_compiled
def _shifted(row: Array, scale: Any, columns: Array, bias: Array, out: Array) -> None:
    for d in range(len(out)):
        out[d] = bias[d] + np.float32(row[d]) * (scale * columns[d])


@_compiled
def scale_and_shift(
    product: Array, scale: Array, columns: Array, bias: Array, out: Array, stride: int
) -> None:
    """Fill rows with bias (k,) + product (M, k) times the scales, see `add_scaled`.

    Args:
        product: (M or more, k) int32 or float32.
        bias: (k,).
        out: (…,) float32, the memory of the rows from the first on; row i begins at i · stride.
        stride: numbers from the beginning of a row to the next, k or more.
    """
    width = len(bias)
    for row in range(len(scale)):
        begin = row * stride
        _shifted(product[row], scale[row], columns, bias, out[begin : begin + width])
