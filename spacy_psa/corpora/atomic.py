"""Files and folders that appear complete or not at all."""

import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from spacy_psa.errors import InputError


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`; it replaces `path` if the block ends without an error.

    A missing folder is made. The file is written through to the disk before it replaces the former
    file at `path`, whose permissions it gets. If the block raises an error, the temporary
    file is removed and the former file stays.

    Raises:
        InputError: if `path` is a folder, or writing fails (no permission, disk full).
    """
    temporary = _beside(path)
    with unwritable_as_input_error(path):
        if path.is_dir():
            raise InputError(f"{path}: is a folder; choose the name of a file")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.touch(exist_ok=False)  # an unwritable folder is found before the work is done
            _copy_permissions(path, temporary)
            yield temporary
            sync(temporary)
            os.replace(temporary, path)
        finally:
            with suppress(OSError):
                temporary.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a text file with `atomic_path`."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf8")


def write_json(path: Path, value: Any, indent: int | None = 2) -> None:
    """Write a JSON file with `atomic_path`."""
    write_text(path, json.dumps(value, indent=indent, ensure_ascii=False) + "\n")


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty temporary folder that becomes `path` if the block ends without an error.

    If the block raises an error, the temporary folder is removed.

    Raises:
        InputError: if `path` exists and is not an empty folder, or if writing fails.
    """
    check_free(path)
    temporary = _beside(path)
    with unwritable_as_input_error(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.mkdir()
            _copy_permissions(path, temporary)
            yield temporary
            sync_tree(temporary)
            os.replace(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def replaced_pipeline(path: Path) -> Iterator[Path]:
    """Yield an empty temporary folder that replaces the pipeline at `path`, if there is one.

    If the block raises an error, the temporary folder is removed and the former pipeline stays.

    Raises:
        InputError: if something else than a pipeline is at `path`, or if writing fails.
    """
    if not (path / "meta.json").is_file():
        with atomic_folder(path) as folder:
            yield folder
        return
    temporary, former = _beside(path), _beside(path)
    with unwritable_as_input_error(path):
        try:
            temporary.mkdir()
            _copy_permissions(path, temporary)
            yield temporary
            sync_tree(temporary)
            os.replace(path, former)
            os.replace(temporary, path)
        finally:
            if former.exists() and not path.exists():
                os.replace(former, path)
            for left in (temporary, former):
                shutil.rmtree(left, ignore_errors=True)


def check_free(path: Path) -> None:
    """Check that `path` does not exist or is an empty folder.

    Raises:
        InputError: if `path` is a file or a folder that is not empty, or cannot be a folder.
    """
    with unwritable_as_input_error(path):
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise InputError(f"{path}: already exists; choose a folder that is new or empty")


def sync(path: Path) -> None:
    """Write a file, or the names in a folder, through to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Write a folder and all that is in it through to the disk."""
    for path in [*folder.rglob("*"), folder]:
        sync(path)


def _beside(path: Path) -> Path:
    """Return a hidden name that is not in use.

    It is in the same folder, because os.replace is atomic only within one file system. It is not
    made of the process number, because containers that share a folder may have equal numbers.
    """
    return path.with_name(f".{path.name[:32]}.{uuid4().hex}.tmp")


def _copy_permissions(path: Path, temporary: Path) -> None:
    if path.exists():
        wanted, given = (stat.S_IMODE(file.stat().st_mode) for file in (path, temporary))
        if wanted != given:
            temporary.chmod(wanted)


@contextmanager
def unwritable_as_input_error(path: Path) -> Iterator[None]:
    """Turn the errors of a file or folder that cannot be written into InputError."""
    try:
        yield
    except OSError as error:  # readers inside the block raise InputError
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be written ({reason}); check the path") from error
