"""Quotation marks and spaces: from the Penn Treebank to text and back.

The treebank writes `` and '' for double quotation marks, and has no spaces. Text has straight (")
or curly (“ ”) marks.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from spacy.tokens import Doc, Span, SpanGroup

from spacy_psa.sentences import words_and_spaces

Quotes = Literal["treebank", "straight", "curly", "mixed"]

STYLES = {
    "straight": {"``": '"', "''": '"', "`": "'"},
    "curly": {"``": "“", "''": "”", "`": "‘", "'": "’"},
}
OPENING = {"``", "“", "„", "`", "‘", "(", "[", "{", "$", "#", "£", "US$", "C$", "HK$", "A$"}
CLOSING = {"''", "”", "’", ")", "]", "}", ",", ".", ";", ":", "?", "!", "%", "..."}
CLITICS = {"'s", "'re", "'ve", "'ll", "'d", "'m", "n't", "'", "’s", "’re", "’ve", "’ll", "’d", "’m"}
PARTS = {"gon", "wan", "got", "can", "gim", "lem"}
"""The first parts of gonna, wanna, gotta, cannot, gimme and lemme, before na, ta, not and me."""
RESTS = {"na", "ta", "not", "me"}
COPIED: Any = [
    "TAG", "POS", "MORPH", "LEMMA", "ENT_IOB", "ENT_TYPE", "ENT_KB_ID", "ENT_ID",
]  # fmt: skip
MIXED = ("treebank", "straight", "curly")


def text_quotes(words: Sequence[str], tags: Sequence[str], style: str) -> list[str]:
    """Write the quotation marks of a treebank sentence in the style "straight" or "curly".

    The tag '' distinguishes a closing single quotation mark from the apostrophe of a possessive;
    the tag of a word without one is "".
    """
    marks = STYLES[style]
    return [
        word if word == "'" and tag != "''" else marks.get(word, word)
        for word, tag in zip(words, tags, strict=True)
    ]


def treebank_quotes(words: Sequence[str], spaces: Sequence[bool] | None = None) -> list[str]:
    """Write double quotation marks as the treebank does, and opening single ones.

    A straight mark opens if there is a space before it and none after it, and closes if it is the
    other way round. Otherwise it opens if no other one is open. A line break counts as a space.
    After a low mark („ or ‚), the next high one closes, as in German.

    The n words include the line breaks and other white space between them; `spaces` (n,) has
    whether a space follows each, if that is known.
    """
    written, is_open, low, low_single = [], False, False, False
    for i, word in enumerate(words):
        if word in ("“", "”") and low:
            low, word = False, "''"
        elif word == "‘" and low_single:
            low_single, word = False, "'"
        elif word == '"':
            last, following = words[i - 1 : i], words[i + 1 : i + 2]
            before = not last or last[0].isspace() or last[0] in "([{<"
            after = not following or following[0].isspace()
            if spaces is not None:
                before, after = before or spaces[i - 1], after or spaces[i]
            opens = not is_open if spaces is None or before == after else before
            word = "``" if opens else "''"
        else:
            low, low_single = low or word == "„", low_single or word == "‚"
            word = {"“": "``", "„": "``", "”": "''", "‘": "`"}.get(word, word)
        is_open = word == "``" or (is_open and word != "''")
        written.append(word)
    return written


def text_spaces(words: Sequence[str], tags: Sequence[str] | None = None) -> list[bool]:
    """Tell whether a space follows each word in text, by the rules of the treebank's tokens."""
    known = ["" for _ in words] if tags is None else tags
    spaces, is_open = [], False
    for word, tag, after, after_tag in zip(words, known, [*words[1:], ""], [*known[1:], ""]):
        opens = word in OPENING or (word == '"' and not is_open) or (word == "'" and tag == "``")
        if word == '"':
            is_open = not is_open
        closes = after in CLOSING or (after == '"' and is_open) or after.lower() in CLITICS
        if after == "'" and after_tag == "``":
            closes = False
        joined = word.lower() in PARTS and after.lower() in RESTS
        joined = joined or "HYPH" in (tag, after_tag)  # OntoNotes splits "less - established"
        spaces.append(not (opens or closes or joined))
    if spaces:
        spaces[-1] = False
    return spaces


def as_text(docs: Iterable[Doc], quotes: Quotes, spaces: bool) -> Iterator[Doc]:
    """Write docs of a treebank with the quotation marks of text, and with its spaces.

    "treebank" keeps the marks, "straight" and "curly" change them. "mixed" uses the three styles in
    turn, for the docs that have marks. With `spaces`, those of docs that do not know them are found
    out.
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
    words, known = words_and_spaces(doc)
    tags = [token.tag_ for token in doc]
    if style != "treebank":
        words = text_quotes(words, tags, style)
    if known is None and spaces:
        known = text_spaces(words, tags)
    text = Doc(doc.vocab, words=words, spaces=known, user_data=dict(doc.user_data))
    attributes = [*COPIED, *(["HEAD", "DEP"] if doc.has_annotation("DEP") else ["SENT_START"])]
    array: Any = doc.to_array(attributes)
    text.from_array(attributes, array)
    for key, group in doc.spans.items():
        spans = [Span(text, s.start, s.end, s.label, kb_id=s.kb_id, span_id=s.id) for s in group]
        text.spans[key] = SpanGroup(text, name=group.name, attrs=dict(group.attrs), spans=spans)
    text.cats = dict(doc.cats)
    return text
