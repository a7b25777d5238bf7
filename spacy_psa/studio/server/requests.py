"""Reads the texts of a request, with clear errors."""

import json
import re
from typing import Any

from fastapi import HTTPException

from spacy_psa.studio.server.settings import Settings

HALF_A_PAIR = "The request has half of a surrogate pair: send whole characters."
SURROGATE = re.compile("[\ud800-\udfff]")
LINES = ("application/x-ndjson", "application/jsonl", "application/jsonlines")


def read_texts(body: bytes, content_type: str, settings: Settings) -> tuple[list[str], bool]:
    """Read the texts of a request.

    Args:
        body: JSON with the key `texts`, or lines of JSON with the key `text`.
        content_type: the type that the request gives.
        settings: the limits.

    Returns:
        The texts, and whether they were lines.

    Raises:
        HTTPException: with the code 4xx, for what is no text, and for too many or too long texts.

    Examples:
        >>> read_texts(b'{"texts": ["Ada left."]}', "application/json", Settings())
        (['Ada left.'], False)
        >>> read_texts(b'{"text": "Ada left."}', "application/x-ndjson", Settings())
        (['Ada left.'], True)
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind in LINES:
        texts = [_of_line(line, i) for i, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    elif kind == "application/json":
        texts = _of_object(_parsed(body, "The body"))
    else:
        raise HTTPException(
            415, f"The type is {kind or 'missing'}: send application/json or application/x-ndjson."
        )
    if len(texts) > settings.max_texts:
        raise HTTPException(
            413, f"There are {len(texts):,} texts, more than {settings.max_texts:,}: send fewer."
        )
    for i, text in enumerate(texts):
        if len(text) > settings.max_chars:
            raise HTTPException(
                413, f"Text {i} has more than {settings.max_chars:,} characters: split it."
            )
        if SURROGATE.search(text):
            raise HTTPException(422, f"Text {i}: {HALF_A_PAIR}")
    return texts, kind in LINES


def _of_object(found: Any) -> list[str]:
    texts = found.get("texts") if isinstance(found, dict) else None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise HTTPException(422, 'The body must be an object {"texts": ["…", …]}.')
    return texts


def _of_line(line: bytes, number: int) -> str:
    found = _parsed(line, f"Line {number}")
    text = found.get("text") if isinstance(found, dict) else None
    if not isinstance(text, str):
        raise HTTPException(422, f'Line {number} must be an object {{"text": "…"}}.')
    return text


def _parsed(part: bytes, what: str) -> Any:
    try:
        return json.loads(part)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"{what} is not JSON: {error}") from None
