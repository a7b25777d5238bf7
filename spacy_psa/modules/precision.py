"""Matrix products in bfloat16, where the processor is faster at it."""

from typing import Literal

import torch
from torch import Tensor

Precision = Literal["float32", "bfloat16"]


def products(precision: Precision, x: Tensor) -> torch.autocast:
    """A context in which linear layers on x's device multiply in this precision.

    Weights, their gradients, sums and norms stay float32 in both. "bfloat16" is faster on a
    GPU and on a CPU with instructions for it (avx512_bf16, amx_bf16), the more so the more
    tokens share a product, and slower on others. What comes out of a layer may be bfloat16:
    the caller takes it back.
    """
    return torch.autocast(x.device.type, torch.bfloat16, enabled=precision == "bfloat16")
