"""Label Studio's JSON export of named entities, complete (JSON) or short (JSON-MIN).

[{"data": {"text": "Ada left"}, "annotations": [{"result": [
    {"type": "labels", "value": {"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}}]}]}]
[{"text": "Ada left", "label": [{"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}]}]
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy_psa.corpora.json_records import read_records, take
from spacy_psa.corpora.marked_text import Mark, MarkedText
from spacy_psa.errors import InputError

UNLABELLED = "task(s) without annotation, left out"
OTHERS = "further annotation(s) of a task, left out"


def accepts(record: Any) -> bool:
    """Tell whether a record has this format."""
    if not isinstance(record, dict):
        return False
    short = record.get("label")
    if isinstance(record.get("text"), str) and isinstance(short, list) and short:
        return isinstance(short[0], dict) and "labels" in short[0]
    return isinstance(record.get("data"), dict) or "annotation_id" in record


def read_texts(path: Path, repairs: Counter[str]) -> Iterator[MarkedText]:
    """Yield the text of each task with its entities.

    Of several annotations of a task, the one that is marked as the truth is read, or else the
    first that was not skipped. The others, and tasks that nobody has annotated, are left out and
    counted in `repairs`.

    Raises:
        InputError: if a task has another form; it is named by file and number.
    """
    for place, task in read_records(path, repairs):
        if not isinstance(task, dict):
            raise InputError(f"{place}: is not a task of Label Studio; export it again as JSON")
        if isinstance(task.get("data"), dict):
            results = _results(task, repairs)
            text = _text(task["data"], place)
        else:
            results = [{"value": value} for value in task.get("label") or []]
            text = take(task, "text", str, place)
        if results is None:
            repairs[UNLABELLED] += 1
            continue
        values = [result.get("value", {}) for result in results if isinstance(result, dict)]
        marks = [_mark(value, text, place) for value in values if value.get("labels")]
        yield MarkedText(place, text, marks)


def _results(task: dict[str, Any], repairs: Counter[str]) -> list[Any] | None:
    given = task.get("annotations", task.get("completions")) or []
    usable = [each for each in given if isinstance(each, dict) and not each.get("was_cancelled")]
    if not usable:
        return None
    repairs.update({OTHERS: len(usable) - 1} if len(usable) > 1 else {})
    chosen = next((each for each in usable if each.get("ground_truth")), usable[0])
    result: list[Any] = chosen.get("result") or []
    return result


def _text(data: dict[str, Any], place: str) -> str:
    texts = [value for value in data.values() if isinstance(value, str)]
    if isinstance(data.get("text"), str) or len(texts) != 1:
        text: str = take(data, "text", str, place)
        return text
    return texts[0]


def _mark(value: Any, text: str, place: str) -> Mark:
    start, end = (take(value, key, int, place) for key in ("start", "end"))
    label = value["labels"][0]
    quote = value.get("text")
    if isinstance(quote, str) and text[start:end] != quote:
        # A browser counts characters beyond U+FFFF, such as emoji, twice.
        units = text.encode("utf-16-le", "surrogatepass")
        before, inside = units[: 2 * start], units[2 * start : 2 * end]
        if inside == quote.encode("utf-16-le", "surrogatepass"):
            start = len(before.decode("utf-16-le", "surrogatepass"))
            end = start + len(quote)
    return Mark(start, end, str(label), quote if isinstance(quote, str) else None)
