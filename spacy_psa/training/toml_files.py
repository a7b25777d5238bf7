"""Files of settings that people write, as TOML."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spacy_psa.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_toml(path: Path, kind: str, examples: str) -> dict[str, Any]:
    """Read a TOML file.

    Args:
        path: the file.
        kind: what it is, for errors: "search space".
        examples: the folder with some that are right, for errors.

    Raises:
        InputError: if there is no such file, or it is not TOML.
    """
    with said_of(path, examples):
        try:
            return tomllib.loads(path.read_text(encoding="utf8"))
        except FileNotFoundError as error:
            raise InputError(f"{path}: there is no such {kind}; check the path") from error


@contextmanager
def said_of(path: Path, examples: str) -> Iterator[None]:
    """Say of which file errors are that come of reading it or what it holds.

    Args:
        path: the file.
        examples: the folder with some that are right.

    Raises:
        InputError: if it is not TOML, nested too deeply, or has a number of too many digits.
    """
    try:
        yield
    except InputError:
        raise
    except RecursionError as error:
        said = f"{path}: is nested too deeply; write it as those in {examples}"
        raise InputError(said) from error
    except (OSError, ValueError) as error:  # not TOML, not UTF-8, a number of too many digits
        raise InputError(f"{path}: is not a TOML file ({error}); correct the file") from error
