"""The few loops that take most of the time, compiled by numba, or for a GPU by CuPy and Triton.

Each of them has a twin in torch, which computes the same more slowly. A kernel file for the CPU
imports numba at its top and is imported only if `available()` is true. So the package also works
without numba.
"""

import functools
import os
import warnings


@functools.cache
def available() -> bool:
    """Return whether compiled kernels can be used; if not, warn once with the reason.

    `SPACY_PSA_KERNELS=0` in the environment turns them off, without a warning.
    """
    if os.environ.get("SPACY_PSA_KERNELS") == "0":
        return False
    try:
        import numba  # noqa: F401
    except Exception as error:  # an incompatible numba raises more than ImportError
        warnings.warn(
            f"numba cannot be used ({error}): spacy-psa uses slower torch code instead",
            stacklevel=2,
        )
        return False
    return True


@functools.cache
def available_on_gpu() -> bool:
    """Return whether compiled kernels can be used on a GPU; spaCy also needs CuPy there.

    `SPACY_PSA_KERNELS=0` in the environment turns them off.
    """
    if os.environ.get("SPACY_PSA_KERNELS") == "0":
        return False
    try:
        import cupy

        return bool(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # without CuPy, torch does the work
        return False


@functools.cache
def available_in_triton() -> bool:
    """Return whether Triton can compile kernels for the GPU; if it fails there, warn once.

    torch for CUDA brings Triton along on Linux. It also needs a C compiler. `SPACY_PSA_TRITON=0` in
    the environment turns its kernels off, and `SPACY_PSA_KERNELS=0` all kernels.
    """
    if "0" in (os.environ.get("SPACY_PSA_KERNELS"), os.environ.get("SPACY_PSA_TRITON")):
        return False
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    try:
        import torch

        from spacy_psa.kernels import gpu_tree

        score = torch.zeros(1, device="cuda")
        gpu_tree.log_partition(score, score, torch.ones(1, dtype=torch.int64), 1)
    except Exception as error:  # of many kinds, such as that of a missing compiler
        reason = str(error).strip().partition("\n")[0]
        warnings.warn(
            f"Triton cannot be used ({reason}): spacy-psa computes charts on the CPU instead",
            stacklevel=2,
        )
        return False
    return True
