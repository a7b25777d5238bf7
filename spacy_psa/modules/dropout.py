"""Dropout (Srivastava et al. 2014), only in training."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacy_psa import kernels


def drop(x: Tensor, rate: float) -> Tensor:
    """Set random elements of a tensor, a share of `rate`, to 0 and divide the others by 1 - rate.

    On a CPU with numba this is compiled, and much faster than torch's own dropout. The key of a
    mask is two numbers from torch's generator, so `torch.manual_seed` sets it; but the masks are
    not those of torch.
    """
    if not rate:
        return x
    fits = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64, torch.bfloat16)
    if rate == 1 or not fits or not kernels.available():
        return F.dropout(x, rate)
    from spacy_psa.kernels.dropout import MOST_ELEMENTS
    from spacy_psa.kernels.dropout import Dropout as Compiled

    if x.numel() > MOST_ELEMENTS:
        return F.dropout(x, rate)
    first, second = torch.randint(2**32, (2,)).tolist()
    numbers = x.float() if x.dtype == torch.bfloat16 else x  # numpy has no bfloat16
    dropped: Tensor = Compiled.apply(numbers, rate, (first, second))
    return dropped.to(x.dtype)


class Dropout(nn.Dropout):
    """Sets random elements to 0 in training, as `drop` does: a tensor of any shape.

    Raises:
        ValueError: if the rate p is not from 0 to 1.

    Examples:
        >>> x = torch.ones(3)
        >>> Dropout(0.5).eval()(x)
        tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Drop elements of a tensor of any shape."""
        return drop(input, self.p) if self.training and self.p else input
