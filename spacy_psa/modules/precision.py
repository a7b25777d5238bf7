"""Matrix products in bfloat16, for processors that multiply faster in it."""

from typing import Literal

import torch
from torch import Tensor

Precision = Literal["float32", "bfloat16"]


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
