"""Corpora of many files in a git repository: downloaded one by one, and packed in an archive.

The archives that GitHub makes have no lasting checksum. But git has an id for each file and folder,
which is a checksum of its content (and of the names in it), and which `spacy-psa assets` compares.
"""

import hashlib
import shutil
import tarfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from spacy_psa.corpora.archives import open_files
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.errors import InputError

AT_A_TIME = 8
Fetch = Callable[[str, Path], None]
"""Downloads an address to a path."""
Names = Callable[[Path], list[str]]
"""Lists further files of a corpus, from the folder with those that have been downloaded."""


def git_ids(source: Path) -> dict[str, str]:
    """Compute the git ids of the files of a folder or archive, and of the folders in it.

    Folders in folders, and hidden files, are left out.
    """
    ids: dict[str, str] = {}
    folders: dict[str, dict[str, bytes]] = {}
    for name, lines in open_files(source, lambda _: True, "files"):
        path = PurePosixPath(name).relative_to(PurePosixPath(source.as_posix()))
        digest = _digest("blob", b"".join(lines))
        ids[path.as_posix()] = digest.hex()
        if len(path.parts) == 2:
            folders.setdefault(path.parts[0], {})[path.name] = digest
    for folder, files in folders.items():
        entries = (
            b"100644 %b\0%b" % item for item in sorted((n.encode(), d) for n, d in files.items())
        )
        ids[folder] = _digest("tree", b"".join(entries)).hex()
    return ids


def is_complete(source: Path, ids: Mapping[str, str]) -> bool:
    """Tell whether a folder or archive can be read and has files and folders with these git ids."""
    try:
        return ids.items() <= git_ids(source).items()
    except InputError:
        return False


def pack_repository(
    address: str, target: Path, ids: Mapping[str, str], names: Names, fetch: Fetch
) -> None:
    """Download files of a repository, and pack them in a .tar.xz archive.

    The files are gathered in a folder next to the archive. If a download fails, they stay there,
    and the next call continues. The address ends with the commit and a slash. `ids` are the git ids
    of files, and of folders, in which `names` lists the other files.
    """
    folder = target.with_name(f"{target.name}.files")

    def get(name: str) -> None:
        path = folder / name
        if not path.is_file():
            fetch(address + name, path)

    for name in ids:
        if "." in name:
            get(name)
    files = names(folder)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(get, files))
    if not is_complete(folder, ids):
        shutil.rmtree(folder)
        raise InputError(
            f"{address}: the server has other files than those of the corpus; try again"
        )
    with atomic_path(target) as temporary, tarfile.open(temporary, "w:xz", preset=1) as archive:
        for name in sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*")):
            archive.add(folder / name, name, filter=_plain)
    shutil.rmtree(folder)


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out what depends on the machine, so that the same files make the same archive."""
    info.mtime = info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode = 0o644
    return info


def _digest(kind: str, content: bytes) -> bytes:
    """Compute the id that git has for a file ("blob") or a folder ("tree")."""
    head = f"{kind} {len(content)}\0".encode()
    return hashlib.sha1(head + content, usedforsecurity=False).digest()
