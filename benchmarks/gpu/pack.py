"""Pack folders for a machine with a GPU that cannot reach a registry and receives little data.

The archive OUT.tar.xz has the folders of corpora, as the project's `convert` makes them, and of
pretrained encoders. To make it small, `.spacy` files are decompressed first, vectors that several
corpora share are stored once, and their numbers are stored as integers. `benchmarks.gpu.start`
restores the same files, except that the weights of an encoder are rounded to bfloat16. With --part,
the archive is split into OUT.tar.xz.0, OUT.tar.xz.1 and so on.
"""

import io
import json
import lzma
import tarfile
import zlib
from collections.abc import Callable
from hashlib import md5
from itertools import chain
from math import prod
from pathlib import Path, PurePosixPath

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.errors import InputError

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
    if path.suffix == ".safetensors":
        return "weights", _rounded(safetensors.torch.load(data))
    return "bytes", data


def _rounded(weights: dict[str, Tensor]) -> bytes:
    """Store weights in bfloat16: first the upper byte of all numbers, then the lower byte."""
    floats = {name: weight for name, weight in weights.items() if weight.is_floating_point()}
    others = {name: weight for name, weight in weights.items() if name not in floats}
    half = torch.cat([floats[name].flatten().bfloat16() for name in sorted(floats)])
    upper, lower = (part.contiguous() for part in half.view(torch.uint8).view(-1, 2).T.flip(0))
    shapes = {name: json.dumps(list(weight.shape)) for name, weight in floats.items()}
    return safetensors.torch.save({**others, "upper": upper, "lower": lower}, metadata=shapes)


def _weights(stored: bytes) -> bytes:
    """Make the file of an encoder's weights again, in float32."""
    size = int.from_bytes(stored[:8], "little")
    shapes = json.loads(stored[8 : 8 + size])["__metadata__"]
    weights = safetensors.torch.load(stored)
    planes = torch.stack([weights.pop("lower"), weights.pop("upper")], 1)
    numbers = planes.contiguous().view(torch.bfloat16).flatten().float()
    for name, shape in sorted((name, json.loads(shape)) for name, shape in shapes.items()):
        weights[name], numbers = numbers[: prod(shape)].reshape(shape), numbers[prod(shape) :]
    weights = {name: weight.clone() for name, weight in weights.items()}
    return safetensors.torch.save(weights, metadata={"format": "pt"})


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
    "weights": _weights,
    "bytes": bytes,
}
"""From the stored bytes to those of the file."""


def pack(folders: list[Path], out: Path) -> None:
    """Pack some folders, which are below the current folder, into an archive."""
    names: dict[str, tuple[str, str]] = {}
    with (
        atomic_path(out) as temporary,
        lzma.open(temporary, "wb", filters=FILTERS) as file,
        tarfile.open(fileobj=file, mode="w") as tar,
    ):
        for path in chain.from_iterable(sorted(folder.rglob("*")) for folder in folders):
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


def split(archive: Path, size: int) -> list[Path]:
    """Replace an archive by parts of at most `size` bytes."""
    data = archive.read_bytes()
    parts: list[Path] = []
    for start in range(0, len(data), size):
        parts.append(archive.with_name(f"{archive.name}.{len(parts)}"))
        parts[-1].write_bytes(data[start : start + size])
    archive.unlink()
    return parts


def joined(archive: Path) -> io.BytesIO:
    """Read an archive that is whole or in parts.

    Raises:
        InputError: if there is neither.
    """
    numbered = archive.parent.glob(f"{archive.name}.*")
    parts = sorted(numbered, key=lambda part: int(part.suffix[1:]))
    if not parts and not archive.exists():
        raise InputError(f"{archive}: there is neither this file nor a part of it")
    return io.BytesIO(b"".join(part.read_bytes() for part in parts or [archive]))


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive of `pack`, whole or in parts, to a folder."""
    with tarfile.open(fileobj=joined(archive), mode="r:xz") as tar:
        stored = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    for name, (kind, content) in json.loads(stored[CONTENT]).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(READ[kind](stored[content]))


def main() -> None:
    options = script_parser(globals(), "OUT.tar.xz")
    options.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    options.add_argument("--part", type=int, metavar="MIB", help="size of a part (one archive)")
    given = options.parse_args()
    pack(given.folders, given.out)
    for path in split(given.out, given.part << 20) if given.part else [given.out]:
        print(f"{path}: {path.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
