"""Notes of what a parser has predicted, so that no parser takes it for evidence later.

There is a note for each sentence in the user data of the doc, in the form of a custom attribute of
a span. spaCy keeps these when it joins docs, and so the confidences are kept, too. If user data is
lost, as in a DocBin without `store_user_data`, predictions cannot be told from evidence.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span, Token

Own = tuple[int, int, str]
"""The first character of a constituent, the character after its last one, and its label."""


class Constituent(NamedTuple):
    """A constituent over the tokens of a doc.

    Examples:
        >>> Constituent(0, 2, "NP", confidence=0.9).label
        'NP'
    """

    start: int
    """The first token."""
    end: int
    """The token after the last one."""
    label: str
    confidence: float
    """The posterior probability; 0 if it was not asked for, or the sentence was not parsed."""


class Parse(NamedTuple):
    """The prediction for a doc.

    Examples:
        >>> parse = Parse([Constituent(0, 2, "NP", confidence=0.9)], tags={0: "DT", 1: "NN"})
        >>> parse.tags[parse.constituents[0].start]
        'DT'
    """

    constituents: list[Constituent]
    """The constituents of the best trees of its sentences, in preorder."""
    tags: dict[int, str]
    """The tag of each word, by the number of its token; empty if there is no tag head."""


def note_predictions(
    doc: Doc,
    key: str,
    sentences: Iterable[tuple[int, int]],
    constituents: Iterable[Constituent],
    tags: dict[int, str],
    confidence: bool,
) -> None:
    """Note what a parser has predicted for a doc, in place of earlier notes.

    Args:
        doc: the doc.
        key: the span group of the parser.
        sentences: the first token of each sentence, and the token after its last one.
        constituents: the predicted constituents, in preorder.
        tags: the predicted tags, by the number of their token.
        confidence: whether to note confidences, too.
    """
    for place in [place for place, _ in _notes(doc, key)]:
        del doc.user_data[place]
    starts = [token.idx for token in doc]
    ends = [start + len(token) for start, token in zip(starts, doc)]
    waiting = list(reversed(list(constituents)))
    for first, last in sentences:
        if first == last:
            continue
        begin = starts[first]
        rows: list[list[Any]] = []
        while waiting and waiting[-1].start < last:
            start, end, label, score = waiting.pop()
            row = [starts[start] - begin, ends[end - 1] - begin, label]
            rows.append([*row, score] if confidence else row)
        own_tags = {str(starts[i] - begin): tags[i] for i in range(first, last) if i in tags}
        place = ("._.", f"{key}:predicted", begin, ends[last - 1])
        doc.user_data[place] = {"constituents": rows, "tags": own_tags}  # type: ignore[index]


def predicted_constituents(doc: Doc, key: str) -> set[Own]:
    """List the constituents on a doc that a parser predicted.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> note_predictions(doc, "trees", [(0, 3)], [Constituent(1, 3, "VP", 0.0)], {}, False)
        >>> predicted_constituents(doc, "trees")
        {(4, 11, 'VP')}
    """
    return {
        (begin + row[0], begin + row[1], row[2])
        for (_, _, begin, _), note in _notes(doc, key)
        for row in note["constituents"]
    }


def predicted_tags(doc: Doc, key: str) -> dict[int, str]:
    """Give the tags on a doc that a parser predicted, by the first character of their token."""
    return {
        begin + int(start): tag
        for (_, _, begin, _), note in _notes(doc, key)
        for start, tag in note["tags"].items()
    }


def predicted_confidence(constituent: Span, key: str) -> float | None:
    """Find the confidence of a constituent in the notes, where its group has no scores.

    Doc.from_docs joins span groups without their scores.
    """
    wanted = constituent.start_char, constituent.end_char, constituent.label_
    for (_, _, begin, end), note in _notes(constituent.doc, key):
        if begin <= wanted[0] < end:
            for start, last, label, *score in note["constituents"]:
                if (begin + start, begin + last, label) == wanted and score:
                    return float(score[0])
    return None


def is_own_tag(token: Token, own: dict[int, str]) -> bool:
    """Tell whether the tag of a token is among the `predicted_tags`."""
    return own.get(token.idx) == token.tag_


def _notes(doc: Doc, key: str) -> Iterator[tuple[Any, Any]]:
    name = f"{key}:predicted"
    for place, note in doc.user_data.items():
        if isinstance(place, tuple) and len(place) == 4 and place[1] == name:
            yield place, note
