"""doccano's JSON lines: a text, and labels as [start, end, label] or as entities with offsets."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from spacy_psa.corpora.json_records import take, take_mark
from spacy_psa.corpora.marked_text import MarkedText
from spacy_psa.errors import InputError

TEXT, LABELS = ("text", "data"), ("label", "labels", "entities")
OFFSETS = ("start_offset", "end_offset", "label")


def accepts(record: Any) -> bool:
    """Tell whether a record may have this format; an empty list may also be that of spaCy."""
    if not isinstance(record, dict) or not isinstance(_first(record, TEXT), str):
        return False
    labels = _first(record, LABELS)
    entities = "label" not in record and "labels" not in record
    return isinstance(labels, list) and all(
        OFFSETS[0] in item if isinstance(item, dict) else not entities for item in labels
    )


def read_texts(records: Iterable[tuple[str, Any]], repairs: Counter[str]) -> Iterator[MarkedText]:
    """Yield the text of each record with its labels."""
    for place, record in records:
        if not isinstance(record, dict):
            raise InputError(f"{place}: is not an object with a text; export it again")
        text = take(record, "data" if "text" not in record else "text", str, place)
        key = next((key for key in LABELS if key in record), LABELS[0])
        marks = [take_mark(item, place, OFFSETS) for item in take(record, key, list, place)]
        yield MarkedText(place, text, marks)


def _first(record: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((record[key] for key in keys if key in record), None)
