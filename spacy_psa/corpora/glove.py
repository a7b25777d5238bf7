"""Pretrained vectors as published (GloVe: Pennington et al., 2014) for `spacy init vectors`."""

import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from spacy_psa.corpora.archives import broken_as_input_error, open_files
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.lines import BOM, file_lines
from spacy_psa.errors import InputError

Watch = Callable[[Iterator[bytes], str], Iterator[bytes]]
"""Wraps the lines of a pass, to show the progress; the string names the pass."""
GREATEST = 3.4028235e38
"""The greatest number that 32 bits hold."""


def prepare_vectors(
    source: Path,
    target: Path,
    dim: int,
    member: str | None = None,
    watch: Watch = lambda lines, _: lines,
) -> int:
    """Check vectors of `dim` numbers, and write them in word2vec's text format; count them.

    The file is streamed twice, because the header ("rows dim") needs the number of rows.

    Args:
        source: a .zip (the official archive), .gz or plain text file, with one word and `dim`
            numbers on each line, with or without a header.
        member: the file inside the .zip; None means the file whose name ends in ".{dim}d.txt".
        watch: wraps the lines of each of the two passes, to show the progress.
    """
    if source.suffix == ".zip":
        member = _choose_member(source, dim, member)
    elif member:
        raise InputError(f"{source}: --member is for .zip archives; leave it out")
    name = f"{source}/{member}" if member else str(source)
    rows = _check(name, watch(_lines(source, member), "checking"), dim)
    with atomic_path(target) as temporary, open(temporary, "wb") as output:
        output.write(f"{rows} {dim}\n".encode())
        for number, line in enumerate(watch(_lines(source, member), "writing"), 1):
            if not (number == 1 and _is_header(line)):
                output.write(line.rstrip(b"\r\n") + b"\n")
    return rows


def _check(name: str, lines: Iterator[bytes], dim: int) -> int:
    """Check all lines, and count the vectors."""
    rows, stated = 0, None
    for number, line in enumerate(lines, 1):
        if number == 1 and _is_header(line):
            stated, width = map(int, line.split())
            if width != dim:
                raise InputError(f"{name}:1: the header has {width} numbers; use --dim {width}")
            continue
        reason = _wrong(line, dim)
        if reason:
            raise InputError(f"{name}:{number}: {reason}")
        rows += 1
    if not rows:
        raise InputError(f"{name}:1: no vectors in the file; download it again")
    if stated not in (None, rows):
        raise InputError(
            f"{name}:1: the header counts {stated:,} vectors, but there are {rows:,}; "
            "download the file again, or delete the header if the others are not needed"
        )
    return rows


def _wrong(line: bytes, dim: int) -> str | None:
    """Tell what is wrong with the line of a vector; None if nothing is."""
    try:
        text = line.rstrip(b"\r\n").decode("utf8")
    except UnicodeDecodeError:
        return "not UTF-8; download the file again"
    if "\r" in text:
        return "a carriage return inside of the line; change the line ends to LF or CRLF"
    word, *values = text.rsplit(" ", dim)
    # Some releases have words with spaces. If the text before the last `dim` fields ends in
    # a number, the line has too many numbers. If it has a vector of its own, the end of a line
    # is missing; the number at that end may have grown together with the next word.
    spare = [_number(field) is not None for field in word.split(" ")[1:]]
    if sum(spare) >= max(dim - 1, 1) and not spare[-1]:
        return "two vectors on one line; download the file again"
    if len(values) != dim or (spare and spare[-1]):
        width = text.count(" ")
        return f"{width} numbers instead of {dim}; use the right --dim, or download the file again"
    if not word:
        return "no word before the numbers; download the file again"
    for value in values:
        if _number(value) is None:
            return f"{value!r} is not a finite number in 32 bits; download the file again"
    return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) <= GREATEST else None


def _is_header(line: bytes) -> bool:
    fields = line.rstrip(b"\r\n").split(b" ")
    return len(fields) == 2 and all(field.isdigit() and len(field) < 10 for field in fields)


def _choose_member(archive: Path, dim: int, member: str | None) -> str:
    with broken_as_input_error(archive), zipfile.ZipFile(archive) as opened:
        names = [info.filename for info in opened.infolist() if not info.is_dir()]
    listed = ", ".join(names) or "the archive is empty"
    if member is None:
        fitting = [name for name in names if name.endswith(f".{dim}d.txt")]
        if len(fitting) != 1:
            raise InputError(
                f"{archive}: no single member fits --dim {dim}; choose one with --member: {listed}"
            )
        return fitting[0]
    if member not in names:
        raise InputError(f"{archive}: there is no member {member!r}; choose one of {listed}")
    return member


def _lines(source: Path, member: str | None) -> Iterator[bytes]:
    """Yield the lines, the first without a byte order mark."""
    files: Iterable[tuple[str, Iterable[bytes]]] = [(str(source), file_lines(source))]
    if member is not None:
        files = open_files(source, lambda name: name == member, f"file {member}")
    for _, lines in files:
        for number, line in enumerate(lines):
            yield line if number else line.removeprefix(BOM)
