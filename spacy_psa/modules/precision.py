"""Matrix products in bfloat16, for processors that multiply faster in it.

`products` lets a whole block of torch code multiply so. The other functions multiply one pair of
matrices, for code that also has steps of its own, such as a compiled recurrence.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

Precision = Literal["float32", "bfloat16"]
ROWS = 32
"""Products on a CPU have a multiple of this number of rows. torch compiles a product in bfloat16
for each shape, which takes longer than the product, so there should be few shapes."""


def products(precision: Precision, x: Tensor) -> torch.autocast:
    """Return a context in which the linear layers on the device of x multiply in a precision.

    Weights, their gradients, sums and norms stay float32 with both precisions. "bfloat16" is
    faster on a GPU and on a CPU that has instructions for it (avx512_bf16, amx_bf16), and the
    gain grows with the number of tokens in a product. On other processors it is slower. A layer
    may return bfloat16 inside the context: the caller must convert the result back.

    Args:
        precision: "float32" or "bfloat16".
        x: a tensor on the device in question.

    Examples:
        >>> layer, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
        >>> with products("bfloat16", x):
        ...     layer(x).dtype
        torch.bfloat16
    """
    return torch.autocast(x.device.type, torch.bfloat16, enabled=precision == "bfloat16")


def affine(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, precision: Precision = "float32"
) -> Tensor:
    """Compute x Wᵀ + b: the product in a precision, the sum and the result in the type of x.

    Products of fewer than `ROWS` rows are always in the type of x, in which they are no slower.

    Args:
        x: (..., d).
        weight: W, (k, d), in the type of x.
        bias: b, (k,), in the type of x.
        precision: "float32" or "bfloat16". The products for the gradients are in it, too.

    Examples:
        >>> x, weight = torch.ones(32, 3), torch.ones(2, 3)
        >>> affine(x, weight, torch.tensor([0.25, 0.001]), "bfloat16")[0]
        tensor([3.2500, 3.0010])
    """
    rows = x.flatten(0, -2)
    if precision == "float32" or len(rows) < ROWS:
        return F.linear(x, weight, bias)
    found: Tensor = _Product.apply(rows, weight)
    return (found if bias is None else found + bias).unflatten(0, x.shape[:-1])


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
    """Convert x (N, d) to bfloat16, on a CPU with rows of zeros up to a multiple of `ROWS`.

    Examples:
        >>> filled(torch.ones(33, 2)).shape
        torch.Size([64, 2])
    """
    rows = -(-len(x) // ROWS) * ROWS if x.device.type == "cpu" else len(x)
    found = x.new_empty(rows, x.shape[1], dtype=torch.bfloat16)
    found[: len(x)] = x
    found[len(x) :] = 0
    return found


class Weight:
    """A weight matrix for many products without gradients.

    It is rounded once, when it is first needed so.

    Args:
        matrix: W, (k, d).
        precision: "float32" or "bfloat16".

    Examples:
        >>> weight = Weight(torch.ones(2, 3), "bfloat16")
        >>> weight.of(rows=31).dtype, weight.of(rows=32).dtype
        (torch.float32, torch.bfloat16)
        >>> weight.affine(torch.ones(32, 3), torch.tensor([0.25, 0.001]))[0]
        tensor([3.2500, 3.0010])
    """

    def __init__(self, matrix: Tensor, precision: Precision):
        self.matrix, self.precision = matrix, precision

    def of(self, rows: int) -> Tensor:
        """Give W in the type in which so many rows are multiplied by it."""
        return self.matrix if self.precision == "float32" or rows < ROWS else self._rounded

    def affine(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """Compute x Wᵀ + b in the type of x: (..., d), (k,) -> (..., k)."""
        rows = x.flatten(0, -2)
        weight = self.of(len(rows))
        if weight.dtype == x.dtype:
            return F.linear(x, weight, bias)
        found = product(rows, weight.t())
        return (found if bias is None else found + bias).unflatten(0, x.shape[:-1])

    @cached_property
    def _rounded(self) -> Tensor:
        return self.matrix.bfloat16()


def product(a: Tensor, b: Tensor) -> Tensor:
    """Compute a b in the type of b; the result has the type of a: (N, d), (d, k) -> (N, k).

    Examples:
        >>> product(torch.ones(1, 3), torch.ones(3, 1, dtype=torch.bfloat16))
        tensor([[3.]])
    """
    return _product(a, b).to(a.dtype)


def add_product(a: Tensor, b: Tensor, out: Tensor) -> None:
    """Add a b to `out`; the product is in the type of b: (N, d), (d, k), (N, k).

    Examples:
        >>> out = torch.full((1, 1), 0.001)
        >>> add_product(torch.ones(1, 3), torch.ones(3, 1, dtype=torch.bfloat16), out)
        >>> out
        tensor([[3.0010]])
    """
    if b.dtype == a.dtype:
        out.addmm_(a, b)
    else:
        out.add_(_product(a, b))


def _product(a: Tensor, b: Tensor) -> Tensor:
    return a @ b if b.dtype == a.dtype else (filled(a) @ b)[: len(a)]


def multiplier(layer: nn.Module, precision: Precision) -> Callable[[Tensor], Tensor]:
    """Return a linear layer as a function that multiplies in a precision.

    Where there are no gradients, the weights are rounded once, here, for all calls of the function.
    Its result has the type of its argument. Layers other than nn.Linear, such as those in int8, are
    returned as they are.

    Examples:
        >>> layer, x = nn.Linear(3, 2), torch.randn(40, 3)
        >>> torch.allclose(multiplier(layer, "bfloat16")(x), layer(x), atol=0.05)
        True
    """
    if precision == "float32" or not isinstance(layer, nn.Linear):
        return layer
    if torch.is_grad_enabled():
        return partial(affine, weight=layer.weight, bias=layer.bias, precision=precision)
    return partial(Weight(layer.weight, precision).affine, bias=layer.bias)


def multiplier_of_all(
    layers: Sequence[nn.Module], precision: Precision
) -> Callable[[Tensor], Tensor]:
    """Return linear layers of one input, with biases, as one function without gradients.

    One product is faster than several narrow ones. The outputs stand side by side. See `multiplier`
    for the types, and for layers other than nn.Linear, which are called one by one.

    Examples:
        >>> layers = [nn.Linear(3, 2), nn.Linear(3, 1)]
        >>> multiplier_of_all(layers, "float32")(torch.randn(40, 3)).shape
        torch.Size([40, 3])
    """
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    if len(linear) < len(layers):
        functions = [multiplier(layer, precision) for layer in layers]
        return lambda x: torch.cat([function(x) for function in functions], 1)
    weight = torch.cat([layer.weight for layer in linear])
    bias = torch.cat([layer.bias for layer in linear])
    return partial(Weight(weight, precision).affine, bias=bias)
