"""Pack corpora for a machine with a GPU that reaches no registry and takes little data.

The archive OUT.tar.xz has the folders of the corpora, as the project's `convert` makes them. It is
much smaller than they are: `.spacy` files are unpacked and then packed together, vectors that
several corpora share are stored once, and their numbers are stored as integers.
`benchmarks.gpu.start` unpacks it there to the same files.
"""

import io
import json
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from hashlib import md5
from pathlib import Path, PurePosixPath

import numpy as np

from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path

DIGITS = 5
"""The digits after the point of the numbers in files of vectors, as GloVe has them."""
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 1 << 27}]
"""A dictionary of 128 MiB, so that what is alike in two corpora is found."""
CONTENT = "content.json"
"""The member with the kind and the name of the content of each file."""


def store(path: Path) -> tuple[str, bytes]:
    """Turn a file into what xz packs well: a key of `READ`, and the bytes to store."""
    data = path.read_bytes()
    if path.suffix == ".spacy":
        return "unpacked", zlib.decompress(data)
    if path.parent.name == "vocab" and path.name == "vectors":
        numbers = np.load(io.BytesIO(data))
        whole = np.rint(numbers.astype(np.float64) * 10**DIGITS).astype(np.int32)
        stored = np.array(numbers.shape, dtype=np.int32).tobytes() + _by_byte(whole)
        if _vectors(stored) == data:
            return "vectors", stored
    return "bytes", data


def _by_byte(numbers: np.ndarray) -> bytes:
    """The first bytes of all numbers, then the second ones, and so on: these are alike."""
    return numbers.reshape(-1, 1).view(np.uint8).T.tobytes()


def _vectors(stored: bytes) -> bytes:
    """Make the file of vectors again."""
    rows, width = np.frombuffer(stored[:8], dtype=np.int32)
    parts = np.frombuffer(stored[8:], dtype=np.uint8).reshape(4, -1)
    whole = np.ascontiguousarray(parts.T).view(np.int32).reshape(rows, width)
    found = io.BytesIO()
    np.save(found, (whole / 10**DIGITS).astype(np.float32))
    return found.getvalue()


READ: dict[str, Callable[[bytes], bytes]] = {
    "unpacked": zlib.compress,
    "vectors": _vectors,
    "bytes": bytes,
}
"""From the stored bytes to those of the file."""


def pack(corpora: list[Path], out: Path) -> None:
    """Pack the folders of some corpora.

    Args:
        corpora: the folders, as paths below the current folder.
        out: the archive.
    """
    names: dict[str, tuple[str, str]] = {}
    with (
        atomic_path(out) as temporary,
        lzma.open(temporary, "wb", filters=FILTERS) as file,
        tarfile.open(fileobj=file, mode="w") as tar,
    ):
        for path in _files(corpora):
            kind, data = store(path)
            name = md5(data, usedforsecurity=False).hexdigest()
            if (kind, name) not in names.values():
                _add(tar, name, data)
            names[PurePosixPath(path).as_posix()] = kind, name
        _add(tar, CONTENT, json.dumps(names).encode())


def _files(corpora: list[Path]) -> Iterator[Path]:
    for corpus in corpora:
        yield from (path for path in sorted(corpus.rglob("*")) if path.is_file())


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive that `pack` made.

    Args:
        archive: the archive.
        folder: where `corpus` is to be.
    """
    with tarfile.open(archive, "r:xz") as tar:
        stored = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    for name, (kind, content) in json.loads(stored[CONTENT]).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(READ[kind](stored[content]))


def main() -> None:
    options = script_parser(globals(), "OUT.tar.xz")
    options.add_argument(
        "corpora", type=Path, nargs="+", metavar="CORPUS", help="such as corpus/wsj"
    )
    given = options.parse_args()
    pack(given.corpora, given.out)
    print(f"{given.out}: {given.out.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
