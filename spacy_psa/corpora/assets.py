"""The files that a corpus needs: checked, copied or downloaded.

`spacy project assets` downloads files as well. But it only warns of a wrong checksum, does not
continue after a cut connection, and cannot copy from a folder instead.
"""

import hashlib
import os
import re
import shutil
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import srsly

from spacy_psa.corpora import gum
from spacy_psa.corpora.atomic import atomic_path, sync, unwritable_as_input_error, write_json
from spacy_psa.corpora.layouts import is_own, layout
from spacy_psa.corpora.repository import is_complete, pack_repository
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from requests import Response

LARGE = 2**28
"""Files of this size and more are only known by their size."""
TRIES = 5
"""The number of tries in a row in which a server may send nothing new."""
FIRST_PAUSE = 1.0
"""Seconds to wait before the second try; twice as long before each further one."""
TIMEOUT = 30.0
"""Seconds without a byte, after which a connection counts as cut."""
AGAIN = (408, 429)
"""Statuses below 500 that do not stay."""
BLOCK = 2**16
ADVICE = "try again later, or name a folder that contains the file with --mirror"


def fetch_assets(
    corpus: str, project: Path, mirror: str, task: str, fetch: bool, tell: Callable[[str], None]
) -> list[Path]:
    """Copy or download the missing and damaged files of a corpus, check all files, and list them.

    Args:
        corpus: the name of the corpus, or a folder with own files.
        project: the project file, which lists the addresses and checksums of the files in `assets/`
            next to it.
        mirror: a folder, or folder of folders, from which files are copied; "" for none.
        task: the task to train for; "" for any.
        fetch: whether to download.
        tell: called with a message for each file that is copied or downloaded.
    """
    if is_own(corpus):
        return sorted(path for path in Path(corpus).rglob("*") if path.is_file())
    files = layout(corpus)
    if task and task not in files.tasks:
        raise InputError(
            f"{corpus}: has no annotation for the task {task!r}; choose --vars.task "
            f"{' or '.join(files.tasks)}"
        )
    if mirror and not Path(mirror).is_dir():
        raise InputError(f"--mirror {mirror}: there is no such folder; check the path")
    store = _Store(project, mirror, fetch, tell)
    needed = files.files()
    if missing := store.missing(needed):
        where = f" and not in {mirror}" if mirror else ""
        raise InputError(
            f"missing{where}: {', '.join(missing)}; use --download, or a folder "
            "that contains them with --mirror (in a project: --vars.mirror FOLDER)"
        )
    for name, sources in files.more.items():
        missing = []
        for part in sources:
            try:
                missing = store.missing(part.files())
            except _Unreachable as error:
                missing = [str(error)]
            if not missing:
                needed += part.files()
                break
        else:
            tell(f"{name}: left out, not needed for training (missing: {', '.join(missing)})")
    return [project.parent / "assets" / path for path in dict.fromkeys(needed)]


class _Unreachable(InputError):
    """A file that cannot be downloaded."""


class _Store:
    """The files in `assets/`; the arguments are those of `fetch_assets`."""

    def __init__(
        self, project: Path, mirror: str, fetch: bool, tell: Callable[[str], None]
    ) -> None:
        self.project = project
        self.listed = _listed(project)
        self.mirror = mirror
        self.fetch = fetch
        self.tell = tell

    def missing(self, files: Iterable[PurePosixPath]) -> list[str]:
        """Copy or download files, and describe those that are missing after it.

        A damaged file is an `InputError`, a download that fails is `_Unreachable`.
        """
        return [lack for file in files if (lack := self._lack(Path("assets") / file))]

    def _lack(self, path: Path) -> str:
        asset, target = self.listed.get(path.as_posix(), {}), self.project.parent / path
        url = asset.get("url") or asset.get("repository")
        if self.mirror and not _is_whole(target, asset):
            folder = Path(self.mirror)
            candidates = [folder / path.name, *sorted(folder.glob(f"*/{path.name}"))]
            if copy := next((each for each in candidates if _is_whole(each, asset)), None):
                with atomic_path(target) as temporary:
                    shutil.copyfile(copy, temporary)
                self.tell(f"{path}: copied from {copy}")
        if self.fetch and url and not _is_whole(target, asset):
            self.tell(f"{path}: downloading from {url}")
            try:
                if ids := asset.get("git"):
                    pack_repository(url, target, ids, gum.file_names, download)
                else:
                    download(url, target, size=asset.get("size"), checksum=asset.get("checksum"))
            except InputError as error:
                raise _Unreachable(str(error)) from error
        if not target.is_file():
            return str(path) if url else f"{path} (not for download)"
        if not _is_whole(target, asset):
            checksum = asset.get("checksum")
            wrong = f"its MD5 is not {checksum}" if checksum else "empty, cut off or incomplete"
            raise InputError(
                f"{target}: is damaged or is another version ({wrong}); "
                "get another by --download or --mirror"
            )
        return ""


def _listed(project: Path) -> dict[str, dict[str, Any]]:
    """Read the assets of the project file, by destination."""
    try:
        return {asset["dest"]: asset for asset in srsly.read_yaml(project)["assets"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{project}: is not a project file with a list of assets; "
            "run this in the project's folder or use --project"
        ) from error


def _is_whole(path: Path, asset: dict[str, Any]) -> bool:
    """Check a file by its MD5 or the git ids in it; or else a .zip by its end, the directory."""
    if not path.is_file():
        return False
    if checksum := asset.get("checksum"):
        return md5(path) == checksum
    if ids := asset.get("git"):
        return is_complete(path, ids)
    if path.suffix == ".zip":
        return zipfile.is_zipfile(path)
    return path.stat().st_size > 0


def record_files(paths: Iterable[Path], target: Path) -> None:
    """Write the sizes and checksums of files as JSON, so that a project sees changes of them."""
    record = {}
    for path in paths:
        size = path.stat().st_size
        record[str(path)] = {"size": size, **({"md5": md5(path)} if size < LARGE else {})}
    write_json(target, record)


def md5(path: Path) -> str:
    """Compute the MD5 checksum of a file, in hexadecimal, as spaCy projects do."""
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


class _Cut(Exception):
    """The connection ended early; another try may continue where it was."""


def download(url: str, path: Path, *, size: int | None = None, checksum: str | None = None) -> None:
    """Download a file to `path`; its size in bytes and its MD5 are None if unknown.

    The bytes are gathered in `NAME.part` next to it. After a cut connection, the next try asks for
    the rest. If all tries fail, the part stays; with a checksum, the next call continues with it.
    The part replaces the file when its size and checksum are right.
    """
    part = path.with_name(f"{path.name}.part")
    with unwritable_as_input_error(path):
        part.parent.mkdir(parents=True, exist_ok=True)
        if checksum is None:
            # Nothing shows whether it is a part of the same file.
            part.unlink(missing_ok=True)
        _Download(url, part, size, checksum).run()
        sync(part)
        os.replace(part, path)


class _Download:
    """A download to a part; the bytes that the part has are not asked for again."""

    def __init__(self, url: str, part: Path, size: int | None, checksum: str | None) -> None:
        self.url = url
        self.part = part
        self.size = size
        self.checksum = checksum
        self.version: str | None = None
        """The name that the server has for the version of the file."""

    def run(self) -> None:
        """Fill the part, and check it."""
        most = self._have()
        left = TRIES
        while True:
            resumed = self._have() > 0
            try:
                self._fetch()
                if self.checksum is None or md5(self.part) == self.checksum:
                    return
                self.part.unlink()
                if not resumed:
                    raise self._other(f"its MD5 is not {self.checksum}")
                reason = "the part of it that was here is another file's"
            except _Cut as error:
                reason = str(error)
            left = TRIES if self._have() > most else left - 1
            most = max(most, self._have())
            if not left:
                raise InputError(f"{self.url}: cannot be downloaded ({reason}); {ADVICE}")
            time.sleep(FIRST_PAUSE * 2 ** (TRIES - left))

    def _have(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _fetch(self) -> None:
        """Ask for the missing bytes, and add them to the part."""
        have = self._have()
        if have and have == self.size:
            return
        with self._answer(have) as answer:
            start, total = self._extent(answer, have)
            self.version = _version(answer)
            with self.part.open("ab" if start else "wb") as stream:
                for block in answer.iter_content(BLOCK):
                    stream.write(block)
                    if stream.tell() > total:
                        raise self._other(f"more than {total:,} bytes")
        if self._have() != total:
            raise _Cut(f"{self._have():,} of {total:,} bytes came")

    @contextmanager
    def _answer(self, have: int) -> "Iterator[Response]":
        import requests

        headers = {"Accept-Encoding": "identity"}  # sizes are those of the file
        if have and (self.checksum or self.version):
            headers["Range"] = f"bytes={have}-"
            if self.version:
                headers["If-Range"] = self.version
        try:
            with requests.get(self.url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
                yield answer
        except (
            requests.Timeout,
            requests.ConnectionError,
            requests.exceptions.ChunkedEncodingError,
        ) as error:
            raise _Cut("the connection was cut, or stalled") from error
        except requests.RequestException as error:
            raise InputError(f"{self.url}: cannot be downloaded ({error}); {ADVICE}") from error

    def _extent(self, answer: "Response", have: int) -> tuple[int, int]:
        """Return where the bytes of an answer begin, and the size of the whole file."""
        status = f"the server answers {answer.status_code} {answer.reason}"
        if answer.status_code == 416:
            self.part.unlink(missing_ok=True)
            raise _Cut(status)
        if answer.status_code in AGAIN or answer.status_code >= 500:
            raise _Cut(status)
        if answer.status_code not in (200, 206):
            raise InputError(f"{self.url}: {status}; {ADVICE}")
        if answer.status_code == 206:
            sent = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", answer.headers.get("Content-Range", ""))
            start, total = map(int, sent.groups()) if sent else (-1, None)
        else:
            length = answer.headers.get("Content-Length", "")
            start, total = 0, int(length) if length.isdecimal() else self.size
        if start not in (0, have):
            self.part.unlink()
            raise _Cut("the server sends another part than the one that was asked for")
        if total is None:
            raise InputError(f"{self.url}: the server does not send the size of the file; {ADVICE}")
        if self.size not in (None, total):
            raise self._other(f"{total:,} bytes instead of {self.size:,}")
        return start, total

    def _other(self, difference: str) -> InputError:
        return InputError(f"{self.url}: the server has another file ({difference}); {ADVICE}")


def _version(answer: "Response") -> str | None:
    """Return the name that the server has for the version of the file, byte for byte."""
    tag = answer.headers.get("ETag", "")
    return tag if tag.startswith('"') else answer.headers.get("Last-Modified")
