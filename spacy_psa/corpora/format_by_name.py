"""The format of a file, which the user names or the end of the file's name tells."""

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TypeVar

from spacy_psa.errors import InputError

Format = TypeVar("Format", bound=Enum)


def format_of(
    path: Path,
    wanted: Format,
    suffixes: Mapping[str, Format],
    choices: str,
    suffix: str | None = None,
) -> Format:
    """Give the format of a file.

    Args:
        path: the file.
        wanted: what the user wants; one with the value "auto" goes by the name.
        suffixes: the format of each ending, in lower case.
        choices: what the user may give, for the error.
        suffix: the ending that counts; by default that of `path`.

    Raises:
        InputError: if `wanted` is auto and the name does not tell the format.

    Examples:
        >>> Kind = Enum("Kind", {"auto": "auto", "text": "text"})
        >>> format_of(Path("a.TXT"), Kind.auto, {".txt": Kind.text}, "--format text").name
        'text'
    """
    if wanted.value != "auto":
        return wanted
    found = suffixes.get((path.suffix if suffix is None else suffix).lower())
    if found is None:
        raise InputError(f"{path}: cannot tell the format from the name; give {choices}")
    return found
