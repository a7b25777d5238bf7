"""Lines of a text corpus, repaired where that is safe, each repair counted."""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from spacy_psa.errors import InputError

BOM = b"\xef\xbb\xbf"
BLANKS = re.compile(r"[ \t]+")  # str.split() would also split at a no-break space in a word


@contextmanager
def open_input(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Open a plain or gzipped (`.gz`) file for reading.

    Raises:
        InputError: the file is missing, unreadable, or a broken archive, also
            where that shows only while it is read.
    """
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rb") as stream:
            yield stream
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: the gzip file is broken ({error}); fetch it again") from error
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be read ({reason}); check the path") from error


def read_lines(path: Path, repairs: Counter[str]) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text) of a plain or gzipped file, see `decode_lines`.

    Raises:
        InputError: the file cannot be read or is not text.
    """
    with open_input(path) as stream:
        yield from decode_lines(str(path), stream, repairs)


def decode_lines(
    name: str, stream: Iterable[bytes], repairs: Counter[str]
) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text without line end or trailing blanks), streaming.

    A byte order mark, CRLF ends, trailing blanks and lines in Latin-1 instead of
    UTF-8 are repaired and counted in `repairs`.

    Args:
        name: of the file, for errors.

    Raises:
        InputError: the lines are not text.
    """
    for number, raw in enumerate(stream, 1):
        if number == 1 and raw.startswith(BOM):
            raw = raw.removeprefix(BOM)
            repairs["file(s) with a byte order mark"] += 1
        if b"\0" in raw or raw.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(
                f"{name}:{number}: not UTF-8 text but binary or UTF-16; convert it to UTF-8"
            )
        body = raw.removesuffix(b"\n")
        if body.endswith(b"\r"):
            body = body.removesuffix(b"\r")
            repairs["line(s) with CRLF"] += 1
        if body.endswith((b" ", b"\t")):
            body = body.rstrip(b" \t")
            repairs["line(s) with trailing blanks"] += 1
        try:
            text = body.decode("utf8")
        except UnicodeDecodeError:
            text = body.decode("latin1")
            repairs["line(s) read as Latin-1"] += 1
        yield number, text


def split_columns(text: str, count: int, repairs: Counter[str]) -> list[str]:
    """Split a line at blanks; at tabs alone where that gives `count` columns.

    So a word may hold a space in a file with tabs. The caller checks the number.
    """
    if "\t" in text:
        repairs["line(s) with tabs"] += 1
        columns = [column.strip(" ") for column in text.split("\t")]
        if len(columns) == count and all(columns):
            return columns
    return BLANKS.split(text.strip(" \t"))


def describe_repairs(path: Path, repairs: Counter[str]) -> str:
    """One line for the user: what was repaired, how often."""
    counts = ", ".join(f"{count:,} {what}" for what, count in sorted(repairs.items()))
    return f"{path}: repaired: {counts}"
