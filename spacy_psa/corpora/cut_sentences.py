"""Cuts documents of several sentences into one `Doc` for each, and no entity with them."""

from collections.abc import Iterator
from itertools import pairwise

from spacy.pipeline import Sentencizer
from spacy.tokens import Doc, Span

KEPT_WHOLE = "sentence bound(s) inside an entity, left out"


def cut_sentences(doc: Doc, counts: dict[str, int]) -> Iterator[Doc]:
    """Yield one `Doc` for each sentence of a document.

    Bounds that the doc has are kept. A doc without bounds is cut at punctuation, as spaCy's
    `sentencizer` does, and at line ends; tokens of blanks alone are left out there. A bound inside
    an entity or a span of `doc.spans` is no bound, and is counted.

    Args:
        doc: the document, which does not change.
        counts: counts the bounds that are left out.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada left. Bob\\nstayed.")
        >>> doc.set_ents([Span(doc, 0, 1, "PER"), Span(doc, 3, 4, "PER")])
        >>> [(part.text.strip(), part.ents) for part in cut_sentences(doc, {})]
        [('Ada left.', (Ada,)), ('Bob', (Bob,)), ('stayed.', ())]
    """
    if not len(doc):
        return
    if len(doc) > 1 and doc.has_annotation("SENT_START"):
        starts = [i for i in range(1, len(doc)) if doc[i].is_sent_start]
        blanks: set[int] = set()
    else:
        starts, blanks = _by_rules(doc)
    spans = [*doc.ents, *(span for group in doc.spans.values() for span in group)]
    inner = {i for span in spans for i in range(span.start + 1, span.end)}
    cut = [i for i in starts if i in inner]
    if cut:
        counts[KEPT_WHOLE] = counts.get(KEPT_WHOLE, 0) + len(cut)
    bounds = [0, *(i for i in starts if i not in inner), len(doc)]
    if len(bounds) == 2 and not blanks:
        yield _whole(doc)
        return
    for start, end in pairwise(bounds):
        while start < end and start in blanks - inner:
            start += 1
        while start < end and end - 1 in blanks - inner:
            end -= 1
        if start < end:
            yield _piece(doc, start, end)


def _by_rules(doc: Doc) -> tuple[list[int], set[int]]:
    (guesses,) = Sentencizer().predict([doc])
    blanks = {token.i for token in doc if token.is_space}
    after_line = {i + 1 for i in blanks if "\n" in doc[i].text}
    starts = [i for i in range(1, len(doc)) if guesses[i] or i in after_line]
    return starts, blanks


def _whole(doc: Doc) -> Doc:
    if not doc.has_annotation("SENT_START"):
        for token in doc:
            token.is_sent_start = token.i == 0
    return doc


def _piece(doc: Doc, start: int, end: int) -> Doc:
    piece = doc[start:end].as_doc()
    for token in piece:
        token.is_sent_start = token.i == 0
    for name, group in doc.spans.items():
        inside = (span for span in group if start <= span.start and span.end <= end)
        piece.spans[name] = [
            Span(piece, span.start - start, span.end - start, span.label) for span in inside
        ]
    return piece
