"""JSON of tokens with spans: GLiNER's training data, and SpERT's.

    {"tokenized_text": ["Ada", "left"], "ner": [[0, 0, "PER"]]}
    {"tokens": ["Ada", "left"], "entities": [{"type": "PER", "start": 0, "end": 1}]}

The end of a span is its last token in GLiNER's, and the one after it in SpERT's.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from spacy_psa.corpora.json_records import take, take_mark
from spacy_psa.corpora.marked_text import Mark, MarkedText


def accepts(record: Any) -> bool:
    """Tell whether a record has this format."""
    if not isinstance(record, dict):
        return False
    if isinstance(record.get("tokenized_text"), list):
        return isinstance(record.get("ner"), list)
    entities = record.get("entities")
    return (
        isinstance(record.get("tokens"), list)
        and isinstance(entities, list)
        and all(isinstance(each, dict) and "type" in each for each in entities)
    )


def read_texts(records: Iterable[tuple[str, Any]], repairs: Counter[str]) -> Iterator[MarkedText]:
    """Yield the text of each record, with a blank between tokens, and its entities."""
    for place, record in records:
        of_gliner = isinstance(record, dict) and "tokenized_text" in record
        tokens = [
            str(t) for t in take(record, "tokenized_text" if of_gliner else "tokens", list, place)
        ]
        offsets, end = [], -1
        for token in tokens:
            start = end + 1
            end = start + len(token)
            offsets.append((start, end))
        marks = []
        for item in take(record, "ner" if of_gliner else "entities", list, place):
            names = ("start", "end", "label" if of_gliner else "type")
            first, last, label, *_ = take_mark(item, place, names)
            last -= not of_gliner
            inside = 0 <= first <= last < len(tokens)
            edges = (offsets[first][0], offsets[last][1]) if inside else (end + 1, end + 2)
            marks.append(Mark(*edges, label))
        yield MarkedText(place, " ".join(tokens), marks, offsets)
