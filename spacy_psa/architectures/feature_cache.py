"""Features of documents on disk, which a frozen encoder computes only once.

FOLDER/ENCODER/xx/DOCUMENT holds the rows of a document, where ENCODER is a hash of the weights and
settings and DOCUMENT one of the words. So the features of another encoder are never read. Processes
may share the folder: a file is written under another name and then renamed, and its check sum is
compared when it is first read. Everything else in the folder is neither counted nor removed.
"""

import json
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any
from uuid import uuid4
from warnings import warn
from zlib import crc32

import numpy
from numpy.typing import NDArray
from torch import nn

from spacy_psa.bridge.encoder_weights import weights_hash
from spacy_psa.bridge.shim import TorchShim
from spacy_psa.corpora.atomic import unwritable_as_input_error
from spacy_psa.errors import check_amounts

Rows = NDArray[numpy.float16]
VERSION = 1  # of the computation of features
SETTINGS = ("config", "tokenizer", "layers", "window", "context", "pooling")  # that count
CHECK = 4  # bytes of the check sum, at the end of a file
GB = 10**9
ENCODER = re.compile(r"[0-9a-f]{32}")
"""The names of the folders that hold the features of an encoder."""


class FeatureCache:
    """The features that an encoder computes of documents, as rows of float16 in files.

    It is used in training: from the initialization of a model or its first update on. A trained
    model that only annotates has no use for it. When the folder is full, the features of the
    encoders that were used least recently are removed; if there are none, new features are not
    kept.

    Args:
        folder: the folder; None for no cache.
        size: the most gigabytes (10⁹ bytes) of the folder.

    Attributes:
        in_use: whether training has begun.
    """

    def __init__(self, folder: str | None, size: float):
        check_amounts(cache_gb=size)
        self.folder = None if folder is None else Path(folder)
        self.size = size
        self.in_use = False
        self._key: tuple[nn.Module, str] | None = None
        self._checked: set[Path] = set()
        self._held: float | None = None  # bytes in the folder
        self._full = False

    def __reduce__(self) -> tuple[type["FeatureCache"], tuple[str | None, float]]:
        return FeatureCache, (None if self.folder is None else str(self.folder), self.size)

    def key(self, shim: TorchShim) -> str:
        """Hash an encoder: its weights and settings, and the precision in use.

        The folder of its features then counts as used now.
        """
        module: Any = shim.module
        if self._key is None or self._key[0] is not module:
            settings: dict[str, Any] = {name: shim.cfg[name] for name in SETTINGS}
            settings |= {"precision": module.used_precision, "int8": shim.int8, "version": VERSION}
            settings["weights"] = weights_hash(module.state_dict())
            text = json.dumps(settings, sort_keys=True).encode()
            self._key = (module, blake2b(text, digest_size=16).hexdigest())
        if self.folder is not None:
            with suppress(OSError):  # there is none yet, or it is only readable
                os.utime(self.folder / self._key[1])
        return self._key[1]

    def load(self, encoder: str, words: Sequence[str], width: int) -> Rows | None:
        """Read the rows (M, width) of a document, mapped into memory; None if there are none.

        `encoder` is the `key` of the encoder.
        """
        path = self._path(encoder, words)
        size = 2 * len(words) * width
        try:
            data = numpy.memmap(path, mode="r", dtype="uint8")
        except (OSError, ValueError):  # missing, or empty
            return None
        if len(data) != size + CHECK:
            return None
        if path not in self._checked:
            if crc32(data[:size].data) != int.from_bytes(data[size:].tobytes(), "little"):
                return None
            self._checked.add(path)
        return data[:size].view("float16").reshape(len(words), width)

    def save(self, encoder: str, words: Sequence[str], rows: Rows) -> None:
        """Write the rows of a document, unless the folder is full; InputError if that fails.

        If another process removes the encoder's folder meanwhile, the rows may not be kept.
        """
        path = self._path(encoder, words)
        data = numpy.ascontiguousarray(rows).tobytes()
        temporary = path.with_name(f".{uuid4().hex}")
        with unwritable_as_input_error(path):
            if not self._has_room(path.parent.parent, len(data) + CHECK):
                return
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                temporary.write_bytes(data + crc32(data).to_bytes(CHECK, "little"))
                os.replace(temporary, path)
            except FileNotFoundError:  # another process has made room
                return
            finally:
                with suppress(OSError):
                    temporary.unlink()

    def _path(self, encoder: str, words: Sequence[str]) -> Path:
        assert self.folder is not None
        key = blake2b("\0".join(words).encode("utf8", "surrogatepass"), digest_size=16).hexdigest()
        return self.folder / encoder / key[:2] / key

    def _has_room(self, encoder: Path, size: int) -> bool:
        """Whether `size` more bytes may be written for an encoder; make room if possible."""
        assert self.folder is not None
        if self._held is None:
            encoder.mkdir(parents=True, exist_ok=True)
            self._held = self._count()
        most = self.size * GB
        if self._held + size > most and not self._full:
            others = (each for each in _encoders(self.folder) if each != encoder)
            for other in sorted(others, key=_last_used):
                if self._count() + size > most:
                    shutil.rmtree(other, ignore_errors=True)
            self._held = self._count()
            self._full = self._held + size > most
            if self._full:
                warn(
                    f"{self.folder} is full: features of further documents are computed in each "
                    "pass; raise cache_gb",
                    stacklevel=2,
                )
        if self._held + size > most:
            return False
        self._held += size
        return True

    def _count(self) -> int:
        """Count the bytes of the features in the folder."""
        assert self.folder is not None
        return sum(map(_bytes_in, _encoders(self.folder)))


def _encoders(folder: Path) -> list[Path]:
    """List the folders of encoders; a user may have chosen a folder with something else in it."""
    return [each for each in folder.iterdir() if each.is_dir() and ENCODER.fullmatch(each.name)]


def _last_used(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:  # removed by another process
        return 0.0


def _bytes_in(folder: Path) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.path.getsize(os.path.join(parent, name))
            except OSError:  # removed by another process
                continue
    return total
