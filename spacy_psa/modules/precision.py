"""Matrix products in bfloat16, where the processor is faster at it."""

from typing import Literal, get_args

import torch
from torch import Tensor

from spacy_psa.errors import InputError

Precision = Literal["float32", "bfloat16"]


def products(precision: Precision, x: Tensor) -> torch.autocast:
    """A context in which linear layers on x's device multiply in this precision.

    Weights, their gradients, sums and norms stay float32 in both. "bfloat16" is faster on a
    GPU and on a CPU with instructions for it (avx512_bf16, amx_bf16), the more so the more
    tokens share a product, and slower on others. What comes out of a layer may be bfloat16:
    the caller takes it back.
    """
    return torch.autocast(x.device.type, torch.bfloat16, enabled=precision == "bfloat16")


def check_precision(name: str, precision: str) -> None:
    """InputError, which names the architecture, for what is no `Precision`."""
    if precision not in get_args(Precision):
        raise InputError(f"{name}: precision is {precision!r}: take one of {get_args(Precision)}")
