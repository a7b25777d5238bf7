"""The annotation of a document as plain data, which needs neither pipeline nor vocabulary."""

import json
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, SpanGroup

ANNOTATION = ("ents", "spans", "tokens")
"""The keys of a row that have the annotation."""


def annotation(doc: "Doc", tokens: bool = False) -> dict[str, Any]:
    """Return the annotation of a document.

    The row has `ents`, a list of `{start, end, label, text}` with character offsets, where `end` is
    excluded; `spans`, if the document has span groups, which has such a list for each group,
    each span with its `score` if the group has scores; and `tokens`, a list of
    `{start, end, tag}`, if asked for or if the document has tags.

    Examples:
        >>> from spacy.tokens import Doc
        >>> from spacy.vocab import Vocab
        >>> annotation(Doc(Vocab(), words=["Ada", "left"], ents=["B-PER", "O"]))
        {'ents': [{'start': 0, 'end': 3, 'label': 'PER', 'text': 'Ada'}]}
    """
    from spacy_psa.pipeline.written import spans_now

    row: dict[str, Any] = {"ents": [_span(ent) for ent in doc.ents]}
    spans = {key: _group(spans_now(doc, key)) for key in list(doc.spans)}
    if spans:
        row["spans"] = spans
    tagged = len(doc) > 0 and doc.has_annotation("TAG")
    if tokens or tagged:
        row["tokens"] = [
            {"start": token.idx, "end": token.idx + len(token)}
            | ({"tag": token.tag_} if tagged else {})
            for token in doc
        ]
    return row


def json_row(doc: "Doc", tokens: bool, text_key: str) -> tuple[dict[str, Any], list[str]]:
    """Return the row of a document that was read from a JSON line: its other keys come first.

    The second value has the keys of the input that the row replaces.
    """
    meta = doc.user_data.get("meta", {})
    replaced = [key for key in meta if key in (text_key, *ANNOTATION)]
    others = {key: value for key, value in meta.items() if key not in replaced}
    return {**others, text_key: doc.text, **annotation(doc, tokens)}, replaced


def json_line(row: dict[str, Any], unknown: Callable[[Any], Any] | None = None) -> bytes:
    """Write a row as a JSON line; `unknown` replaces a value that JSON does not know, as a date.

    NaN and infinities, which JSON does not know either, become null.
    """
    dumps = partial(json.dumps, ensure_ascii=False, default=unknown, allow_nan=False)
    try:
        line = dumps(row)
    except ValueError:
        line = dumps(_finite(row))
    # Half of a surrogate pair is not valid UTF-8. JSON escapes it in the same form as Python.
    return f"{line}\n".encode("utf8", "backslashreplace")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def docbin_bytes(doc: "Doc") -> bytes:
    """Encode a document as a `.spacy` file of its own."""
    from spacy.tokens import DocBin

    from spacy_psa.pipeline.written import spans_now

    for key in list(doc.spans):
        spans_now(doc, key)
    return DocBin(docs=[doc], store_user_data=True).to_bytes()


def _span(span: "Span") -> dict[str, Any]:
    return {"start": span.start_char, "end": span.end_char, "label": span.label_, "text": span.text}


def _group(group: "SpanGroup") -> list[dict[str, Any]]:
    from spacy_psa.pipeline.written import group_scores

    spans = [_span(span) for span in group]
    scores = group_scores(group)
    if scores is not None:
        for span, score in zip(spans, scores, strict=True):
            span["score"] = float(score)
    return spans
