"""The hidden layer of every span of a batch: difference, norm and ReLU in one pass, compiled.

The twin is `modules.span_scores.span_hidden`. It writes S · hidden numbers to memory in each step,
and keeps four such arrays for the backward pass. This kernel keeps one, and computes the others
again from the fenceposts.
"""

import math
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from spacy_psa.kernels.compiled import compiled

Array = NDArray[Any]

_compiled = compiled(error_model="numpy", fastmath={"contract"})
# "reassoc" allows the compiler to turn sums into vector instructions. LLVM compiles a small
# function for itself and inside its caller. Which of the two runs depends on whether the caller
# comes from the cache, and with "reassoc" they may differ. So it is on only in the functions that
# Python calls, and the sums are only compiled inside these.
_summing = compiled(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
_inlined = njit(inline="always")

# The small functions below have one loop each, for the reason given in kernels/gates.py.


@_compiled
def _subtract(a: Array, b: Array, out: Array) -> None:
    for d in range(len(out)):
        out[d] = a[d] - b[d]


@_inlined
def _sum(x: Array) -> Any:
    total = x.dtype.type(0)
    for d in range(len(x)):
        total += x[d]
    return total


@_inlined
def _variation(x: Array, mean: Any) -> Any:
    """Sum the squared distances from the mean."""
    total = x.dtype.type(0)
    for d in range(len(x)):
        total += (x[d] - mean) * (x[d] - mean)
    return total


@_compiled
def _activate(x: Array, mean: Any, scale: Any, weight: Array, shift: Array) -> None:
    zero = x.dtype.type(0)
    for d in range(len(x)):
        x[d] = max((x[d] - mean) * scale * weight[d] + shift[d], zero)


@_summing
def _forward(
    fenceposts: Array,
    offsets: NDArray[np.int64],
    bias: Array,
    weight: Array,
    shift: Array,
    eps: float,
    out: Array,
    means: Array,
    scales: Array,
) -> None:
    """Fill out (S, h), means (S,) and scales (S,) from fenceposts (M, h).

    The fenceposts of sentence s begin at offsets[s], and offsets[-1] = M.
    """
    width = len(bias)
    kind = out.dtype.type
    lower = np.empty(width, out.dtype)
    row = 0
    for s in range(len(offsets) - 1):
        for i in range(offsets[s], offsets[s + 1]):
            _subtract(fenceposts[i], bias, lower)
            for j in range(i + 1, offsets[s + 1]):
                hidden = out[row]
                _subtract(fenceposts[j], lower, hidden)
                mean = _sum(hidden) / kind(width)
                variance = _variation(hidden, mean) / kind(width)
                scale = kind(1) / math.sqrt(variance + kind(eps))
                _activate(hidden, mean, scale, weight, shift)
                means[row], scales[row] = mean, scale
                row += 1


@_compiled
def _normalised(upper: Array, lower: Array, mean: Any, scale: Any, x: Array) -> None:
    for d in range(len(x)):
        x[d] = (upper[d] - lower[d] - mean) * scale


@_compiled
def _through_relu(d_out: Array, out: Array, gradient: Array) -> None:
    zero = out.dtype.type(0)
    for d in range(len(out)):
        gradient[d] = d_out[d] if out[d] > zero else zero


@_compiled
def _add(a: Array, out: Array) -> None:
    for d in range(len(out)):
        out[d] += a[d]


@_compiled
def _add_product(a: Array, b: Array, out: Array) -> None:
    for d in range(len(out)):
        out[d] += a[d] * b[d]


@_compiled
def _scale(factor: Array, out: Array) -> None:
    for d in range(len(out)):
        out[d] *= factor[d]


@_inlined
def _dot(a: Array, b: Array) -> Any:
    total = a.dtype.type(0)
    for d in range(len(a)):
        total += a[d] * b[d]
    return total


@_compiled
def _through_norm(gradient: Array, x: Array, mean: Any, slope: Any, scale: Any) -> None:
    for d in range(len(x)):
        gradient[d] = scale * (gradient[d] - mean - x[d] * slope)


@_summing
def _backward(
    fenceposts: Array,
    offsets: NDArray[np.int64],
    bias: Array,
    weight: Array,
    out: Array,
    means: Array,
    scales: Array,
    d_out: Array,
    d_fenceposts: Array,
    totals: NDArray[np.float64],
) -> None:
    """Compute the gradients of the fenceposts, bias, weight and shift.

    The gradient of the fenceposts, (M, h), must be zeros at first. The others are added to totals,
    (3, h). The spans with the same start are summed separately, so that long sums lose no digits.
    """
    width = len(bias)
    kind = out.dtype.type
    lower, x = np.empty(width, out.dtype), np.empty(width, out.dtype)
    gradient = np.empty(width, out.dtype)
    sums = np.zeros((3, width), out.dtype)
    row = 0
    for s in range(len(offsets) - 1):
        for i in range(offsets[s], offsets[s + 1]):
            _subtract(fenceposts[i], bias, lower)
            sums[:] = kind(0)
            for j in range(i + 1, offsets[s + 1]):
                scale = scales[row]
                _normalised(fenceposts[j], lower, means[row], scale, x)
                _through_relu(d_out[row], out[row], gradient)
                _add_product(gradient, x, sums[1])
                _add(gradient, sums[2])
                _scale(weight, gradient)
                mean = _sum(gradient) / kind(width)
                slope = _dot(gradient, x) / kind(width)
                _through_norm(gradient, x, mean, slope, scale)
                _add(gradient, d_fenceposts[j])
                _add(gradient, sums[0])
                row += 1
            for d in range(width):
                d_fenceposts[i, d] -= sums[0, d]
            for k in range(3):
                for d in range(width):
                    totals[k, d] += sums[k, d]


class SpanHidden(torch.autograd.Function):
    """Computes relu(LayerNorm(F_j - F_i + c)) of every span, with gradients.

    The arguments of `apply` are fenceposts, bias, weight and shift as in `span_hidden`, then the
    first fencepost of each sentence and the end (`offsets`), and `eps`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        fenceposts: Tensor,
        bias: Tensor,
        weight: Tensor,
        shift: Tensor,
        offsets: NDArray[np.int64],
        eps: float,
    ) -> Tensor:
        fenceposts = fenceposts.detach().contiguous()
        posts = np.diff(offsets)
        spans = int((posts * (posts - 1) // 2).sum())
        out = fenceposts.new_empty(spans, fenceposts.shape[1])
        means, scales = fenceposts.new_empty(spans), fenceposts.new_empty(spans)
        _forward(
            fenceposts.numpy(), offsets, bias.detach().numpy(), weight.detach().numpy(),
            shift.detach().numpy(), eps, out.numpy(), means.numpy(), scales.numpy(),
        )  # fmt: skip
        ctx.save_for_backward(fenceposts, bias, weight, out, means, scales)
        ctx.offsets = offsets
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        fenceposts, bias, weight, out, means, scales = ctx.saved_tensors
        d_fenceposts = torch.zeros_like(fenceposts)
        totals = torch.zeros(3, len(bias), dtype=torch.float64)
        _backward(
            fenceposts.numpy(), ctx.offsets, bias.detach().numpy(), weight.detach().numpy(),
            out.detach().numpy(), means.numpy(), scales.numpy(), d_out.contiguous().numpy(),
            d_fenceposts.numpy(), totals.numpy(),
        )  # fmt: skip
        return d_fenceposts, *totals.to(bias.dtype).unbind(), None, None


def span_hidden(
    fenceposts: Tensor, lengths: Tensor, bias: Tensor, weight: Tensor, shift: Tensor, eps: float
) -> Tensor:
    """Compute relu(LayerNorm(F_j - F_i + c)) of all spans (i, j).

    The arguments and the result are those of its twin, `modules.span_scores.span_hidden`. All
    tensors must be on the CPU and have the same type, float32 or float64.
    """
    offsets = np.concatenate([[0], np.cumsum(lengths.numpy() + 1)]).astype(np.int64)
    result: Tensor = SpanHidden.apply(fenceposts, bias, weight, shift, offsets, eps)
    return result
