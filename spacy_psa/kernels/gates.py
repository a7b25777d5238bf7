"""Sigmoids and tanh, and the steps of an LSTM that consist of them, compiled for the CPU.

numba's own exp calls the C library for each number unless Intel's SVML is installed, and torch's
tanh takes eight times as long as the one in this file, which LLVM turns into vector instructions.
The twins of the steps are in `modules.lstm`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numba import types
from numba.extending import overload
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from spacy_psa.kernels.compiled import compiled

Array = NDArray[Any]

# Only fused multiply-add: "nnan" would hide NaN, and "reassoc" would join the two parts of ln 2.
FAST = {"contract"}
_compiled = compiled(error_model="numpy", fastmath=FAST)

_f = np.float32
_LOG2_E = _f(1 / math.log(2))
# ln 2 = high + low. high has so few bits that k · high is exact.
_LN2_HIGH = _f(355 / 512)
_LN2_LOW = _f(math.log(2) - 355 / 512)
_C2, _C3, _C4, _C5, _C6, _C7 = (_f(1 / math.factorial(n)) for n in range(2, 8))
_ONE, _HALF, _LEAST, _MOST = _f(1), _f(0.5), _f(-87), _f(88)


def _exp(x: Any) -> Any:
    """Compute e^x, in compiled code only; in float32, x is limited to [-87, 88] first."""
    return math.exp(x)


@overload(_exp, jit_options={"fastmath": FAST})
def _compile_exp(x: Any) -> Callable:
    def exp64(x: Any) -> Any:
        return math.exp(x)

    def exp32(x: Any) -> Any:
        # e^x = 2^k e^r with |r| <= ln(2) / 2, and e^r by its Taylor series.
        x = min(max(x, _LEAST), _MOST)
        k = np.floor(x * _LOG2_E + _HALF)
        r = (x - k * _LN2_HIGH) - k * _LN2_LOW
        p = ((((_C7 * r + _C6) * r + _C5) * r + _C4) * r + _C3) * r + _C2
        power = np.int32((np.int32(k) + np.int32(127)) << np.int32(23))  # the bits of 2^k
        return (p * (r * r) + r + _ONE) * power.view(np.float32)

    return exp32 if x == types.float32 else exp64


# The small functions below have one loop each: LLVM vectorises a loop over arrays only if a cheap
# check at run time can show that no two of the arrays overlap.


@_compiled
def _sigmoid(x: Array) -> None:
    unit = x.dtype.type(1)
    for d in range(len(x)):
        x[d] = unit / (unit + _exp(-x[d]))


@_compiled
def _tanh(x: Array) -> None:
    unit, two = x.dtype.type(1), x.dtype.type(2)
    for d in range(len(x)):
        x[d] = unit - two / (unit + _exp(two * x[d]))


@_compiled
def _multiply(a: Array, b: Array, out: Array) -> None:
    for d in range(len(out)):
        out[d] = a[d] * b[d]


@_compiled
def _scale(factor: Array, out: Array) -> None:
    for d in range(len(out)):
        out[d] *= factor[d]


@_compiled
def _add_product(a: Array, b: Array, out: Array) -> None:
    for d in range(len(out)):
        out[d] += a[d] * b[d]


@_compiled
def forward_step(
    gates: Array, cells: Array, squashed: Array, out: Array, start: int, size: int, before: int
) -> None:
    """Compute one step of both directions of an LSTM, on packed rows.

    The rows of the step are start … start + size.

    Args:
        gates: (2, N, 4, H), the inputs of the input, forget, cell and output gates. At the rows of
            the step they are replaced by the outputs of the gates.
        cells: (2, N, H), filled with the cells of the step.
        squashed: (2, N, H), filled with the tanh of the cells.
        out: (2, N, H), filled with the states of the step.
        start: the first row of the step.
        size: the number of rows of the step.
        before: the first row of the step before, or -1 for the first step.
    """
    for d in range(2):
        for row in range(start, start + size):
            i, f, g, o = gates[d, row, 0], gates[d, row, 1], gates[d, row, 2], gates[d, row, 3]
            cell, tanh = cells[d, row], squashed[d, row]
            _sigmoid(i)
            _sigmoid(f)
            _tanh(g)
            _sigmoid(o)
            _multiply(i, g, cell)
            if before >= 0:
                _add_product(f, cells[d, before + row - start], cell)
            tanh[:] = cell
            _tanh(tanh)
            _multiply(o, tanh, out[d, row])


@_compiled
def _annotate(gates: Array, cell: Array, state: Array) -> None:
    _sigmoid(gates[0])
    _sigmoid(gates[1])
    _tanh(gates[2])
    _sigmoid(gates[3])
    _scale(gates[1], cell)
    _add_product(gates[0], gates[2], cell)
    state[:] = cell
    _tanh(state)
    _scale(gates[3], state)


@_compiled
def annotation_step(gates: Array, cells: Array, out: Array, at: int, start: int, size: int) -> None:
    """Compute one step as `forward_step` does, without training: only the last cells are kept.

    Args:
        gates: (2, M, 4, H), the inputs of the gates for the rows of some steps; overwritten.
        cells: (2, B, H), the cells of the step before, zeros before the first step. They are
            replaced by the cells of this step.
        out: (2, N, H), filled with the states of the step at its rows, start … start + size.
        at: the row of `gates` at which the step begins.
        start: the first row of the step.
        size: the number of rows of the step.
    """
    for d in range(2):
        for row in range(size):
            _annotate(gates[d, at + row], cells[d, row], out[d, start + row])


@compiled(error_model="numpy", fastmath={"contract", "reassoc"})
def _add_matrix_product(weights: Array, x: Array, out: Array) -> None:
    # LLVM turns a sum into vector instructions only if it may add in another order.
    for row in range(len(weights)):
        total = weights.dtype.type(0)
        for d in range(len(x)):
            total += weights[row, d] * x[d]
        out[row] += total


@_compiled
def annotate_sentence(
    gates: Array, forward: Array, backward: Array, cells: Array, out: Array, start: int
) -> None:
    """Compute some steps of both directions of an LSTM for one sentence, without training.

    One call does what `annotation_step` and two matrix products do for each token.

    Args:
        gates: (2, M, 4H), the inputs of the gates for M steps; overwritten.
        forward: (4H, H), the weights of the states of the forward direction.
        backward: (4H, H), those of the backward direction.
        cells: (2, 1, H), the cells of the step before, zeros before the first step. They are
            replaced by the cells of the last step.
        out: (2, N, H), filled with the states of the steps at their rows, start … start + M.
        start: the row of the first step.
    """
    for d in range(2):
        weights = forward if d == 0 else backward
        for t in range(gates.shape[1]):
            now = gates[d, t]
            if start + t:
                _add_matrix_product(weights, out[d, start + t - 1], now)
            _annotate(now.reshape(4, -1), cells[d, 0], out[d, start + t])


@_compiled
def _through_cell(d_hidden: Array, o: Array, tanh: Array, d_cell: Array) -> None:
    unit = o.dtype.type(1)
    for d in range(len(d_cell)):
        d_cell[d] += d_hidden[d] * o[d] * (unit - tanh[d] * tanh[d])


@_compiled
def _through_sigmoid(gradient: Array, factor: Array, gate: Array, out: Array) -> None:
    unit = gate.dtype.type(1)
    for d in range(len(out)):
        out[d] = gradient[d] * factor[d] * gate[d] * (unit - gate[d])


@_compiled
def _through_tanh(gradient: Array, factor: Array, gate: Array, out: Array) -> None:
    unit = gate.dtype.type(1)
    for d in range(len(out)):
        out[d] = gradient[d] * factor[d] * (unit - gate[d] * gate[d])


@_compiled
def backward_step(
    gates: Array,
    cells: Array,
    squashed: Array,
    d_hidden: Array,
    d_cell: Array,
    d_gates: Array,
    start: int,
    size: int,
    before: int,
) -> None:
    """Go back through one `forward_step`. Later steps must be done first.

    Args:
        gates: (2, N, 4, H), the outputs of the gates.
        cells: (2, N, H), the cells.
        squashed: (2, N, H), the tanh of the cells.
        d_hidden: (2, N, H), the gradient of the states, complete at the rows of this step.
        d_cell: (2, N, H), zeros at first. The call reads the gradient of this step's cells from it
            and writes the gradient of the cells of the step before into it.
        d_gates: (2, N, 4, H), filled with the gradient of the inputs of the gates.
    """
    for d in range(2):
        for row in range(start, start + size):
            i, f, g, o = gates[d, row, 0], gates[d, row, 1], gates[d, row, 2], gates[d, row, 3]
            hidden, cell, tanh = d_hidden[d, row], d_cell[d, row], squashed[d, row]
            _through_cell(hidden, o, tanh, cell)
            _through_sigmoid(cell, g, i, d_gates[d, row, 0])
            _through_tanh(cell, i, g, d_gates[d, row, 2])
            _through_sigmoid(hidden, tanh, o, d_gates[d, row, 3])
            if before >= 0:
                other = before + row - start
                _through_sigmoid(cell, cells[d, other], f, d_gates[d, row, 1])
                _multiply(cell, f, d_cell[d, other])
            else:
                d_gates[d, row, 1, :] = 0


def tanh(x: Tensor) -> Tensor:
    """Compute tanh of a contiguous tensor on the CPU, with gradients; the result overwrites x."""
    if torch.is_grad_enabled():
        result: Tensor = _Tanh.apply(x)
        return result
    _tanh(x.numpy().reshape(-1))
    return x


class _Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        _tanh(x.detach().numpy().reshape(-1))
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return torch.ops.aten.tanh_backward(gradient, y)
