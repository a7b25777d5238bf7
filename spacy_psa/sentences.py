"""Sentence boundaries, and the sentences of docs as docs of their own."""

from collections.abc import Iterable
from functools import cached_property

from spacy.tokens import Doc

Bounds = list[tuple[int, int]]
"""The first token of each sentence and the one after its last."""

# The token attributes that embedders read, beside the word.
EMBEDDED: list[int | str] = ["NORM", "TAG", "POS", "MORPH", "LEMMA"]


class Sentences(list[Doc]):
    """Docs that are one sentence each, so that no model needs to look for boundaries.

    What `split_sentences` gives.
    """

    def chosen(self, places: Iterable[int]) -> "Sentences":
        """Those at some places, in that order."""
        return Sentences(self[i] for i in places)


class SplitDocs:
    """Docs with their sentences, which are looked for once.

    docs: as they are. bounds: the `sentence_bounds` of each doc. sizes: the tokens of each
    sentence, one doc after the other.
    """

    def __init__(self, docs: Iterable[Doc]):
        self.docs = list(docs)
        self.bounds = [sentence_bounds(doc) for doc in self.docs]
        self.sizes = [end - start for bounds in self.bounds for start, end in bounds]

    @cached_property
    def sentences(self) -> Sentences:
        """The sentences as docs of their own, one doc's after the other's."""
        return split_sentences(self.docs, self.bounds)


def sentence_bounds(doc: Doc) -> Bounds:
    """Where the sentences of a doc begin and end.

    A doc without sentence boundaries, or without tokens, is one sentence.
    """
    # To spaCy a doc without tokens has every annotation, and no sentence.
    if len(doc) and doc.has_annotation("SENT_START"):
        return [(sentence.start, sentence.end) for sentence in doc.sents]
    return [(0, len(doc))]


def split_sentences(docs: Iterable[Doc], bounds: Iterable[Bounds] | None = None) -> Sentences:
    """The sentences of docs, in order, with the token attributes that embedders read.

    A doc of one sentence is taken as it is.

    bounds: the `sentence_bounds` of each doc, where they are known.
    """
    if isinstance(docs, Sentences):
        return docs
    docs = list(docs)
    found = Sentences()
    for doc, own in zip(docs, map(sentence_bounds, docs) if bounds is None else bounds):
        if len(own) == 1:
            found.append(doc)
        else:
            found += _split(doc, own)
    return found


def _split(doc: Doc, bounds: Bounds) -> list[Doc]:
    # Not spans, which spaCy's own embedders do not take, nor Span.as_doc, which is slow.
    words = [token.text for token in doc]
    spaces = [bool(token.whitespace_) for token in doc]
    attributes = doc.to_array(EMBEDDED)
    parts = []
    for start, end in bounds:
        part = Doc(doc.vocab, words=words[start:end], spaces=spaces[start:end])
        parts.append(part.from_array(EMBEDDED, attributes[start:end]))  # type: ignore[arg-type]
    return parts
