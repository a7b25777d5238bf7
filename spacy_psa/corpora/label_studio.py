"""Label Studio's JSON of named entities, complete (JSON) or short (JSON-MIN).

[{"data": {"text": "Ada left"}, "annotations": [{"result": [
    {"type": "labels", "value": {"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}}]}]}]
[{"text": "Ada left", "label": [{"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}]}]

In JSON-MIN, `label` is the name of the labels in the project. Tasks of HTML, images and so on are
refused.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from spacy_psa.corpora.json_records import take
from spacy_psa.corpora.marked_text import Mark, MarkedText, utf16_offsets
from spacy_psa.errors import InputError

UNLABELLED = "task(s) without annotation, left out"
OTHERS = "further annotation(s) of a task, left out"
RESULTS = "result(s) that mark no text, such as a choice or a relation, left out"
FIXED = {"from_name": "label", "to_name": "text", "type": "labels"}
"""The names in Label Studio's own template for named entities."""
Scored = tuple[int, int, str, float | None]
"""The characters of a span, its label, and its probability if it is known."""
LINK = re.compile(r"(/data/|[a-z0-9]+://)\S+")


def accepts(record: Any) -> bool:
    """Tell whether a record has this format."""
    if not isinstance(record, dict):
        return False
    short = any(map(_kind, _regions(record))) or "annotation_id" in record
    return short or isinstance(record.get("data"), dict)


def read_texts(records: Iterable[tuple[str, Any]], repairs: Counter[str]) -> Iterator[MarkedText]:
    """Yield the text of each task with its entities; a region with several labels has several.

    Of several annotations of a task, the one that is marked as the truth is read, or else the
    first that was not skipped. The others, and tasks that nobody has annotated, are left out and
    counted in `repairs`.
    """
    for place, task in records:
        if not isinstance(task, dict):
            raise InputError(f"{place}: is not a task of Label Studio; export it again as JSON")
        if isinstance(task.get("data"), dict):
            values = _results(task, repairs)
            text = _text(task["data"], place)
        else:
            values = _regions(task)
            text = take(task, "text", str, place)
        if values is None:
            repairs[UNLABELLED] += 1
            continue
        marks = [mark for value in values for mark in _marks(value, text, place, repairs)]
        if LINK.fullmatch(text.strip()):
            raise InputError(f"{place}: has the link {text!r} instead of a text; export texts")
        yield MarkedText(place, text, marks)


def regions(text: str, spans: Iterable[Scored], name: str = "") -> list[dict[str, Any]]:
    """Make the `result` of an annotation or a prediction; `name` begins the ids of its regions."""
    units = utf16_offsets(text)
    return [
        {
            "id": f"{name}{i}",
            **FIXED,
            "value": {
                "start": units[start], "end": units[end], "text": text[start:end], "labels": [label]
            },
        }
        | ({} if score is None else {"score": score})
        for i, (start, end, label, score) in enumerate(spans)
    ]  # fmt: skip


def _regions(task: dict[str, Any]) -> list[Any]:
    """Return the regions of a task of JSON-MIN, under the names of all controls.

    Ratings and several choices of a control are also results; one choice looks like other data.
    """
    lists = (value for value in task.values() if isinstance(value, list))
    choices = (value for value in task.values() if isinstance(value, dict) and "choices" in value)
    return [*(item for value in lists for item in value if isinstance(item, dict)), *choices]


def _is_stretch(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(edge), int) for edge in ("start", "end")
    )


def _kind(value: Any) -> str | None:
    """Return the name of the labels of a region; only `labels` are those of a text."""
    keys = value if isinstance(value, dict) else ()
    return next((key for key in keys if key.endswith("labels")), None)


def _results(task: dict[str, Any], repairs: Counter[str]) -> list[Any] | None:
    """Return the values of the chosen annotation; None if there is none."""
    given = task.get("annotations", task.get("completions")) or []
    usable = [each for each in given if isinstance(each, dict) and not each.get("was_cancelled")]
    if not usable:
        return None
    repairs.update({OTHERS: len(usable) - 1} if len(usable) > 1 else {})
    chosen = next((each for each in usable if each.get("ground_truth")), usable[0])
    results = chosen.get("result") or []
    return [result.get("value") if isinstance(result, dict) else None for result in results]


def _text(data: dict[str, Any], place: str) -> str:
    texts = [value for value in data.values() if isinstance(value, str)]
    if isinstance(data.get("text"), str) or len(texts) != 1:
        text: str = take(data, "text", str, place)
        return text
    return texts[0]


def _marks(value: Any, text: str, place: str, repairs: Counter[str]) -> Iterator[Mark]:
    kind = _kind(value)
    if kind is None and not _is_stretch(value):
        repairs[RESULTS] += 1
        return
    if kind not in (None, "labels") or isinstance(value.get("start"), str):
        raise InputError(
            f"{place}: has {kind} of HTML, images or the like; only labels of plain text are read, "
            "so export or convert the texts without mark-up"
        )
    start, end = (take(value, key, int, place) for key in ("start", "end"))
    quote = value.get("text")
    if isinstance(quote, str) and text[start:end] != quote:
        # A browser counts characters beyond U+FFFF, such as emoji, twice.
        units = text.encode("utf-16-le", "surrogatepass")
        before, inside = units[: 2 * start], units[2 * start : 2 * end]
        if inside == quote.encode("utf-16-le", "surrogatepass"):
            start = len(before.decode("utf-16-le", "surrogatepass"))
            end = start + len(quote)
    for label in value.get("labels") or [""]:
        yield Mark(start, end, str(label), quote if isinstance(quote, str) else None)
