"""Sentence boundaries of docs, and docs split into docs of one sentence each."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import compress
from typing import Any, TypeVar

import numpy
from numpy.typing import NDArray
from spacy.attrs import ORTH, SPACY
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_psa.errors import InputError

Docs = TypeVar("Docs", Doc, Example)
Bounds = list[tuple[int, int]]
"""For each sentence, the index of its first token and the index after its last token."""

DistinctWords = tuple[list[str], NDArray[numpy.int64], list[int]]
"""The distinct words of docs, the word of each token (N,), and the tokens of each doc (B,)."""

# The token attributes that embedders read in addition to the word.
EMBEDDED: list[int | str] = [
    "NORM", "TAG", "POS", "MORPH", "LEMMA", "DEP", "ENT_TYPE", "ENT_IOB", "ENT_ID", "ENT_KB_ID",
]  # fmt: skip


class Sentences(list[Doc]):
    """A list of docs of one sentence each, as `split_sentences` returns it.

    The type tells a model that it need not look for sentence boundaries.
    """

    words: DistinctWords | None = None
    """Their `distinct_words`, which several embedders ask for, once they are known."""

    def chosen(self, places: Iterable[int]) -> "Sentences":
        """Select the sentences at `places`, in the order of `places`."""
        return Sentences(map(self.__getitem__, places))


class DocsInSentences(list[Doc]):
    """Docs, with their sentences for `split_sentences`; they must not be annotated any more."""

    @cached_property
    def sentences(self) -> Sentences:
        """The sentences of the docs."""
        return split_sentences(list(self))


class SplitDocs:
    """Docs together with their sentences, whose boundaries are looked for only once.

    Raises:
        InputError: if an element is not a Doc.

    Attributes:
        docs: the docs as a list, unchanged.
        bounds: the `sentence_bounds` of each doc.
        sizes: the number of tokens of each sentence, one doc after the other.
    """

    def __init__(self, docs: Iterable[Doc]):
        self.docs = list(docs)
        for doc in self.docs:
            if not isinstance(doc, Doc):
                raise InputError(f"{doc!r} is not a Doc: use nlp.make_doc(text)")
        self.bounds = list(map(sentence_bounds, self.docs))
        self.sizes = [end - start for bounds in self.bounds for start, end in bounds]

    @cached_property
    def sentences(self) -> Sentences:
        """The sentences of all docs as docs of their own, one doc after the other."""
        return split_sentences(self.docs, self.bounds)


def sentence_bounds(doc: Doc) -> Bounds:
    """Return the index of the first token of each sentence, and the index after its last token.

    A doc without sentence boundaries, or without tokens, counts as one sentence.
    """
    # In spaCy, a doc without tokens has every annotation, but no sentence.
    if len(doc) and doc.has_annotation("SENT_START"):
        return [(sentence.start, sentence.end) for sentence in doc.sents]
    return [(0, len(doc))]


def sentence_count(examples: Iterable[Example]) -> int:
    """Count the sentences of predicted docs, without those that have no tokens."""
    return sum(len(sentence_bounds(eg.predicted)) for eg in examples if len(eg.predicted))


def sentence_starts(doc: Doc) -> list[bool]:
    """Return whether a sentence begins at each token; see `sentence_bounds`."""
    starts = [False] * len(doc)
    for start, end in sentence_bounds(doc):
        if end > start:
            starts[start] = True
    return starts


def name_of_document(doc: Doc) -> dict[Any, Any]:
    """Return the entries of `doc.user_data` that name the document of a doc, and its genre."""
    return {
        key: doc.user_data[key] for key in ("document", "part", "genre") if key in doc.user_data
    }


def document_key(doc: Doc, number: int) -> str:
    """Return the same text for docs of one document, and `number` for a doc that names none."""
    name = name_of_document(doc)
    return str(name) if "document" in name else str(number)


def unannotated(
    doc: Doc, vocab: Vocab | None = None, *, sentences: bool = True, document: bool = False
) -> Doc:
    """Copy the words and spaces of a doc, and its sentence boundaries if it has some.

    With `document`, `name_of_document` is copied as well.
    """
    known = sentences and doc.has_annotation("SENT_START")
    words, spaces = words_and_spaces(doc)
    copy = Doc(
        doc.vocab if vocab is None else vocab,
        words=words,
        spaces=spaces,
        sent_starts=[token.is_sent_start for token in doc] if known else None,
    )
    if document:
        copy.user_data.update(name_of_document(doc))
    return copy


def set_sentence_starts(doc: Doc, starts: list[bool]) -> None:
    """Set whether a sentence begins with each token; `is_sent_start` takes quadratic time."""
    Sentencizer(overwrite=True).set_annotations([doc], [starts])


def cut_out(doc: Doc, start: int, end: int) -> Doc:
    """Copy the tokens from `start` to `end`, with the spans of `doc.spans` that lie inside."""
    piece = doc[start:end].as_doc()
    for name, group in doc.spans.items():
        inside = (span for span in group if start <= span.start and span.end <= end)
        piece.spans[name] = [
            Span(piece, span.start - start, span.end - start, span.label) for span in inside
        ]
    return piece


def words_and_spaces(doc: Doc) -> tuple[list[str], list[bool] | None]:
    """Return the words of a doc, and whether a space follows each; None if that is not known."""
    table = doc.to_array([ORTH, SPACY]).reshape(-1, 2)  # faster than tokens as objects
    strings = doc.vocab.strings
    words = [strings[word] for word in table[:, 0].tolist()]
    return words, None if doc.has_unknown_spaces else table[:, 1].astype(bool).tolist()


def split_sentences(docs: Iterable[Doc], bounds: Iterable[Bounds] | None = None) -> Sentences:
    """Split docs into their sentences, with the token attributes that embedders read.

    A doc of one sentence is returned as it is, not copied. `Sentences` are returned unchanged, and
    `DocsInSentences` have theirs. `bounds` are the `sentence_bounds` of each doc; by default they
    are computed.
    """
    if isinstance(docs, Sentences):
        return docs
    if isinstance(docs, DocsInSentences):
        return docs.sentences
    docs = list(docs)
    sentences = Sentences()
    for doc, own in zip(docs, map(sentence_bounds, docs) if bounds is None else bounds):
        sentences += [doc] if len(own) == 1 else _split(doc, own)
    return sentences


def _split(doc: Doc, bounds: Bounds) -> list[Doc]:
    # spaCy's own embedders do not accept spans, and Span.as_doc is slow.
    words, known = words_and_spaces(doc)
    spaces = known or [bool(token.whitespace_) for token in doc]
    attributes = doc.to_array(EMBEDDED)
    present = numpy.any(attributes, axis=0)  # the others are also 0 in a new doc
    attributes = attributes[:, present]
    names = list(compress(EMBEDDED, present.tolist()))
    parts = []
    for start, end in bounds:
        part = Doc(doc.vocab, words=words[start:end], spaces=spaces[start:end])
        if names:
            part.from_array(names, attributes[start:end])  # type: ignore[arg-type]
        parts.append(part)
    return parts


def same_document(before: Doc, after: Doc) -> bool:
    """Tell whether two docs that follow each other belong to one document.

    They do if they have the same `doc.user_data["document"]`, and the same "part" of it.
    """
    names = [(doc.user_data.get("document"), doc.user_data.get("part")) for doc in (before, after)]
    return names[0][0] is not None and names[0] == names[1]


def document_numbers(docs: Iterable[Doc]) -> list[int]:
    """Number the document of each doc from 0; see `same_document`.

    A doc that names no document is a document of its own.
    """
    numbers: list[int] = []
    before: Doc | None = None
    for doc in docs:
        number = numbers[-1] if numbers else -1
        numbers.append(number + (before is None or not same_document(before, doc)))
        before = doc
    return numbers


def document_batches(docs: Iterable[Docs], size: int) -> Iterator[list[Docs]]:
    """Cut a stream of docs into batches, between documents if possible; see `same_document`.

    A batch has `size` docs, and up to ten times as many where they belong to one document. The
    items may also be examples, whose predicted docs count.
    """
    batch: list[Docs] = []
    before: Doc | None = None
    for item in docs:
        doc = item.predicted if isinstance(item, Example) else item
        within = before is not None and same_document(before, doc)
        if len(batch) >= size and (len(batch) >= 10 * size or not within):
            yield batch
            batch = []
        batch.append(item)
        before = doc
    if batch:
        yield batch
