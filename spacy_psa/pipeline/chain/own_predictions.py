"""Notes of what a component has predicted, so that it does not take this for evidence later.

The notes are in the user data of the doc, in the form of custom attributes of spans and tokens;
spaCy keeps these when it splits and joins docs. If user data is lost, as in a DocBin without
`store_user_data`, a component cannot tell its predictions from evidence.
"""

from collections.abc import Iterable
from typing import Any

from spacy.tokens import Doc, Span, Token

Key = tuple[str, str, int, int | None]  # as spaCy's keys of custom attributes


def is_own(name: str, item: Span | Token) -> bool:
    """Whether a component predicted this when it last annotated the doc.

    Args:
        name: the name of the component.
        item: a span, for the prediction of the span with its label; or a token, for the prediction
            of its tag.
    """
    return _key(name, item) in item.doc.user_data


def set_own(name: str, doc: Doc, items: Iterable[Span | Token]) -> None:
    """Note what a component has predicted for a doc, in place of its earlier notes.

    Args:
        name: the name of the component.
        doc: the doc.
        items: the predicted spans, or the tokens with predicted tags.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> ada, bob = Span(doc, 0, 1, "PER"), Span(doc, 2, 3, "PER")
        >>> set_own("ner", doc, [ada])
        >>> is_own("ner", ada), is_own("ner", bob)
        (True, False)
    """
    begin = f"{name}:predicted:"
    notes: Any = doc.user_data
    for key in list(notes):
        if isinstance(key, tuple) and len(key) == 4 and str(key[1]).startswith(begin):
            del notes[key]
    for item in items:
        notes[_key(name, item)] = True


def _key(name: str, item: Span | Token) -> Key:
    if isinstance(item, Token):
        return ("._.", f"{name}:predicted:{item.tag_}", item.idx, None)
    return ("._.", f"{name}:predicted:{item.label_}", item.start_char, item.end_char)
