"""Docs to spaCy's binary training format."""

from collections.abc import Iterable
from pathlib import Path

from spacy.tokens import Doc, DocBin

from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.errors import InputError


def check_docbin_path(path: Path) -> None:
    """Raises InputError unless spaCy's corpus reader would take a file of this name."""
    if path.suffix != ".spacy":
        raise InputError(f"{path}: the output must end in .spacy, or spaCy does not read it")


def write_docbin(docs: Iterable[Doc], path: Path) -> None:
    """Write `docs` to the `.spacy` file `path`, whole or not at all.

    Span groups, entities, sentence starts and `user_data` are kept.

    Raises:
        InputError: the name does not end in `.spacy`, there are no docs, or the
            folder cannot be written; and whatever the iteration of `docs` raises.
    """
    check_docbin_path(path)
    with atomic_path(path) as temporary:
        docbin = DocBin(docs=docs, store_user_data=True)
        if not len(docbin):
            raise InputError(f"{path}: nothing to write, the input has no sentences")
        docbin.to_disk(temporary)
