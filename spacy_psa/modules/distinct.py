"""Equal rows of a batch, on which layers compute only once.

Below the first layer with context, all tokens of the same word have equal vectors.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

# If more than this share of the rows are distinct, or rows are narrower than this, computing
# on each row costs less than looking for equal rows.
MOST_ROWS = 0.75
LEAST_WIDTH = 64


class Distinct:
    """Finds the distinct rows of x (N, d), so that a layer computes on each of them only once.

    It looks for equal rows only in annotation on a CPU: in training, dropout leaves hardly any
    two rows equal. The result for a row may differ from the direct result by a rounding error of
    the matrix product.

    Args:
        x: (N, d) float.

    Attributes:
        rows: (M, d), the distinct rows; x itself if equal rows are not looked for, or too few.
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
        wide = x.shape[1] >= LEAST_WIDTH
        if wide and not torch.is_grad_enabled() and x.device.type == "cpu":
            self._find(x)

    @classmethod
    def of(cls, rows: Tensor, place: Tensor) -> "Distinct":
        """Take rows that are known to be distinct, and the row of each place.

        Examples:
            >>> Distinct.of(torch.tensor([[5.0], [6.0]]), torch.tensor([1, 0, 1])).spread(
            ...     torch.tensor([[7.0], [8.0]])
            ... ).flatten()
            tensor([8., 7., 8.])
        """
        made = cls.__new__(cls)
        made.rows, made.place = rows, place
        return made

    def spread(self, found: Tensor) -> Tensor:
        """Copy a result for `rows` (M, k) to each row of x: (N, k)."""
        return found if self.place is None else found.index_select(0, self.place)

    def reader(self, function: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], None]:
        """Make a function that reads the rows of function(x) in a given order.

        Args:
            function: (M, d) -> (M, k), which treats each row on its own.

        Returns:
            A function of `order`, (m,) int64, and `out`, (m, k). It fills `out` with the rows of
            function(x) that `order` names.
        """
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
        # Equal rows have equal products with any vector. Rows with equal products are compared.
        product = x @ torch.arange(1, x.shape[1] + 1, dtype=torch.float64).sin().to(x.dtype)
        _, first, place = np.unique(product.numpy(), return_index=True, return_inverse=True)
        if len(first) > MOST_ROWS * len(x):
            return
        rows, found = x.index_select(0, torch.from_numpy(first)), torch.from_numpy(place)
        if torch.equal(rows.index_select(0, found), x):
            self.rows, self.place = rows, found
