"""Records of a JSON or JSON lines file, with their places."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy_psa.corpora.lines import read_lines
from spacy_psa.corpora.marked_text import Mark
from spacy_psa.errors import InputError


def read_records(path: Path, repairs: Counter[str]) -> Iterator[tuple[str, Any]]:
    """Yield the place (file and line) and the content of each record.

    A file, plain or .gz, whose name ends in `.json` is one JSON list, whose records are numbered
    from 1, or has a record on each line. All other files have a record on each line; empty lines
    are skipped.

    Raises:
        InputError: if the file is not JSON.
    """
    if ".json" in path.suffixes:
        yield from _of_list(path)
        return
    for number, text in read_lines(path, repairs):
        if text.strip():
            yield f"{path}:{number}", parsed(text, f"{path}:{number}")


def _of_list(path: Path) -> Iterator[tuple[str, Any]]:
    text = "\n".join(line for _, line in read_lines(path, Counter()))
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        for number, line in enumerate(text.splitlines(), 1):  # JSON lines under another name
            if line.strip():
                yield f"{path}:{number}", parsed(line, f"{path}:{number}")
        return
    for number, record in enumerate(whole if isinstance(whole, list) else [whole], 1):
        yield f"{path}: record {number}", record


def parsed(text: str, place: str) -> Any:
    """Read JSON.

    Raises:
        InputError: if the text is not JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: is not JSON ({error}); correct the line") from error


def take(record: Any, key: str, kind: type, place: str) -> Any:
    """Read a value of a record.

    Raises:
        InputError: if the record lacks it, or it has another type.
    """
    value = record.get(key) if isinstance(record, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        names = {str: "text", int: "a whole number", list: "a list", dict: "an object"}
        raise InputError(
            f"{place}: {key!r} is {json.dumps(value)[:40]} instead of {names[kind]}; "
            "correct the record or export it again"
        )
    return value


def take_mark(
    item: Any, place: str, names: tuple[str, str, str] = ("start", "end", "label")
) -> Mark:
    """Read a mark, an object with these names or the list of their values.

    Raises:
        InputError: if it has another form.
    """
    if isinstance(item, list) and len(item) >= len(names):
        item = dict(zip(names, item))
    start, end = (take(item, name, int, place) for name in names[:2])
    return Mark(start, end, take(item, names[2], str, place))
