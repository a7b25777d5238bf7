"""Dataturks' JSON lines, also known from data sets of résumés; the end of a point is included.

{"content": "Ada left", "annotation": [
    {"label": ["PER"], "points": [{"start": 0, "end": 2, "text": "Ada"}]}]}
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from spacy_psa.corpora.json_records import take
from spacy_psa.corpora.marked_text import Mark, MarkedText


def accepts(record: Any) -> bool:
    """Tell whether a record has this format."""
    return isinstance(record, dict) and "content" in record and "annotation" in record


def read_texts(records: Iterable[tuple[str, Any]], repairs: Counter[str]) -> Iterator[MarkedText]:
    """Yield the text of each record with its entities."""
    for place, record in records:
        text = take(record, "content", str, place)
        marks = []
        for item in record.get("annotation") or []:
            labels = item.get("label") if isinstance(item, dict) else None
            labels = labels if isinstance(labels, list) else [labels]
            for point in take(item, "points", list, place):
                start, end = (take(point, key, int, place) for key in ("start", "end"))
                quote = point.get("text") if isinstance(point.get("text"), str) else None
                marks += [Mark(start, end + 1, str(label or ""), quote) for label in labels]
        yield MarkedText(place, text, marks)
