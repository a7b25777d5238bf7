"""Products of token vectors and weights: in bfloat16, or once for all equal vectors.

`products` lets a block of torch code multiply in bfloat16, for processors that are faster in it.
The other functions multiply single matrices, for code such as a recurrence with compiled steps.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

Precision = Literal["float32", "bfloat16", "auto"]
Multiplier = Callable[[Tensor], Tensor]
ROWS = 32
"""Products on a CPU have a multiple of this number of rows. torch compiles a product in bfloat16
for each shape, which is slower than the product itself, so there should be few shapes."""

# `Distinct` does not pay if more than this share of the rows are distinct, or for narrower rows.
MOST_ROWS = 0.75
LEAST_WIDTH = 64


def products(precision: Precision, x: Tensor) -> torch.autocast:
    """Return a context in which linear layers on the device of x multiply in a precision.

    Weights, their gradients, sums and norms stay float32 with all precisions. "bfloat16" is
    faster on a GPU and on a CPU that has instructions for it (avx512_bf16, amx_bf16), and the
    gain grows with the number of tokens in a product. On other processors it is slower. "auto" is
    bfloat16 on a device that has instructions for it, else float32. A layer may return bfloat16
    inside the context: the caller must convert the result back.
    """
    enabled = not in_float32(precision, x.device)
    return torch.autocast(x.device.type, torch.bfloat16, enabled=enabled)


def in_float32(precision: Precision, device: torch.device, rows: int = ROWS) -> bool:
    """Whether products of a number of rows are in float32 on a device.

    Those of fewer than `ROWS` rows always are, since rounding makes them no faster.
    """
    return rows < ROWS or used_precision(precision, device) == "float32"


def used_precision(precision: Precision, device: torch.device) -> Precision:
    """Return the precision of products on a device, which "auto" leaves to the device."""
    return fast_precision(device) if precision == "auto" else precision


@lru_cache
def fast_precision(device: torch.device) -> Precision:
    """Return "bfloat16" for a device with instructions for it, else "float32"."""
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    asked = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")  # older versions have none
    fast = device.type == "cpu" and any(getattr(torch.cpu, name, bool)() for name in asked)
    return "bfloat16" if fast else "float32"


def affine(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, precision: Precision = "float32"
) -> Tensor:
    """Compute x Wᵀ + b, with gradients: (..., d), (k, d), (k,) -> (..., k), all of one type.

    In "bfloat16", the product and those of the gradients are rounded.
    """
    rows = x.flatten(0, -2)
    if in_float32(precision, x.device, len(rows)):
        return F.linear(x, weight, bias)
    product: Tensor = _Product.apply(rows, weight)
    return (product if bias is None else product + bias).unflatten(0, x.shape[:-1])


class _Product(torch.autograd.Function):
    """x Wᵀ in bfloat16, forward and backward: (N, d), (k, d) -> (N, k) in the type of x."""

    @staticmethod
    def forward(ctx, x, weight):  # type: ignore[no-untyped-def]
        rows, matrix = filled(x), weight.bfloat16()
        ctx.save_for_backward(rows, matrix)
        return (rows @ matrix.t())[: len(x)].to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, d_out):  # type: ignore[no-untyped-def]
        rows, matrix = ctx.saved_tensors
        d_rows, d_x, d_weight = filled(d_out), None, None
        if ctx.needs_input_grad[0]:
            d_x = (d_rows @ matrix)[: len(d_out)].to(d_out.dtype)
        if ctx.needs_input_grad[1]:
            d_weight = (d_rows.t() @ rows).to(d_out.dtype)
        return d_x, d_weight


def filled(x: Tensor) -> Tensor:
    """Convert x (N, d) to bfloat16, on a CPU with rows of zeros up to a multiple of `ROWS`."""
    rows = -(-len(x) // ROWS) * ROWS if x.device.type == "cpu" else len(x)
    result = x.new_empty(rows, x.shape[1], dtype=torch.bfloat16)
    result[: len(x)] = x
    result[len(x) :] = 0
    return result


class Rounded:
    """A matrix in bfloat16 for many products without gradients, rounded when first needed.

    Examples:
        >>> out = torch.full((32, 1), 0.001)
        >>> Rounded(torch.ones(3, 1)).add_to(out, torch.ones(32, 3))
        >>> out[0]
        tensor([3.0010])
    """

    def __init__(self, matrix: Tensor):
        self.matrix = matrix

    @cached_property
    def _rounded(self) -> Tensor:
        return self.matrix.bfloat16()

    def product(self, a: Tensor) -> Tensor:
        """Compute a b: (N, d) -> (N, k), in the type of a if N < `ROWS`, else in bfloat16."""
        return a @ self.matrix if len(a) < ROWS else (filled(a) @ self._rounded)[: len(a)]

    def add_to(self, out: Tensor, a: Tensor) -> None:
        """Add a b to `out` (N, k)."""
        if len(a) < ROWS:
            out.addmm_(a, self.matrix)
        else:
            out.add_(self.product(a))

    def affine(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """Compute x b + bias in the type of x: (..., d), (k,) -> (..., k)."""
        rows = x.flatten(0, -2)
        if len(rows) < ROWS:
            return F.linear(x, self.matrix.t(), bias)
        product = self.product(rows).to(x.dtype)
        return (product if bias is None else product + bias).unflatten(0, x.shape[:-1])


def adders(
    precision: Precision, rows: int, matrices: Iterable[Tensor]
) -> list[Callable[[Tensor, Tensor], Any]]:
    """Return, for each b (d, k), a function of `out` (N, k) and a (N, d) that adds a b to `out`.

    `rows` is the largest N.
    """
    matrices = list(matrices)
    if in_float32(precision, matrices[0].device, rows):
        return [partial(Tensor.addmm_, mat2=matrix) for matrix in matrices]
    return [Rounded(matrix).add_to for matrix in matrices]


def linears(
    precision: Precision, x: Tensor, weights: Iterable[Tensor], biases: Iterable[Tensor]
) -> list[Multiplier]:
    """Return x Wᵀ + b as a function of x, without gradients, for each W; see `multipliers`."""
    pairs = zip(weights, biases, strict=True)
    if in_float32(precision, x.device, len(x)):
        return [partial(F.linear, weight=weight, bias=bias) for weight, bias in pairs]
    return [_rounded(weight, bias) for weight, bias in pairs]


def _rounded(weight: Tensor, bias: Tensor | None) -> Multiplier:
    """Return x Wᵀ + b as a function of x, without gradients; W is rounded once for all calls."""
    return partial(Rounded(weight.t()).affine, bias=bias)


def multipliers(precision: Precision, x: Tensor, *layers: nn.Module) -> Sequence[Multiplier]:
    """Return linear layers as functions that multiply in a precision.

    x (N, d) is what they are called with, or what has the most rows of that. The results have the
    type of the argument. Without gradients, the weights are rounded once for all calls. Layers
    other than nn.Linear, such as those in int8, are returned as they are, and so are all for fewer
    than `ROWS` rows.
    """
    if in_float32(precision, x.device, len(x)):
        return layers
    return [_multiplier(layer) if isinstance(layer, nn.Linear) else layer for layer in layers]


def _multiplier(layer: nn.Linear) -> Multiplier:
    if torch.is_grad_enabled():
        return partial(affine, weight=layer.weight, bias=layer.bias, precision="bfloat16")
    return _rounded(layer.weight, layer.bias)


def multiplier_of_all(precision: Precision, x: Tensor, layers: Sequence[nn.Module]) -> Multiplier:
    """Return linear layers of one input, with biases, as one function without gradients.

    Its result has their outputs next to each other, since one product is faster than several narrow
    ones. Layers other than nn.Linear are called one by one. x is as for `multipliers`.
    """
    plain = [layer for layer in layers if isinstance(layer, nn.Linear)]
    if len(plain) < len(layers):
        functions = multipliers(precision, x, *layers)
        return lambda x: torch.cat([function(x) for function in functions], 1)
    weight = torch.cat([layer.weight for layer in plain])
    bias = torch.cat([layer.bias for layer in plain])
    return linears(precision, x, [weight], [bias])[0]


class Distinct:
    """The distinct rows of x (N, d), so that a layer computes only once on equal rows.

    Below the first layer with context, all tokens of the same word have equal vectors. Equal rows
    are searched for only without gradients and on a CPU: in training, dropout leaves hardly any two
    rows equal. The result for a row may differ from the direct result by a rounding error of the
    matrix product.

    Attributes:
        rows: (M, d), the distinct rows; x itself if equal rows are not searched for, or too few.
        place: (N,) int64, the row of `rows` for each row of x; None if `rows` is x.

    Examples:
        >>> with torch.no_grad():
        ...     distinct = Distinct(torch.eye(64)[[0, 1, 0, 1, 0]])
        >>> distinct.rows.shape, distinct.place
        (torch.Size([2, 64]), tensor([0, 1, 0, 1, 0]))
        >>> distinct.spread(torch.tensor([[5.0], [6.0]])).flatten()
        tensor([5., 6., 5., 6., 5.])
    """

    def __init__(self, x: Tensor):
        self.rows = x
        self.place: Tensor | None = None
        if x.shape[1] < LEAST_WIDTH or torch.is_grad_enabled() or x.device.type != "cpu":
            return
        # Equal rows have equal products with any vector. Rows with equal products are compared.
        product = x @ _directions(x.shape[1], x.dtype)
        if len(set(product.tolist())) > MOST_ROWS * len(x):
            return
        _, first, place = np.unique(product.numpy(), return_index=True, return_inverse=True)
        rows, index = x.index_select(0, torch.from_numpy(first)), torch.from_numpy(place)
        if torch.equal(rows.index_select(0, index), x):
            self.rows, self.place = rows, index

    @classmethod
    def of(cls, rows: Tensor, place: Tensor) -> "Distinct":
        """Make it of rows that are known to be distinct, and the row of each place."""
        made = cls.__new__(cls)
        made.rows, made.place = rows, place
        return made

    def spread(self, result: Tensor) -> Tensor:
        """Copy a result for `rows` (M, k) to each row of x: (N, k)."""
        return result if self.place is None else result.index_select(0, self.place)


@lru_cache(maxsize=64)
def _directions(width: int, dtype: torch.dtype) -> Tensor:
    with torch.inference_mode(False):
        return torch.arange(1, width + 1, dtype=torch.float64).sin().to(dtype)
