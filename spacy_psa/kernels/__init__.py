"""The few loops that take most of the time, compiled for the CPU by numba, for a GPU by CuPy.

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
