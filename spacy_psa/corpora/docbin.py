"""Docs to and from `.spacy` files, spaCy's binary training format."""

import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab
from srsly.msgpack import msgpack_decoders, msgpack_encoders

from spacy_psa.corpora import lines
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.errors import InputError

MOST = 1032
"""The most bytes that zlib packs into one."""
CHUNK = 2**14
"""The bytes that are unpacked at a time."""


def check_docbin_path(path: Path) -> None:
    """Raise an InputError if the name does not end in `.spacy`: spaCy would not read the file."""
    if path.suffix != ".spacy":
        raise InputError(f"{path}: the name must end in .spacy, or spaCy does not read the file")


def write_docbin(docs: Iterable[Doc], path: Path) -> None:
    """Write `docs` to the `.spacy` file `path`, which appears complete or not at all.

    Span groups, entities, sentence starts and `user_data` are kept. No docs are an InputError.
    """
    check_docbin_path(path)
    with atomic_path(path) as temporary, codecs_known():
        docbin = DocBin(docs=docs, store_user_data=True)
        if not len(docbin):
            raise InputError(f"{path}: nothing to write; the input has no sentences")
        docbin.to_disk(temporary)


def read_docbin(path: Path, vocab: Vocab) -> list[Doc]:
    """Read the docs of a `.spacy` file."""
    try:
        content = path.read_bytes()
        check_unpacked(path, content)
        with codecs_known():
            docbin = DocBin().from_bytes(content)
            if not _is_whole(docbin):
                raise ValueError("its parts are of different lengths")
            return list(docbin.get_docs(vocab))
    except InputError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be read ({reason}); check the path") from error
    except Exception as error:  # zlib, msgpack and numpy raise different errors
        raise InputError(
            f"{path}: is not a .spacy file, or is broken; make it by `spacy-psa convert`"
        ) from error


def check_unpacked(path: Path, content: bytes) -> None:
    """Raise an InputError if the content of a `.spacy` file unpacks to far more than docs do."""
    if len(content) * MOST <= lines.HARMLESS:
        return
    unpacker, unpacked = zlib.decompressobj(), 0
    for start in range(0, len(content), CHUNK):
        unpacked += len(unpacker.decompress(content[start : start + CHUNK]))
        lines.check_expansion(path, unpacked, len(content))


def read_docbins(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Read the docs of a `.spacy` file, or of all such files in a folder, in the order of names."""
    files = sorted(path.rglob("*.spacy")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path}: no .spacy files in the folder; see `spacy-psa convert --help`")
    for file in files:
        yield from read_docbin(file, vocab)


def _is_whole(docbin: DocBin) -> bool:
    """Tell whether each layer has all docs; spaCy reads as many docs as there are tokens of."""
    layers = docbin.spaces, docbin.cats, docbin.flags, docbin.span_groups
    return all(len(layer) == len(docbin.tokens) for layer in layers) and all(
        len(tokens) == len(spaces) for tokens, spaces in zip(docbin.tokens, docbin.spaces)
    )


@contextmanager
def codecs_known() -> Iterator[None]:
    """Make reading and writing of docs faster within this block.

    srsly looks for codecs of msgpack each time that it packs or unpacks something, and so for every
    span group of a `Doc`: in all installed packages, and among all that is registered. Most of the
    time of reading a `Doc` is spent there. In this block srsly looks only once. A block within
    another one changes nothing.
    """
    changed = []
    for registry in (msgpack_encoders, msgpack_decoders):
        attributes = vars(registry)
        before = attributes.get("get_all")
        if not isinstance(before, _Known):
            changed.append((attributes, before))
            attributes["get_all"] = _Known(registry.get_all())
    try:
        yield
    finally:
        for attributes, before in changed:
            if before is None:
                attributes.pop("get_all", None)
            else:
                attributes["get_all"] = before


class _Known:
    """Returns the codecs that a registry had."""

    def __init__(self, codecs: dict[str, Any]):
        self.codecs = codecs

    def __call__(self) -> dict[str, Any]:
        return self.codecs
