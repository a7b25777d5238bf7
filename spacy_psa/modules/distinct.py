"""Rows that occur several times, as those of a word do below the first layer with context."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

# More rows than this share, or rows narrower than this, are not worth looking for equals.
MOST_ROWS = 0.75
LEAST_WIDTH = 64


class Distinct:
    """x (N, d), of which equal rows are computed on once.

    In annotation on a CPU, that is: in training dropout leaves hardly two rows equal.
    A row's result is the same to a rounding of the matrix product.
    """

    def __init__(self, x: Tensor):
        self.rows = x
        self.place: Tensor | None = None
        wide = x.shape[1] >= LEAST_WIDTH
        if wide and not torch.is_grad_enabled() and x.device.type == "cpu":
            self._find(x)

    def spread(self, found: Tensor) -> Tensor:
        """What was computed for `rows` (M, k), for each row of x (N, k)."""
        return found if self.place is None else found.index_select(0, self.place)

    def reader(self, function: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], None]:
        """Gives a function that fills out (M, k) with the rows of function(x) that `order`
        (M,) names. It is called with `order` and `out`; `function` goes row by row."""
        table: list[Tensor] = []

        def read(order: Tensor, out: Tensor) -> None:
            if self.place is None:
                out.copy_(function(self.rows.index_select(0, order)))
                return
            if not table:
                table.append(function(self.rows))
            torch.index_select(table[0], 0, self.place[order], out=out)

        return read

    def _find(self, x: Tensor) -> None:
        # Equal rows have equal products with a vector; those with equal ones are compared.
        product = x @ torch.arange(1, x.shape[1] + 1, dtype=torch.float64).sin().to(x.dtype)
        _, first, place = np.unique(product.numpy(), return_index=True, return_inverse=True)
        if len(first) > MOST_ROWS * len(x):
            return
        rows, found = x.index_select(0, torch.from_numpy(first)), torch.from_numpy(place)
        if torch.equal(rows.index_select(0, found), x):
            self.rows, self.place = rows, found
