"""Records of a JSON or JSON lines file, with their places."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy_psa.corpora.lines import read_lines
from spacy_psa.corpora.marked_text import Mark
from spacy_psa.errors import InputError

_AROUND = ("data", "annotations", "examples", "records", "rows", "train")
"""Keys of lists of records."""
EMPTY = "empty record(s), left out"


def read_records(
    path: Path, repairs: Counter[str], faults: list[str] | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield the place (file and line) and the content of each record.

    A file, plain or .gz, whose name ends in `.json` is one JSON list, whose records are numbered
    from 1, or has a record on each line. The list may be the value of a key, as in `{"data": […]}`.
    All other files have a record on each line; empty lines are skipped. `faults` get the message of
    each line that is not JSON; without them, it is an error.
    """
    if ".json" in path.suffixes:
        whole = _whole(path)
        if whole is not None:
            for number, record in enumerate(_records(whole), 1):
                if not record and isinstance(whole, dict):  # ner-annotator has null for some
                    repairs[EMPTY] += 1
                else:
                    yield f"{path}: record {number}", record
            return
    for number, text in read_lines(path, repairs):
        if text.strip():
            try:
                record = parsed(text, f"{path}:{number}")
            except InputError as error:
                if faults is None:
                    raise
                faults.append(str(error))
                continue
            yield f"{path}:{number}", record


def _whole(path: Path) -> Any:
    """Read a file as one JSON value; None if it is not one, as JSON lines under another name."""
    try:
        return json.loads(_text(path))
    except (ValueError, RecursionError):
        return None


def _text(path: Path) -> str:
    return "\n".join(line for _, line in read_lines(path, Counter()))


def check_whole(path: Path) -> None:
    """Raise an InputError if a file begins as one JSON value, but does not end as one."""
    try:
        json.loads(_text(path))
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":  # the next record of JSON lines
            raise InputError(
                f"{path}:{error.lineno}: is not JSON ({error}); correct it or export it again"
            ) from error


def _records(whole: Any) -> list[Any]:
    """Return the records of a file of one JSON value."""
    if isinstance(whole, dict) and not isinstance(whole.get("data"), dict | str):
        lists = [whole[key] for key in _AROUND if isinstance(whole.get(key), list)]
        if len(lists) == 1 and "text" not in whole:
            return lists[0]
    return whole if isinstance(whole, list) else [whole]


def label_names(path: Path) -> list[str]:
    """Find the names of numbered tags, in their order, in a file or the description next to it."""
    for source in (path, *(folder / "dataset_info.json" for folder in path.parents[:2])):
        if ".json" in source.suffixes and source.is_file():
            names = _names(_whole(source))
            if names:
                return names
    return []


def _names(value: Any) -> list[str]:
    if isinstance(value, list):
        return value if "O" in value and all(isinstance(each, str) for each in value) else []
    if not isinstance(value, dict):
        return []
    if value.keys() and all(key.isdigit() for key in value) and "O" in value.values():
        return [value[key] for key in sorted(value, key=int)]
    keys = sorted(value, key=lambda key: "ner" not in key)
    return next((names for key in keys if key != "data" and (names := _names(value[key]))), [])


def parsed(text: str, place: str) -> Any:
    """Read JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: is not JSON ({error}); correct the line") from error


def take(record: Any, key: str, kind: type, place: str) -> Any:
    """Read a value of a record, which must be there and have this type."""
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
    """Read a mark, an object with these names or the list of their values."""
    if isinstance(item, list) and len(item) >= len(names):
        item = dict(zip(names, item))
    start, end = (take(item, name, int, place) for name in names[:2])
    return Mark(start, end, take(item, names[2], str, place))
