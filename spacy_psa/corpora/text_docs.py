"""Docs of a treebank with the quotation marks and spaces of text."""

from collections.abc import Iterable, Iterator
from typing import Any

from spacy.tokens import Doc, Span

from spacy_psa.corpora.quotes import Quotes, text_quotes, text_spaces

COPIED: Any = ["TAG", "SENT_START", "ENT_IOB", "ENT_TYPE"]
MIXED = ("treebank", "straight", "curly")


def as_text(docs: Iterable[Doc], quotes: Quotes, spaces: bool) -> Iterator[Doc]:
    """Write docs of a treebank with the quotation marks of text, and with its spaces.

    Args:
        docs: the docs.
        quotes: "treebank" keeps the marks, "straight" and "curly" change them. "mixed" takes the
            three styles in turn, for the docs that have marks.
        spaces: whether to find out the spaces of docs that do not know them.

    Examples:
        >>> from spacy.vocab import Vocab
        >>> doc = Doc(Vocab(), words=["``", "Go", "!", "''"], tags=["``", "VB", ".", "''"])
        >>> [doc.text for doc in as_text([doc], "straight", spaces=True)]
        ['"Go!"']
    """
    turn = 0
    for doc in docs:
        style: str = quotes
        has_marks = any(token.text in ("``", "''", "`") for token in doc)
        if quotes == "mixed":
            style = MIXED[turn % len(MIXED)]
            turn += has_marks
        if (style != "treebank" and has_marks) or (spaces and doc.has_unknown_spaces):
            doc = _rewritten(doc, style, spaces)
        yield doc


def _rewritten(doc: Doc, style: str, spaces: bool) -> Doc:
    words, tags = [token.text for token in doc], [token.tag_ for token in doc]
    if style != "treebank":
        words = text_quotes(words, tags, style)
    known = None
    if not doc.has_unknown_spaces:
        known = [bool(token.whitespace_) for token in doc]
    elif spaces:
        known = text_spaces(words, tags)
    found = Doc(doc.vocab, words=words, spaces=known, user_data=dict(doc.user_data))
    array: Any = doc.to_array(COPIED)
    found.from_array(COPIED, array)
    for key, group in doc.spans.items():
        found.spans[key] = [Span(found, s.start, s.end, s.label) for s in group]
    return found
