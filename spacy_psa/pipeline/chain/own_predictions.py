"""What a component has predicted itself: no evidence to it when it is asked again.

It is noted in the doc's user data, in the form of custom attributes of spans and tokens,
which spaCy moves along into parts and unions of docs. Where user data is not kept, as in a
DocBin without `store_user_data`, predictions cannot be told from evidence.
"""

from collections.abc import Iterable

from spacy.tokens import Doc, Span, Token

Key = tuple[str, str, int, int | None]  # as spaCy's own for custom attributes


def is_own(name: str, item: Span | Token) -> bool:
    """Whether the component of this name has predicted a span with its label, or the tag of
    a token, the last time it annotated the doc."""
    return _key(name, item) in item.doc.user_data


def set_own(name: str, doc: Doc, items: Iterable[Span | Token]) -> None:
    """Note what the component of this name has predicted for a doc, and only that."""
    begin = f"{name}:predicted:"
    for key in list(doc.user_data):
        if isinstance(key, tuple) and len(key) == 4 and str(key[1]).startswith(begin):
            del doc.user_data[key]
    for item in items:
        doc.user_data[_key(name, item)] = True  # type: ignore[index]


def _key(name: str, item: Span | Token) -> Key:
    if isinstance(item, Token):
        return ("._.", f"{name}:predicted:{item.tag_}", item.idx, None)
    return ("._.", f"{name}:predicted:{item.label_}", item.start_char, item.end_char)
