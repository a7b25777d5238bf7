"""Pretrained vectors as published (GloVe: Pennington et al., 2014) for `spacy init vectors`."""

import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.lines import open_input
from spacy_psa.errors import InputError

Watch = Callable[[Iterator[bytes], str], Iterator[bytes]]
"""Wraps the lines of a pass, to show the progress; the string names the pass."""


def prepare_vectors(
    source: Path,
    target: Path,
    dim: int,
    member: str | None = None,
    watch: Watch = lambda lines, _: lines,
) -> int:
    """Check a vector file and write it in word2vec's text format, with the header "rows dim".

    The file is streamed twice, because the header needs the number of rows.

    Args:
        source: a .zip (the official archive), .gz or plain text file, with one word and `dim`
            numbers on each line, with or without a header.
        target: the file to write.
        dim: the number of components of each vector.
        member: the file inside the .zip; None takes the file whose name ends in ".{dim}d.txt".
        watch: wraps the lines of each of the two passes, to show the progress.

    Returns:
        The number of rows.

    Raises:
        InputError: if a line has another number of components or something that is not a finite
            number, if the archive is broken, or if it has no such member.
    """
    if source.suffix == ".zip":
        member = member or _choose_member(source, dim)
    elif member:
        raise InputError(f"{source}: --member is for .zip archives; leave it out")
    name = f"{source}/{member}" if member else str(source)
    rows = sum(1 for _ in _rows(name, watch(_lines(source, member), "checking"), dim))
    if not rows:
        raise InputError(f"{name}:1: no vectors in the file; download it again")
    with atomic_path(target) as temporary, open(temporary, "wb") as output:
        output.write(f"{rows} {dim}\n".encode())
        for number, line in enumerate(watch(_lines(source, member), "writing"), 1):
            if not (number == 1 and _is_header(line)):
                output.write(line.rstrip(b"\r\n") + b"\n")
    return rows


def _rows(name: str, lines: Iterator[bytes], dim: int) -> Iterator[None]:
    """Yield one item for each vector that passes the check."""
    for number, line in enumerate(lines, 1):
        try:
            text = line.rstrip(b"\r\n").decode("utf8")
        except UnicodeDecodeError as error:
            raise InputError(f"{name}:{number}: not UTF-8; download the file again") from error
        if number == 1 and _is_header(line):
            width = int(text.split()[1])
            if width != dim:
                raise InputError(f"{name}:1: the header says {width} numbers; give --dim {width}")
            continue
        word, *values = text.rsplit(" ", dim)
        # Some releases have words with spaces. If the text before the last `dim` fields ends in
        # a number, the line has too many numbers.
        spare = word.split(" ")[1:]
        if len(values) != dim or (spare and _number(spare[-1]) is not None):
            width = text.count(" ")
            raise InputError(
                f"{name}:{number}: {width} numbers instead of {dim}; "
                "give the right --dim, or download the file again"
            )
        if not word:
            raise InputError(
                f"{name}:{number}: no word before the numbers; download the file again"
            )
        for value in values:
            if _number(value) is None:
                raise InputError(
                    f"{name}:{number}: {value!r} is not a finite number; download the file again"
                )
        yield None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _is_header(line: bytes) -> bool:
    fields = line.rstrip(b"\r\n").split(b" ")
    return len(fields) == 2 and all(field.isdigit() for field in fields)


def _choose_member(archive: Path, dim: int) -> str:
    with _broken_zip(archive), zipfile.ZipFile(archive) as opened:
        names = [info.filename for info in opened.infolist() if not info.is_dir()]
    fitting = [name for name in names if name.endswith(f".{dim}d.txt")]
    if len(fitting) != 1:
        raise InputError(
            f"{archive}: no single member fits --dim {dim}; "
            f"choose one with --member: {', '.join(names) or 'the archive is empty'}"
        )
    return fitting[0]


@contextmanager
def _broken_zip(archive: Path) -> Iterator[None]:
    """Turn the errors of a broken or unreadable .zip file into InputError."""
    try:
        yield
    except zipfile.BadZipFile as error:
        raise InputError(f"{archive}: the zip is broken ({error}); download it again") from error
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{archive}: cannot be read ({reason}); check the path") from error


def _lines(source: Path, member: str | None) -> Iterator[bytes]:
    if member is None:
        with open_input(source) as stream:
            yield from stream
        return
    with _broken_zip(source), zipfile.ZipFile(source) as archive:
        if member not in archive.namelist():
            raise InputError(
                f"{source}: there is no member {member!r}; "
                f"choose one of {', '.join(archive.namelist())}"
            )
        with archive.open(member) as opened:
            yield from opened
