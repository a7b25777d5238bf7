"""Keeps a second training out of a folder."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from spacy_psa.errors import InputError

NAME = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder while this block runs; the system lets it go if the process is killed.

    Args:
        folder: the folder; it is made if it does not exist.

    Raises:
        InputError: if another process holds it, or it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / NAME)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InputError(
            f"{folder}: another process trains in this folder: wait for its end, or give "
            "another folder"
        ) from error
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written ({error.strerror or error}); mend that and go on with "
            "--resume"
        ) from error
    try:
        yield
    finally:
        with suppress(OSError):  # Windows removes no open file; it is in nobody's way
            (folder / NAME).unlink()
        lock.release()
