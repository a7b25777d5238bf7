"""Files and folders that appear complete or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spacy_psa.errors import InputError


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`; it replaces `path` if the block ends without an error.

    A missing folder is made. If the block raises an error, the temporary file is removed and the
    former file at `path` stays.

    Raises:
        InputError: if `path` is a folder, or writing fails (no permission, disk full).
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the name of a file")
    # In the same folder, because os.replace is atomic only within one file system.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()  # an unwritable folder is found before the work is done
        yield temporary
        os.replace(temporary, path)
    except OSError as error:  # readers inside the block raise InputError
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be written ({reason}); check the path") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty temporary folder that becomes `path` if the block ends without an error.

    If the block raises an error, the temporary folder is removed.

    Raises:
        InputError: if `path` exists and is not an empty folder, or if writing fails.
    """
    check_free(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be written ({reason}); check the path") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_free(path: Path) -> None:
    """Check that `path` does not exist or is an empty folder.

    Raises:
        InputError: if `path` is a file or a folder that is not empty.
    """
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise InputError(f"{path}: already exists; give a folder that is new or empty")
