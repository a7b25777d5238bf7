"""The decorator of all kernels: it compiles them, and caches the machine code where that works."""

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys


def compiled(**options: Any) -> Callable[[Callable], Any]:
    """Make a decorator that compiles a function at its first call and caches the result on disk.

    The cache saves time and nothing else: where it cannot be read it is made again, and where it
    cannot be written each process compiles for itself, with one warning. `options` are settings of
    `numba.njit`, but `cache` and `nogil`.
    """

    def decorate(function: Callable) -> Any:
        kernel = njit(nogil=True, **options)(function)
        try:
            kernel._cache = _Cache(function)  # as njit(cache=True) does it, with its own class
        except (RuntimeError, OSError):  # numba found no folder that it can write
            _warn_once("there is no folder that can be written")
        return kernel

    return decorate


class _Cache(FunctionCache):
    """The cache of one function. Its faults cost time, and no result."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # Without `refresh`, by which numba first imports all that it needs to compile: machine code
        # from the cache only needs the memory management. The compiler itself calls `refresh`.
        rtsys.initialize(target_context)
        try:
            return self._load_overload(sig, target_context)
        except Exception:  # pickle raises anything for a damaged file
            with self._writing():
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with self._writing():
            super().save_overload(sig, data)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            _warn_once(error.strerror or str(error))
            self.disable()


@functools.cache
def _warn_once(reason: str) -> None:
    warnings.warn(
        f"compiled kernels cannot be cached ({reason}), so each process compiles them again, which "
        "takes some seconds: set NUMBA_CACHE_DIR to a folder that can be written",
        stacklevel=2,
    )
