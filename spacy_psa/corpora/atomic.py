"""Files and folders that appear whole or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spacy_psa.errors import InputError


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends well.

    The folder is made if it is missing. Where the block raises, the temporary
    file is removed and what was at `path` before stays.

    Raises:
        InputError: `path` is a folder, or writing fails (no permission, disk full).
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file to write")
    # The same folder, since os.replace is atomic only within one file system.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()  # an unwritable folder shows before the work is done
        yield temporary
        os.replace(temporary, path)
    except OSError as error:  # readers turn their own into InputError
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be written ({reason}); check the path") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """An empty temporary folder beside `path` that takes its name when the block ends well.

    Where the block raises, the temporary folder is removed.

    Raises:
        InputError: there is something at `path` other than an empty folder, or writing fails.
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
    """Raises InputError where there is something at `path` other than an empty folder."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise InputError(f"{path}: is there already; name a folder that is new or empty")
