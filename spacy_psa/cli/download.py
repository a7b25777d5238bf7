"""Downloads a file, which replaces the former one when it is whole and checked."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from spacy_psa.corpora.atomic import sync, unwritable_as_input_error
from spacy_psa.errors import InputError
from spacy_psa.scoring.provenance import md5

if TYPE_CHECKING:
    from requests import Response

TRIES = 5
"""How often in a row a server may send nothing new."""
FIRST_PAUSE = 1.0
"""Seconds to wait before the second try; twice as long before each further one."""
TIMEOUT = 30.0
"""Seconds without a byte, after which a connection counts as cut."""
AGAIN = (408, 429)
"""Statuses below 500 that do not stay."""
BLOCK = 2**16
ADVICE = "try again later, or give a folder that holds the file with --mirror"


class _Cut(Exception):
    """The connection ended early; another try may go on where it was."""


def download(url: str, path: Path, *, size: int | None = None, checksum: str | None = None) -> None:
    """Download a file to `path`.

    The bytes are gathered in `NAME.part` next to it. After a cut connection, the next try asks for
    the rest. If all tries fail, the part stays; with a checksum, the next call goes on with it. The
    part replaces the file when its size and checksum are right.

    Args:
        url: the address, http or https.
        path: the file.
        size: its size in bytes; None if unknown.
        checksum: its MD5 in hexadecimal; None if unknown.

    Raises:
        InputError: if the server has no such file or another one, or sends nothing new several
            times; or if the file cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    with unwritable_as_input_error(path):
        part.parent.mkdir(parents=True, exist_ok=True)
        if checksum is None:
            # Nothing would tell whether it is a part of the same file.
            part.unlink(missing_ok=True)
        _Download(url, part, size, checksum).run()
        sync(part)
        os.replace(part, path)


class _Download:
    """A download to a part.

    Args:
        url: see `download`.
        part: the file for the bytes; what is in it is asked for no more.
        size: see `download`.
        checksum: see `download`.
    """

    def __init__(self, url: str, part: Path, size: int | None, checksum: str | None) -> None:
        self.url = url
        self.part = part
        self.size = size
        self.checksum = checksum
        self.version: str | None = None
        """What the server calls the version of the file."""

    def run(self) -> None:
        """Fill the part, and check it."""
        most = self._have()
        left = TRIES
        while True:
            resumed = self._have() > 0
            try:
                self._fetch()
                if self._is_right():
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

    def _is_right(self) -> bool:
        return self.checksum is None or md5(self.part) == self.checksum

    def _fetch(self) -> None:
        """Ask for what is lacking, and add it to the part."""
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
        """Tell where the bytes of an answer begin, and the size of the whole file."""
        status = f"the server says {answer.status_code} {answer.reason}"
        if answer.status_code == 416:
            self.part.unlink(missing_ok=True)
            raise _Cut(status)
        if answer.status_code in AGAIN or answer.status_code >= 500:
            raise _Cut(status)
        if answer.status_code not in (200, 206):
            raise InputError(f"{self.url}: {status}; {ADVICE}")
        if answer.status_code == 206:
            found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", answer.headers.get("Content-Range", ""))
            start, total = map(int, found.groups()) if found else (-1, None)
        else:
            length = answer.headers.get("Content-Length", "")
            start, total = 0, int(length) if length.isdecimal() else self.size
        if start not in (0, have):
            self.part.unlink()
            raise _Cut("the server sends another part than the one that was asked for")
        if total is None:
            raise InputError(f"{self.url}: the server does not say how large the file is; {ADVICE}")
        if self.size not in (None, total):
            raise self._other(f"{total:,} bytes instead of {self.size:,}")
        return start, total

    def _other(self, found: str) -> InputError:
        return InputError(f"{self.url}: the server has another file ({found}); {ADVICE}")


def _version(answer: "Response") -> str | None:
    """What the server calls the version of the file, byte for byte."""
    tag = answer.headers.get("ETag", "")
    return tag if tag.startswith('"') else answer.headers.get("Last-Modified")
