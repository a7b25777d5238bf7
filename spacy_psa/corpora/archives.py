"""The files of a corpus, in a folder or in an archive."""

import bz2
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from spacy_psa.corpora.lines import check_expansion, file_lines, stream_lines
from spacy_psa.errors import InputError

TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".txz")
PACKED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
"""Opens a packed archive, by the bytes that it begins with."""
ENCRYPTED = 1
"""The bit that marks an encrypted file in a .zip archive."""


def is_collection(source: Path) -> bool:
    """Tell whether `source` is a folder or has the file name of an archive."""
    return source.is_dir() or source.name.endswith((".zip", *TARS))


def open_files(
    source: Path, wanted: Callable[[str], bool], what: str
) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield the name and the lines of each wanted file.

    The files are streamed: read the lines of one file before the next file. The files of a folder
    or a .zip archive come sorted by name; those of a .tar archive come in its order. If `source` is
    itself a plain or gzipped file, it is the only file.

    Args:
        source: a folder, an archive (.zip, .tar, .tar.gz, .tar.bz2 or .tar.xz), or a file.
        wanted: tells whether a file is read, from its path below `source` with forward slashes.
        what: a name of the wanted files, for the error if there are none.
    """
    if source.is_dir():
        opened = _in_folder(source, wanted)
    elif source.suffix == ".zip":
        opened = _in_zip(source, wanted)
    elif source.name.endswith(TARS):
        opened = _in_tar(source, wanted)
    else:
        yield str(source), file_lines(source)
        return
    names: set[str] = set()
    for name, lines in opened:
        if name in names:
            raise InputError(f"{source}: there are several files {name}; keep one of them")
        names.add(name)
        yield f"{source}/{name}", lines
    if not names:
        raise InputError(f"{source}: no {what} in it; check that it is the right corpus")


def has_files(source: Path, wanted: Callable[[str], bool]) -> bool:
    """Tell whether a folder or archive has a wanted file; see `open_files`."""
    if source.is_dir():
        return any(True for _ in _in_folder(source, wanted))
    if source.suffix == ".zip":
        return any(True for _ in _in_zip(source, wanted))
    return source.name.endswith(TARS) and any(True for _ in _in_tar(source, wanted))


def _visible(name: str) -> bool:
    """Leave out hidden files: macOS packs files of its own, named ._NAME, next to the real ones."""
    return not PurePosixPath(name).name.startswith(".")


def _in_folder(
    folder: Path, wanted: Callable[[str], bool]
) -> Iterator[tuple[str, Iterable[bytes]]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and _visible(name) and wanted(name):
            yield name, file_lines(path)


def _in_zip(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Iterable[bytes]]]:
    with broken_as_input_error(path), zipfile.ZipFile(path) as archive:
        size = 0
        for name in sorted(archive.namelist()):
            if not name.endswith("/") and _visible(name) and wanted(name):
                if archive.getinfo(name).flag_bits & ENCRYPTED:
                    raise InputError(f"{path}: {name} is encrypted; unpack the archive first")
                size += archive.getinfo(name).file_size  # zipfile reads no more than that
                check_expansion(path, size)
                with archive.open(name) as stream:
                    yield name, _guarded(path, stream_lines(f"{path}/{name}", stream))


def _in_tar(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Iterable[bytes]]]:
    with (
        broken_as_input_error(path),
        _unpacked(path) as unpacked,
        tarfile.open(fileobj=unpacked, mode="r:", tarinfo=_Header) as archive,
    ):
        size = 0
        for member in archive:  # in their order, so that nothing is unpacked twice
            size += member.size
            check_expansion(path, size)
            if member.isfile() and _visible(member.name) and wanted(member.name):
                stream = archive.extractfile(member)
                assert stream is not None  # it is a file
                yield member.name, _guarded(path, stream_lines(f"{path}/{member.name}", stream))
        # Reading on to the end also compares the checksum of a packed archive.
        while rest := unpacked.read(2**16):
            if rest.strip(b"\0"):
                raise tarfile.ReadError("there is data after its end")


def _unpacked(path: Path) -> IO[bytes]:
    """Open the archive in a .tar.gz, .tar.bz2 or .tar.xz file, or a plain .tar file."""
    with open(path, "rb") as stream:
        start = stream.read(max(map(len, PACKED)))
    openers = (opener for magic, opener in PACKED.items() if start.startswith(magic))
    return next(openers, open)(path, "rb")


class _Header(tarfile.TarInfo):
    """A header that cannot be read is an error, and not the end of the archive as in `tarfile`."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_Header":
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if len(buf) == tarfile.BLOCKSIZE and not buf.strip(b"\0"):
                raise  # the block that marks the end
            raise tarfile.ReadError(str(error)) from error


def _guarded(path: Path, lines: Iterable[bytes]) -> Iterator[bytes]:
    """Pass on the lines; an archive is unpacked, and its defects show, only while it is read."""
    with broken_as_input_error(path):
        yield from lines


@contextmanager
def broken_as_input_error(path: Path) -> Iterator[None]:
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
        OSError,
    ) as error:
        if isinstance(error, OSError) and error.errno is not None:
            reason = error.strerror or error
            raise InputError(f"{path}: cannot be read ({reason}); check the path") from error
        # gzip and bz2 raise an OSError without a number.
        raise InputError(f"{path}: the archive is broken ({error}); download it again") from error
