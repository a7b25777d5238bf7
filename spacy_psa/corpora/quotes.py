"""Quotation marks and spaces: of the Penn Treebank, and as they stand in text.

The treebank writes `` and '' for double quotation marks, and has no spaces. Text has straight (")
or curly (“ ”) marks.
"""

from collections.abc import Sequence
from typing import Literal

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


def text_quotes(words: Sequence[str], tags: Sequence[str], style: str) -> list[str]:
    """Write the quotation marks of the treebank as text has them.

    The tag '' tells a closing single quotation mark from the apostrophe of a possessive.

    Args:
        words: (n,) the words of a sentence of the treebank.
        tags: (n,) their parts of speech; "" for none.
        style: "straight" or "curly".

    Examples:
        >>> text_quotes(["``", "Go", "''", "dogs", "'"], ["``", "VB", "''", "NNS", "POS"], "curly")
        ['“', 'Go', '”', 'dogs', "'"]
    """
    marks = STYLES[style]
    found = []
    for word, tag in zip(words, tags, strict=True):
        apostrophe = word == "'" and tag != "''"
        found.append(word if apostrophe else marks.get(word, word))
    return found


def treebank_quotes(words: Sequence[str], spaces: Sequence[bool] | None = None) -> list[str]:
    """Write double quotation marks as the treebank does, and opening single ones.

    A straight mark opens if there is a space before it and none after it, and closes if it is the
    other way round. Otherwise it opens if no other one is open. A line break counts as a space.
    After a low mark („ or ‚), the next high one closes, as in German.

    Args:
        words: (n,) the words, and the line breaks and other white space between them.
        spaces: (n,) whether a space follows each word; None if that is not known.

    Examples:
        >>> treebank_quotes(["He", "said", ":", '"', "Go", '"', "“", "now", "”"])
        ['He', 'said', ':', '``', 'Go', "''", '``', 'now', "''"]
    """
    found, is_open, low, low_single = [], False, False, False
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
        found.append(word)
    return found


def text_spaces(words: Sequence[str], tags: Sequence[str] | None = None) -> list[bool]:
    """Tell whether a space follows each word in text, by the rules of the treebank's tokens.

    Args:
        words: (n,) the words, with quotation marks of any style.
        tags: (n,) their parts of speech; None if they are not known.

    Examples:
        >>> words = ["``", "Do", "n't", "pay", "$", "5", "(", "yet", ")", ",", "''", "he", "said"]
        >>> spaces = text_spaces(words)
        >>> "".join(word + " " * space for word, space in zip(words, spaces))
        "``Don't pay $5 (yet),'' he said"
    """
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
