"""Keeps a second training out of a folder."""

from contextlib import AbstractContextManager
from pathlib import Path

from spacy_psa.corpora.held_file import held

NAME = ".lock"


def locked(folder: Path) -> AbstractContextManager[None]:
    """Hold a folder while a block runs; the system lets it go if the process is killed.

    Args:
        folder: the folder; it is made if it does not exist.

    Raises:
        InputError: if another process holds it, or it cannot be written.
    """
    return held(
        folder / NAME,
        f"{folder}: another process trains in this folder: wait for its end, or give another "
        "folder",
        f"{folder}: cannot be written ({{reason}}); mend that and go on with --resume",
    )
