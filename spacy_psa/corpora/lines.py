"""Lines of a text corpus; defects that are safe to repair are repaired and counted."""

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from spacy_psa.errors import InputError

BOM = b"\xef\xbb\xbf"
BLANKS = re.compile(r"[ \t]+")  # str.split() would also split a word at a no-break space
LATIN = "line(s) read as Latin-1"
NO_WORD = re.compile(r"\d+[-.]\d+")
"""The number of a row of CoNLL-U that is not a word: words written as one (1-2), empty (1.1)."""
DOCSTART = "-DOCSTART-"
"""The beginning of the line between two documents, in files of columns."""
LONGEST = 2**24
"""The greatest length of a line, in bytes.

A small archive may hold a line that is larger than the memory."""
EXPANSION = 200
"""The most bytes that a byte of an archive may unpack to. Text packs to a tenth, rarely to a
hundredth of its size."""
HARMLESS = 2**30
"""Bytes that any archive may unpack to."""


def file_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a plain or gzipped (`.gz`) file, as a stream.

    A broken archive may only show, as an InputError, while it is read.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as stream:
            unpacked = 0
            for line in stream_lines(str(path), stream):
                unpacked += len(line)
                check_expansion(path, unpacked)
                yield line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: the gzip file is broken ({error}); download it again") from error
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be read ({reason}); check the path") from error


def check_expansion(path: Path, unpacked: int, packed: int | None = None) -> None:
    """Raise an InputError if a file unpacks to far more than text does.

    That is more than `EXPANSION` times its size, and more than `HARMLESS`. `unpacked` bytes have
    been unpacked, or an archive announces them; `packed` is None for the size of the file.
    """
    if unpacked > HARMLESS and unpacked > EXPANSION * (packed or path.stat().st_size):
        raise InputError(
            f"{path}: unpacks to more than {EXPANSION} times its size, as no text does; "
            "do not trust it, or unpack it yourself"
        )


def stream_lines(name: str, stream: Any) -> Iterator[bytes]:
    """Yield the lines of a file that is open for reading bytes, and close it at the end."""
    number = 0
    # Files in archives read a line of bounded length slowly; a reader around them does not.
    with io.BufferedReader(stream, 2**16) as reader:
        while line := reader.readline(LONGEST + 1):
            number += 1
            if len(line) > LONGEST:
                raise InputError(
                    f"{name}:{number}: the line is longer than {LONGEST // 2**20} MiB; "
                    "check that the file is text with line ends"
                )
            yield line


def read_lines(path: Path, repairs: Counter[str]) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a plain or gzipped file, see `decode_lines`."""
    yield from decode_lines(str(path), file_lines(path), repairs)


def decode_lines(
    name: str, stream: Iterable[bytes], repairs: Counter[str]
) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of each line, as a stream; `name` is for errors.

    The text has no line end and no trailing blanks. These defects are repaired and counted in
    `repairs`: a byte order mark, CRLF line ends, trailing blanks, lines in Latin-1 instead of
    UTF-8, and a last line without a line end, which may be the rest of a longer one.
    """
    for number, raw in enumerate(stream, 1):
        if number == 1 and raw.startswith(BOM):
            raw = raw.removeprefix(BOM)
            repairs["file(s) with a byte order mark"] += 1
        if b"\0" in raw or raw.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(
                f"{name}:{number}: not UTF-8 text but binary or UTF-16; convert it to UTF-8"
            )
        if not raw.endswith(b"\n"):
            repairs["last line(s) without a line end"] += 1
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
            repairs[LATIN] += 1
        yield number, text


def marks_documents(path: Path) -> bool:
    """Tell whether a file of columns has lines between documents; this may read all of it."""
    return any(text.startswith(DOCSTART) for _, text in read_lines(path, Counter()))


def split_columns(text: str, count: int, repairs: Counter[str]) -> list[str]:
    """Split a line at tabs if this makes `count` columns, and otherwise at blanks.

    A word of a file with tabs may therefore contain a space. The caller checks the number of
    columns. `repairs` counts lines with tabs.
    """
    if "\t" in text:
        repairs["line(s) with tabs"] += 1
        columns = [column.strip(" ") for column in text.split("\t")]
        if len(columns) == count and all(columns):
            return columns
    return BLANKS.split(text.strip(" \t"))


def wrong_columns(text: str, columns: Sequence[str], count: int) -> str:
    """Tell why a line that `split_columns` has split does not have `count` columns."""
    cells = [cell.strip(" ") for cell in text.split("\t")]
    if len(cells) == count:
        return f"column {cells.index('')} of {count} is blank"
    begins = ", as the line begins with a blank" if text[:1] in " \t" else ""
    return f"{len(columns)} column(s) instead of {count}{begins}"


def describe_repairs(path: Path, repairs: Counter[str]) -> str:
    """Tell the user in one line what was repaired and how often."""
    return f"{path}: repaired: {describe(repairs)}"


def describe(repairs: Counter[str]) -> str:
    """List the repairs of each kind with their number."""
    return ", ".join(f"{count:,} {what}" for what, count in sorted(repairs.items()))
