"""The files of a corpus, in a folder or in an archive."""

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
    """Tell whether `source` is a folder or has the file name of an archive.

    Examples:
        >>> is_collection(Path("conll2000.zip")), is_collection(Path("train.txt"))
        (True, False)
    """
    return source.is_dir() or source.name.endswith((".zip", *TARS))


def open_files(
    source: Path, wanted: Callable[[str], bool], what: str
) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield the name and the lines of each wanted file.

    The files are streamed: read the lines of one file before you take the next file. The files
    of a folder or a .zip archive come sorted by name; those of a .tar archive come in its order.
    If `source` is itself a plain or gzipped file, it is the only file.

    Args:
        source: a folder, a .zip or .tar archive (also .tar.gz, .tar.bz2 or .tar.xz), or a file.
        wanted: tells whether a file is read. It gets the path below `source`, with forward
            slashes.
        what: what `wanted` looks for, for the error message.

    Raises:
        InputError: if `source` cannot be read, is a broken archive, or has no wanted file.
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
    """Leave out hidden files: macOS packs files of its own, named ._NAME, next to the real ones."""
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
    # Mode "r|*" never seeks back, so the archive is unpacked only once.
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
    """Pass on the lines; an archive is unpacked, and its defects show, only while it is read."""
    with _broken(path):
        yield from stream


@contextmanager
def _broken(path: Path) -> Iterator[None]:
    """Turn the errors of a broken or unreadable archive into InputError."""
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
        raise InputError(f"{path}: the archive is broken ({error}); download it again") from error
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be read ({reason}); check the path") from error
