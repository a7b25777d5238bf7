"""The few hot loops, compiled for the CPU by numba, each beside its torch twin.

A kernel file imports numba at its top and is imported only after `available()`
said yes, so the package works, more slowly, where numba does not.
"""

import functools
import os
import warnings


@functools.cache
def available() -> bool:
    """Whether compiled kernels can be used; says once why not.

    `SPACY_PSA_KERNELS=0` in the environment turns them off.
    """
    if os.environ.get("SPACY_PSA_KERNELS") == "0":
        return False
    try:
        import numba  # noqa: F401
    except Exception as error:  # an incompatible numba raises more than ImportError
        warnings.warn(
            f"numba cannot be used ({error}): spacy-psa falls back on slower torch code.",
            stacklevel=2,
        )
        return False
    return True
