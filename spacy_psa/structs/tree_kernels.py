"""The kernels of a `SpanTree`, on tensors of the CPU or of a GPU.

`label` and `null`, (S,) floating point, are as in `kernels.tree`, for a batch of `SpanCells`.
Results are on the device of `label`, in float64, and without a gradient. On a GPU,
`kernels.gpu_tree` does the work. Without Triton, the CPU does it: one number for each span is
little to copy.
"""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from spacy_psa import kernels
from spacy_psa.ragged import to_device
from spacy_psa.structs.span_cells import SpanCells


def cky(label: Tensor, null: Tensor, cells: SpanCells) -> tuple[Tensor, Tensor]:
    """Find the best scores (B,) and the cells of the constituents of the best trees, int64.

    On a GPU they are in ascending order, else in preorder.
    """
    scores, at = _run("cky", label, null, cells)
    return scores, at


def log_partition(label: Tensor, null: Tensor, cells: SpanCells) -> Tensor:
    """Compute the log partition of each sentence, (B,)."""
    (log_z,) = _run("log_partition", label.double(), null.double(), cells)
    return log_z


def inside_outside(label: Tensor, null: Tensor, cells: SpanCells) -> tuple[Tensor, ...]:
    """Compute log partitions (B,), p(a label) and p(null), both (S,), and entropies (B,)."""
    return _run("inside_outside", label.double(), null.double(), cells)


def _run(name: str, label: Tensor, null: Tensor, cells: SpanCells) -> tuple[Tensor, ...]:
    result: Any
    if label.is_cuda and kernels.available_in_triton():
        from spacy_psa.kernels import gpu_tree

        scores = _known(label).contiguous(), _known(null).contiguous()
        result = getattr(gpu_tree, name)(*scores, cells.lengths, cells.width)
        return result if isinstance(result, tuple) else (result,)
    from spacy_psa.kernels import tree as kernel

    arrays = to_numpy(label), to_numpy(null)
    result = getattr(kernel, name)(*arrays, cells.lengths.numpy(), cells.width)
    arrays = result if isinstance(result, tuple) else (result,)
    return tuple(to_device(torch.from_numpy(array), label.device) for array in arrays)


def to_numpy(scores: Tensor) -> NDArray[Any]:
    """Copy scores to an array for the kernels; types of 16 bits become float32, which is exact."""
    return _known(scores).cpu().contiguous().numpy()


def _known(scores: Tensor) -> Tensor:
    scores = scores.detach()
    return scores if scores.dtype in (torch.float32, torch.float64) else scores.float()
