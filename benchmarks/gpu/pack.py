"""Pack corpora for a machine with a GPU that cannot reach a registry and receives little data.

The archive OUT.tar.xz has the folders of the corpora, as the project's `convert` makes them. To
make it small, `.spacy` files are decompressed first, vectors that several corpora share are stored
once, and their numbers are stored as integers. `benchmarks.gpu.start` restores the same files.
"""

import io
import json
import lzma
import tarfile
import zlib
from collections.abc import Callable
from hashlib import md5
from itertools import chain
from pathlib import Path, PurePosixPath

import numpy as np

from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path

DIGITS = 5
"""The decimal digits of the numbers in files of vectors, as in GloVe."""
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 1 << 27}]
"""A dictionary of 128 MiB covers the common parts of two corpora."""
CONTENT = "content.json"
"""The member with the kind and the name of the content of each file."""


def store(path: Path) -> tuple[str, bytes]:
    """Prepare a file for xz: a key of `READ`, and the bytes to store."""
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
    """The first bytes of all numbers, which are similar, then the second bytes, and so on."""
    return numbers.reshape(-1, 1).view(np.uint8).T.tobytes()


def _vectors(stored: bytes) -> bytes:
    """Make the file of vectors again."""
    rows, width = np.frombuffer(stored[:8], dtype=np.int32)
    parts = np.frombuffer(stored[8:], dtype=np.uint8).reshape(4, -1)
    whole = np.ascontiguousarray(parts.T).view(np.int32).reshape(rows, width)
    file = io.BytesIO()
    np.save(file, (whole / 10**DIGITS).astype(np.float32))
    return file.getvalue()


READ: dict[str, Callable[[bytes], bytes]] = {
    "unpacked": zlib.compress,
    "vectors": _vectors,
    "bytes": bytes,
}
"""From the stored bytes to those of the file."""


def pack(corpora: list[Path], out: Path) -> None:
    """Pack the folders of some corpora, which are below the current folder, into an archive."""
    names: dict[str, tuple[str, str]] = {}
    with (
        atomic_path(out) as temporary,
        lzma.open(temporary, "wb", filters=FILTERS) as file,
        tarfile.open(fileobj=file, mode="w") as tar,
    ):
        for path in chain.from_iterable(sorted(corpus.rglob("*")) for corpus in corpora):
            if path.is_dir():
                continue
            kind, data = store(path)
            name = md5(data, usedforsecurity=False).hexdigest()
            if (kind, name) not in names.values():
                _add(tar, name, data)
            names[PurePosixPath(path).as_posix()] = kind, name
        _add(tar, CONTENT, json.dumps(names).encode())


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive of `pack` to a folder."""
    with tarfile.open(archive, "r:xz") as tar:
        stored = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    for name, (kind, content) in json.loads(stored[CONTENT]).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(READ[kind](stored[content]))


def main() -> None:
    options = script_parser(globals(), "OUT.tar.xz")
    options.add_argument("corpora", type=Path, nargs="+", metavar="CORPUS")
    given = options.parse_args()
    pack(given.corpora, given.out)
    print(f"{given.out}: {given.out.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
