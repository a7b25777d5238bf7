"""Tells trainings apart by what bears on their result, and not by where their files are."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from spacy_psa.scoring.provenance import checksums
from spacy_psa.training.identity import BLOCKS, named_files

Sums = dict[str, str]
"""{path of a file: MD5 of its content}"""


class Contents:
    """The checksums of files, each of which is read once.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     for name in ("a.txt", "b.txt"):
        ...         _ = Path(folder, name).write_text("the same")
        ...     contents = Contents()
        ...     one, other = (contents.digest(Path(folder, name)) for name in ("a.txt", "b.txt"))
        >>> one == other
        True
    """

    def __init__(self) -> None:
        self._read: dict[Path, Sums] = {}

    def sums(self, paths: Iterable[Path]) -> Sums:
        """The checksums of files, and of all files in folders."""
        found: Sums = {}
        for path in paths:
            if path not in self._read:
                self._read[path] = checksums([path])
            found |= self._read[path]
        return found

    def digest(self, path: Path) -> str:
        """A checksum of the content of a file or folder, whatever its path is."""
        sums = self.sums([path]).items()
        return _digest(sorted((str(Path(name).relative_to(path)), md5) for name, md5 in sums))


def fingerprint(config: Mapping[str, Any], contents: Contents) -> str:
    """A checksum of a training: of its config, with its seed, and of the content of its files.

    Args:
        config: the config, with its variables filled in.
        contents: gives the checksums of files.
    """
    files = named_files(dict(config))
    digests = {str(Path(name)): contents.digest(path) for name, path in files.items()}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items() if key != "output_file"}
        if isinstance(value, str) and value:
            return digests.get(str(Path(value)), value)
        return value

    return _digest({block: plain(config[block]) for block in BLOCKS})


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
