"""Prodigy's JSON lines: a text with `spans`, its tokens, and the annotator's answer."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from spacy_psa.corpora.json_records import take, take_mark
from spacy_psa.corpora.marked_text import MarkedText

LEFT_OUT = "record(s) that were rejected or ignored, left out"


def accepts(record: Any) -> bool:
    """Tell whether a record has this format."""
    own = {"answer", "spans", "_input_hash", "_task_hash"}
    if not isinstance(record, dict) or isinstance(record.get("spans"), dict):
        return False  # spans by group are those of spaCy
    return "text" in record and bool(own & record.keys())


def read_texts(records: Iterable[tuple[str, Any]], repairs: Counter[str]) -> Iterator[MarkedText]:
    """Yield the text of each accepted record with its spans.

    Where one span at a time was asked for (`ner.teach`, the view "ner"), nothing is known of the
    other tokens. Records of other answers are left out and counted in `repairs`.

    Raises:
        InputError: if a record has another form; it is named by file and line.
    """
    for place, record in records:
        text = take(record, "text", str, place)
        if record.get("answer", "accept") != "accept":
            repairs[LEFT_OUT] += 1
            continue
        marks = [take_mark(span, place) for span in record.get("spans") or []]
        offsets = None
        if record.get("tokens"):
            tokens = take(record, "tokens", list, place)
            offsets = [
                (take(token, "start", int, place), take(token, "end", int, place))
                for token in tokens
            ]
        binary = record.get("_view_id") == "ner"
        yield MarkedText(place, text, marks, offsets, complete=not binary)
