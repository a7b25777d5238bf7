"""Docs to and from spaCy's binary training format."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab
from srsly.msgpack import msgpack_decoders, msgpack_encoders

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
    with atomic_path(path) as temporary, codecs_known():
        docbin = DocBin(docs=docs, store_user_data=True)
        if not len(docbin):
            raise InputError(f"{path}: nothing to write, the input has no sentences")
        docbin.to_disk(temporary)


def read_docbin(path: Path, vocab: Vocab) -> list[Doc]:
    """The docs of a `.spacy` file.

    Raises:
        InputError: there is no such file, or it is not one.
    """
    try:
        with codecs_known():
            return list(DocBin().from_disk(path).get_docs(vocab))
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be read ({reason}); check the path") from error
    except Exception as error:  # zlib, msgpack and numpy each have errors of their own
        raise InputError(f"{path}: not a .spacy file, or a broken one ({error})") from error


@contextmanager
def codecs_known() -> Iterator[None]:
    """srsly asks all installed packages for codecs of msgpack each time that it packs or
    unpacks something, and so for every span group of a Doc, which takes most of the time of
    reading one. In this block it does not, unless there are some.
    """
    quiet = [r for r in (msgpack_encoders, msgpack_decoders) if not r.get_entry_points()]
    before = [registry.entry_points for registry in quiet]
    for registry in quiet:
        registry.entry_points = False
    try:
        yield
    finally:
        for registry, value in zip(quiet, before):
            registry.entry_points = value
