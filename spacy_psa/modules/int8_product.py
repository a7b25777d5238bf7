"""Products of int8 matrices on a CPU, by oneDNN."""

import functools
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

# With fewer rows, the call of a packed product costs more than it saves.
LEAST_ROWS = 64
# A small product of packed weights takes a few times as long as one of floats, at most.
TOO_SLOW = 30


class Int8Product:
    """Multiplies rows by the transpose of an int8 weight matrix.

    Many rows are multiplied by a copy of the weights in the order that oneDNN prefers. The copy is
    made when it is first needed, and is not saved. With torch's plain product, each call would
    bring the weights into that order.

    Examples:
        >>> product = Int8Product()
        >>> rows, weight = (torch.ones(n, 8, dtype=torch.int8) for n in (2, 3))
        >>> product(rows, weight)
        tensor([[8, 8, 8],
                [8, 8, 8]], dtype=torch.int32)
    """

    def __init__(self) -> None:
        self._packed: tuple[tuple[int, int], Tensor] | None = None

    def places(self, rows: int) -> int:
        """Give the number of rows that a matrix should have to hold `rows` rows.

        oneDNN prepares a product for each number of rows, which takes longer than the product. So
        the number is rounded up, and what stands in the further rows does not matter.
        """
        if rows < LEAST_ROWS or not packs():
            return rows
        return -(-rows // LEAST_ROWS) * LEAST_ROWS

    def __call__(self, rows: Tensor, weight: Tensor) -> Tensor:
        """Multiply rows (M, d) int8 by the transpose of weight (k, d) int8 -> (M, k).

        The sums have 32 bits. They are returned as int32 or, of many rows, as float32.
        """
        if len(rows) < LEAST_ROWS or not packs():
            return torch._int_mm(rows, weight.t())
        state = (weight.data_ptr(), 0 if weight.is_inference() else weight._version)
        if self._packed is None or self._packed[0] != state:
            self._packed = state, _pack(weight)
        return _multiply(rows, self._packed[1], len(weight))

    def __getstate__(self) -> dict[str, Any]:
        return {"_packed": None}


@functools.cache
def packs() -> bool:
    """Return whether this torch multiplies well by packed weights on this processor.

    The operators are not documented, and the types that they take differ between versions. On some
    virtual machines oneDNN has no fast product of packed weights, and takes one that is far slower
    than that of floats. On processors with avx2 and without VNNI its sums of two products have 16
    bits, so that large ones are wrong.
    """
    rows = torch.full((LEAST_ROWS, 64), -127, dtype=torch.int8)
    rows[1::2] = 127
    weight = torch.full((64, 64), 127, dtype=torch.int8)
    weight[1::2] = -127
    try:
        packed = _pack(weight)
        found = _multiply(rows, packed, len(weight))
    except (AttributeError, RuntimeError, TypeError):
        return False
    if not torch.equal(found, rows.float() @ weight.float().t()):
        return False
    floats = rows.float(), weight.float().t()
    of_floats = _seconds(lambda: torch.mm(*floats))
    return _seconds(lambda: _multiply(rows, packed, len(weight))) < TOO_SLOW * of_floats


def _seconds(product: Callable[[], Tensor]) -> float:
    """The least time of some calls, the first of which may prepare the product."""

    def once() -> float:
        started = time.perf_counter()
        product()
        return time.perf_counter() - started

    return min(once() for _ in range(4))


def _pack(weight: Tensor) -> Tensor:
    return torch.ops.onednn.qlinear_prepack(weight, None)


def _multiply(rows: Tensor, packed: Tensor, outputs: int) -> Tensor:
    ones, zeros = _scales(outputs)
    return torch.ops.onednn.qlinear_pointwise(
        rows, 1.0, 0, packed, ones, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )


@functools.lru_cache(maxsize=64)
def _scales(outputs: int) -> tuple[Tensor, Tensor]:
    with torch.inference_mode(False):
        return torch.ones(outputs), torch.zeros(outputs, dtype=torch.int64)
