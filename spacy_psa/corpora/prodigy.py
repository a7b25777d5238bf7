"""Prodigy's JSON lines: a text with `spans`, its tokens, and the annotator's answer."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from spacy_psa.corpora.json_records import take, take_mark
from spacy_psa.corpora.marked_text import Mark, MarkedText

LEFT_OUT = "record(s) that were rejected or ignored, left out"
CONTRADICTORY = "span(s) that were both accepted and rejected, left out"


def accepts(record: Any) -> bool:
    """Tell whether a record has this format."""
    own = {"answer", "spans", "_input_hash", "_task_hash"}
    if not isinstance(record, dict) or isinstance(record.get("spans"), dict):
        return False  # spans by group are those of spaCy
    return "text" in record and bool(own & record.keys())


def read_texts(records: Iterable[tuple[str, Any]], repairs: Counter[str]) -> Iterator[MarkedText]:
    """Yield the text of each accepted record with its spans.

    A record that asks about one span (`ner.teach`, the view "ner") decides about this span, also if
    it is rejected, and tells nothing of the other tokens; see `joined`. All other records that are
    not accepted are left out and counted in `repairs`.
    """
    for place, record in records:
        text = take(record, "text", str, place)
        answer = record.get("answer", "accept")
        decides = record.get("_is_binary") is True or record.get("_view_id") == "ner"
        marks = [take_mark(span, place)._replace(place=place) for span in record.get("spans") or []]
        rejects = decides and answer == "reject" and len(marks) == 1
        if answer != "accept" and not rejects:
            repairs[LEFT_OUT] += 1
            continue
        offsets = None
        if record.get("tokens"):
            tokens = take(record, "tokens", list, place)
            offsets = [
                (take(token, "start", int, place), take(token, "end", int, place))
                for token in tokens
            ]
        right, wrong = ([], marks) if rejects else (marks, [])
        yield MarkedText(place, text, right, offsets, complete=not decides, wrong=wrong)


def joined(texts: Iterable[MarkedText], repairs: Counter[str]) -> Iterator[MarkedText]:
    """Yield texts as they are, and at the end each text about whose spans there are decisions.

    A span that was accepted and rejected is left out, and counted in `repairs`.
    """
    decided: dict[str, MarkedText] = {}
    for text in texts:
        if text.complete:
            yield text
            continue
        first = decided.setdefault(text.text, text)
        if first is not text:
            first.marks.extend(text.marks)
            first.wrong.extend(text.wrong)
    for text in decided.values():
        right, wrong = _distinct(text.marks), _distinct(text.wrong)
        both = right.keys() & wrong.keys()
        repairs.update({CONTRADICTORY: len(both)} if both else {})
        yield replace(
            text,
            marks=[mark for span, mark in right.items() if span not in both],
            wrong=[mark for span, mark in wrong.items() if span not in both],
        )


def _distinct(marks: Iterable[Mark]) -> dict[tuple[int, int, str], Mark]:
    return {(mark.start, mark.end, mark.label): mark for mark in marks}
