"""The files of a corpus, whether in a folder or in an archive."""

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from spacy_psa.corpora.lines import open_input
from spacy_psa.errors import InputError

TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".txz")


def is_collection(source: Path) -> bool:
    """Whether `source` is a folder or has the name of an archive."""
    return source.is_dir() or source.name.endswith((".zip", *TARS))


def open_files(
    source: Path, wanted: Callable[[str], bool], what: str
) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield (name, lines) of each wanted file, streaming; read each before the next.

    Files of a folder or .zip come sorted by name, of a .tar as they stand in it.
    A `source` that is itself a file, plain or .gz, is the one that comes.

    Args:
        wanted: says of a path below `source`, with forward slashes.
        what: is wanted, for the error when there is none.

    Raises:
        InputError: `source` cannot be read, is a broken archive, or has no wanted file.
    """
    if source.is_dir():
        opened = _in_folder(source, wanted)
    elif source.suffix == ".zip":
        opened = _in_zip(source, wanted)
    elif source.name.endswith(TARS):
        opened = _in_tar(source, wanted)
    else:
        yield str(source), _plain(source)
        return
    found = False
    for name, lines in opened:
        found = True
        yield f"{source}/{name}", lines
    if not found:
        raise InputError(f"{source}: no {what} in it; check that it is the right corpus")


def _visible(name: str) -> bool:
    """macOS packs files of its own, named ._NAME, beside the real ones."""
    return not PurePosixPath(name).name.startswith(".")


def _in_folder(
    folder: Path, wanted: Callable[[str], bool]
) -> Iterator[tuple[str, Iterable[bytes]]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and _visible(name) and wanted(name):
            yield name, _plain(path)


def _in_zip(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Iterable[bytes]]]:
    with _broken(path), zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if not name.endswith("/") and _visible(name) and wanted(name):
                with archive.open(name) as stream:
                    yield name, _guarded(path, stream)


def _in_tar(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Iterable[bytes]]]:
    # "r|*" reads on and never back, so that the archive is unpacked once.
    with _broken(path), tarfile.open(path, "r|*") as archive:
        for member in archive:
            if member.isfile() and _visible(member.name) and wanted(member.name):
                stream = archive.extractfile(member)
                assert stream is not None  # it is a file
                yield member.name, _guarded(path, stream)


def _plain(path: Path) -> Iterator[bytes]:
    with open_input(path) as stream:
        yield from stream


def _guarded(path: Path, stream: Iterable[bytes]) -> Iterator[bytes]:
    """The lines: they are unpacked, and so found broken, only as they are read."""
    with _broken(path):
        yield from stream


@contextmanager
def _broken(path: Path) -> Iterator[None]:
    try:
        yield
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        lzma.LZMAError,
        zlib.error,
        EOFError,
        NotImplementedError,  # a zip with a compression that Python lacks
    ) as error:
        raise InputError(f"{path}: the archive is broken ({error}); fetch it again") from error
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be read ({reason}); check the path") from error
