"""A file that one process holds at a time."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from spacy_psa.errors import InputError


@contextmanager
def held(lock: Path, busy: str, unwritable: str) -> Iterator[None]:
    """Hold a lock while this block runs; the system lets it go if the process is killed.

    The file of the lock is made, with its folder, and removed at the end. The InputError is `busy`
    if another process holds it, and `unwritable` if it cannot be made, with its `{reason}`.
    """
    file = FileLock(lock)
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file.acquire(timeout=0)
    except Timeout as error:
        raise InputError(busy) from error
    except OSError as error:
        raise InputError(unwritable.replace("{reason}", str(error.strerror or error))) from error
    try:
        yield
    finally:
        with suppress(OSError):  # Windows removes no open file; it is in nobody's way
            lock.unlink()
        file.release()
