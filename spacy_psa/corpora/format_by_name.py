"""The format of a file, which the user chooses or the end of its name shows."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from spacy_psa.errors import InputError

Format = TypeVar("Format", bound=str)


def format_of(
    path: Path,
    wanted: Format,
    suffixes: Mapping[str, Format],
    choices: str,
    suffix: str | None = None,
) -> Format:
    """Return the choice of the user or, for "auto", the format that the ending of a file shows.

    `suffixes` has the format of each ending, in lower case; `suffix` is the ending, by default that
    of `path`. `choices` are for the error.
    """
    if wanted != "auto":
        return wanted
    known = suffixes.get((path.suffix if suffix is None else suffix).lower())
    if known is None:
        raise InputError(f"{path}: cannot tell the format from the name; choose {choices}")
    return known
