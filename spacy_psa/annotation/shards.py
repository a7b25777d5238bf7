"""The shards of a large collection: input files, the output file of each, and which are finished.

Files are read and written through `pyarrow.fs`, so that a place may be a path or an address as
`s3://bucket/folder`, `gs://bucket/folder` or `file:///folder`.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from uuid import uuid4

from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, LocalFileSystem

from spacy_psa.annotation.input import InputFormat, resolve_format
from spacy_psa.corpora.atomic import sync
from spacy_psa.errors import InputError

PARQUET = ".parquet"
TEMPORARY = re.compile(r"\..*\.[0-9a-f]{32}\.tmp")


@dataclass(frozen=True)
class Place:
    """A file or folder of a file system; it can be pickled."""

    filesystem: FileSystem
    path: str

    @classmethod
    def of(cls, name: str) -> "Place":
        """Find the place of a path or an address."""
        if "://" not in name:
            return cls(LocalFileSystem(), Path(name).resolve().as_posix())
        try:
            filesystem, path = FileSystem.from_uri(name)
        except (OSError, ValueError) as error:
            raise InputError(f"{name}: there is no file system for it ({error})") from error
        return cls(filesystem, path.rstrip("/"))

    def below(self, name: str) -> "Place":
        """Return the place of a file below this folder."""
        return Place(self.filesystem, f"{self.path}/{name}")


@dataclass(frozen=True)
class Shard:
    """A file to annotate; it is done if its output exists."""

    source: str
    """Its name below the folder of the input; empty if the input is this one file."""
    target: str
    """The name of its output below the folder of the output."""
    size: int
    """Its number of bytes."""


def find_shards(source: Place, suffix: str | None, wanted: InputFormat) -> list[Shard]:
    """List the shards of an input: one file, or all files below a folder, in order of their names.

    Files and folders whose names begin with "." or "_" are left out, as data engines do. `suffix`
    is that of the outputs; None for .parquet if the input is Parquet, else .jsonl. `wanted` is the
    format of text and JSON lines.
    """
    try:
        info = source.filesystem.get_file_info(source.path)
        if info.type is FileType.Directory:
            inside = source.filesystem.get_file_info(FileSelector(source.path, recursive=True))
        else:
            inside = [info]
    except OSError as error:
        raise InputError(f"{source.path}: cannot be read ({error}); check the place") from error
    if info.type is FileType.NotFound:
        raise InputError(f"{source.path}: there is no such file or folder; check the place")
    shards = sorted(_shards(inside, source.path, suffix, wanted), key=lambda shard: shard.source)
    if not shards:
        raise InputError(f"{source.path}: there is no file in this folder")
    sources: dict[str, str] = {}
    for shard in shards:
        if shard.target in sources:
            raise InputError(
                f"{sources[shard.target]} and {shard.source} would have one output, "
                f"{shard.target}; rename one"
            )
        sources[shard.target] = shard.source
    return shards


def check_apart(source: Place, target: Place, shards: Iterable[Shard]) -> None:
    """Raise an InputError if an output is, or would be found as, an input."""
    if source.filesystem != target.filesystem:
        return
    inside = PurePosixPath(target.path).is_relative_to(source.path)
    if inside or any(target.below(shard.target).path == source.path for shard in shards):
        raise InputError(f"{target.path}: contains the input; choose another folder for the output")


def _shards(
    inside: Iterable[FileInfo], root: str, suffix: str | None, wanted: InputFormat
) -> Iterator[Shard]:
    for info in inside:
        name = info.path[len(root) + 1 :]
        parts = PurePosixPath(name).parts
        if info.type is not FileType.File or any(part[0] in "._" for part in parts):
            continue
        path = PurePosixPath(name or PurePosixPath(info.path).name)
        if path.suffix.lower() == PARQUET:
            yield Shard(name, str(path.with_suffix(suffix or PARQUET)), info.size)
            continue
        if resolve_format(Path(path), wanted) == "spacy":
            raise InputError(f"{path}: shards are text, JSON lines or Parquet; convert this file")
        bare = path.with_suffix("") if path.suffix.lower() == ".gz" else path
        yield Shard(name, str(bare.with_suffix(suffix or ".jsonl")), info.size)


def finished(target: Place) -> set[str]:
    """List the outputs that exist, and remove the half-written files of killed workers."""
    selector = FileSelector(target.path, recursive=True, allow_not_found=True)
    try:
        if target.filesystem.get_file_info(target.path).type is FileType.File:
            raise InputError(f"{target.path}: is a file; choose a folder for the output")
        infos = target.filesystem.get_file_info(selector)
        files = [info.path for info in infos if info.type is FileType.File]
        for path in files:
            if _is_temporary(path):
                target.filesystem.delete_file(path)
    except OSError as error:
        raise InputError(f"{target.path}: cannot be read ({error}); check the place") from error
    return {path[len(target.path) + 1 :] for path in files if not _is_temporary(path)}


@contextmanager
def whole_file(place: Place) -> Iterator[BinaryIO]:
    """Open a file for bytes; it appears complete at the end of the block, or not at all.

    It is written under a temporary name and moved, because closing an unfinished upload to an
    object store completes it.
    """
    filesystem = place.filesystem
    path = PurePosixPath(place.path)
    temporary = str(path.with_name(f".{path.name[:32]}.{uuid4().hex}.tmp"))
    filesystem.create_dir(str(path.parent), recursive=True)
    try:
        # No compression by the name: the temporary name has none.
        with filesystem.open_output_stream(temporary, compression=None) as stream:
            yield stream
        if isinstance(filesystem, LocalFileSystem):
            sync(Path(temporary))
        filesystem.move(temporary, place.path)
    except BaseException:
        with suppress(OSError):
            filesystem.delete_file(temporary)
        raise


def _is_temporary(path: str) -> bool:
    return TEMPORARY.fullmatch(PurePosixPath(path).name) is not None
