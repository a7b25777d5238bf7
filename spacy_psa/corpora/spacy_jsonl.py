"""JSON lines with a text and its entities, as spaCy's `Doc.to_json` and training data have them.

    {"text": "Ada left", "ents": [{"start": 0, "end": 3, "label": "PER"}]}
    {"text": "Ada left", "entities": [[0, 3, "PER"]]}
    ["Ada left", {"entities": [[0, 3, "PER"]]}]

`spacy-psa annotate` also writes the first. `spacy-psa export-annotations` adds the stretches that
nobody has decided ("missing": [[start, end], ...]) and spans that are known to be wrong
("incorrect", as "ents").
Nested spans are `spans["sc"]`, as `Doc.to_json` and `spacy-psa annotate` have them.
Tokens of `Doc.to_json` are kept, with their tags.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from spacy_psa.corpora.json_records import take, take_mark
from spacy_psa.corpora.marked_text import NESTED, MarkedText

KEYS = ("ents", "entities")
OTHERS = f"group(s) of spans other than {NESTED!r}, left out"


def accepts(record: Any) -> bool:
    """Tell whether a record has this format."""
    if isinstance(record, list):
        return len(record) == 2 and isinstance(record[0], str) and isinstance(record[1], dict)
    if not isinstance(record, dict) or "text" not in record:
        return False
    if isinstance(record.get("spans"), dict):
        return True
    items = next((record[key] for key in KEYS if key in record), None)
    return isinstance(items, list) and all(
        "start" in item if isinstance(item, dict) else isinstance(item, list) for item in items
    )


def read_texts(records: Iterable[tuple[str, Any]], repairs: Counter[str]) -> Iterator[MarkedText]:
    """Yield the text of each record with its entities."""
    for place, record in records:
        if isinstance(record, list) and accepts(record):
            record = {"text": record[0], **record[1]}
        text = take(record, "text", str, place)
        key = next((key for key in KEYS if key in record), KEYS[0])
        nested = None
        groups = record.get("spans")
        groups = groups if isinstance(groups, dict) else {}
        if NESTED in groups:
            nested = [take_mark(item, place) for item in take(groups, NESTED, list, place)]
        repairs.update(OTHERS for name, spans in groups.items() if name != NESTED and spans)
        if nested is not None and key not in record:
            marks = nested
        else:
            marks = [take_mark(item, place) for item in take(record, key, list, place)]
        offsets, tags = _tokens(record.get("tokens"), text)
        missing = [_stretch(item, place) for item in record.get("missing") or []]
        wrong = [take_mark(item, place) for item in record.get("incorrect") or []]
        yield MarkedText(
            place, text, marks, offsets, tags, missing=missing, wrong=wrong, nested=nested
        )


def _stretch(item: Any, place: str) -> tuple[int, int]:
    record = dict(zip(("start", "end"), item)) if isinstance(item, list) else item
    return take(record, "start", int, place), take(record, "end", int, place)


def _tokens(tokens: Any, text: str) -> tuple[list[tuple[int, int]] | None, list[str] | None]:
    """Read the tokens of `Doc.to_json`; None if they are missing or lie elsewhere."""
    if not isinstance(tokens, list) or not tokens:
        return None, None
    try:
        offsets = [(int(token["start"]), int(token["end"])) for token in tokens]
    except (KeyError, TypeError, ValueError):
        return None, None
    edges = [0, *(edge for pair in offsets for edge in pair), len(text)]
    if edges != sorted(edges) or any(start == end for start, end in offsets):
        return None, None
    tags = [token.get("tag", "") for token in tokens]
    return offsets, tags if all(isinstance(tag, str) and tag for tag in tags) else None
