"""Sentence boundaries of docs, and docs split into docs of one sentence each."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import compress

import numpy
from numpy.typing import NDArray
from spacy.attrs import ORTH, SPACY
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.errors import InputError

Bounds = list[tuple[int, int]]
"""For each sentence, the index of its first token and the index after its last token."""

# The token attributes that embedders read in addition to the word.
EMBEDDED: list[int | str] = [
    "NORM", "TAG", "POS", "MORPH", "LEMMA", "DEP", "ENT_TYPE", "ENT_IOB", "ENT_ID", "ENT_KB_ID",
]  # fmt: skip


class Sentences(list[Doc]):
    """A list of docs of one sentence each, as `split_sentences` returns it.

    The type tells a model that it need not look for sentence boundaries.

    Examples:
        >>> from spacy.vocab import Vocab
        >>> doc = Doc(Vocab(), words=["Stop", "Go", "on"], sent_starts=[True, True, False])
        >>> split_sentences([doc]).chosen([1])
        [Go on ]
    """

    def chosen(self, places: Iterable[int]) -> "Sentences":
        """Select the sentences at `places`, in the order of `places`."""
        return Sentences(self[i] for i in places)

    @cached_property
    def words(self) -> NDArray[numpy.uint64]:
        """The hashes of the words of all sentences, one sentence after the other."""
        return numpy.concatenate([sentence.to_array(ORTH) for sentence in self])


class SplitDocs:
    """Docs together with their sentences, whose boundaries are looked for only once.

    Args:
        docs: the docs.

    Raises:
        InputError: for what is no doc.

    Attributes:
        docs: the docs as a list, unchanged.
        bounds: the `sentence_bounds` of each doc.
        sizes: the number of tokens of each sentence, one doc after the other.

    Examples:
        >>> from spacy.vocab import Vocab
        >>> doc = Doc(Vocab(), words=["Stop", "Go", "on"], sent_starts=[True, True, False])
        >>> split = SplitDocs([doc])
        >>> split.bounds, split.sizes
        ([[(0, 1), (1, 3)]], [1, 2])
        >>> split.sentences
        [Stop , Go on ]
    """

    def __init__(self, docs: Iterable[Doc]):
        self.docs = list(docs)
        for doc in self.docs:
            if not isinstance(doc, Doc):
                raise InputError(f"{doc!r} is no Doc: take nlp.make_doc(text)")
        self.bounds = [sentence_bounds(doc) for doc in self.docs]
        self.sizes = [end - start for bounds in self.bounds for start, end in bounds]

    @cached_property
    def sentences(self) -> Sentences:
        """The sentences of all docs as docs of their own, one doc after the other."""
        return split_sentences(self.docs, self.bounds)


def sentence_bounds(doc: Doc) -> Bounds:
    """Find where the sentences of a doc begin and end.

    A doc without sentence boundaries, or without tokens, counts as one sentence.

    Returns:
        For each sentence, the index of its first token and the index after its last token.

    Examples:
        >>> from spacy.vocab import Vocab
        >>> words = ["Stop", "Go", "on"]
        >>> sentence_bounds(Doc(Vocab(), words=words, sent_starts=[True, True, False]))
        [(0, 1), (1, 3)]
        >>> sentence_bounds(Doc(Vocab(), words=words))
        [(0, 3)]
    """
    # In spaCy, a doc without tokens has every annotation, but no sentence.
    if len(doc) and doc.has_annotation("SENT_START"):
        return [(sentence.start, sentence.end) for sentence in doc.sents]
    return [(0, len(doc))]


def sentence_starts(doc: Doc) -> list[bool]:
    """Tell of each token whether a sentence begins there; see `sentence_bounds`.

    Examples:
        >>> from spacy.vocab import Vocab
        >>> sentence_starts(Doc(Vocab(), words=["Stop", "Go"], sent_starts=[True, True]))
        [True, True]
        >>> sentence_starts(Doc(Vocab(), words=["Go", "on"]))
        [True, False]
    """
    starts = [False] * len(doc)
    for start, end in sentence_bounds(doc):
        if end > start:
            starts[start] = True
    return starts


def unannotated(
    doc: Doc, vocab: Vocab | None = None, *, sentences: bool = True, document: bool = False
) -> Doc:
    """Copy the words and spaces of a doc, and its sentence boundaries if it has some.

    Args:
        doc: the doc.
        vocab: the vocabulary of the copy; by default that of the doc.
        sentences: whether sentence boundaries are copied.
        document: whether the name of the document that the doc belongs to is copied; see
            `same_document`.

    Examples:
        >>> doc = Doc(Vocab(), words=["Go", "on"], tags=["VB", "RP"], sent_starts=[True, True])
        >>> copy = unannotated(doc)
        >>> copy[0].tag_, len(list(copy.sents))
        ('', 2)
    """
    known = sentences and doc.has_annotation("SENT_START")
    words, spaces = words_and_spaces(doc)
    copy = Doc(
        doc.vocab if vocab is None else vocab,
        words=words,
        spaces=spaces,
        sent_starts=[token.is_sent_start for token in doc] if known else None,
    )
    for key in ("document", "part") if document else ():
        if key in doc.user_data:
            copy.user_data[key] = doc.user_data[key]
    return copy


def words_and_spaces(doc: Doc) -> tuple[list[str], list[bool] | None]:
    """List the words of a doc, and whether a space follows each; None if that is not known.

    Examples:
        >>> words_and_spaces(Doc(Vocab(), words=["Go", "on"], spaces=[True, False]))
        (['Go', 'on'], [True, False])
    """
    table = doc.to_array([ORTH, SPACY]).reshape(-1, 2)  # tokens as objects take longer
    strings = doc.vocab.strings
    words = [strings[word] for word in table[:, 0].tolist()]
    return words, None if doc.has_unknown_spaces else table[:, 1].astype(bool).tolist()


def split_sentences(docs: Iterable[Doc], bounds: Iterable[Bounds] | None = None) -> Sentences:
    """Split docs into their sentences, with the token attributes that embedders read.

    A doc of one sentence is returned as it is, not copied. `Sentences` are returned unchanged.

    Args:
        docs: the docs to split.
        bounds: the `sentence_bounds` of each doc; by default they are computed.

    Returns:
        The sentences of all docs, in order.

    Examples:
        >>> from spacy.vocab import Vocab
        >>> doc = Doc(Vocab(), words=["Stop", "Go", "on"], sent_starts=[True, True, False])
        >>> [len(sentence) for sentence in split_sentences([doc])]
        [1, 2]
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
    # spaCy's own embedders do not take spans, and Span.as_doc is slow.
    words, known = words_and_spaces(doc)
    spaces = known or [bool(token.whitespace_) for token in doc]
    attributes = doc.to_array(EMBEDDED)
    present = numpy.any(attributes, axis=0)  # the others are 0 in a new doc, too
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

    Examples:
        >>> from spacy.vocab import Vocab
        >>> docs = [Doc(Vocab(), words=["Go"]) for _ in range(2)]
        >>> same_document(*docs)  # they name no document
        False
    """
    one, other = ((d.user_data.get("document"), d.user_data.get("part")) for d in (before, after))
    return one[0] is not None and one == other


def document_numbers(docs: Iterable[Doc]) -> list[int]:
    """Number the documents that docs belong to.

    Docs that follow each other may belong to one document; see `same_document`. A doc that names no
    document is one of its own.

    Returns:
        For each doc, the number of its document, from 0.

    Examples:
        >>> from spacy.vocab import Vocab
        >>> docs = [Doc(Vocab(), words=["Go"]) for _ in range(4)]
        >>> for doc, document in zip(docs, ["a", "a", "b"]):
        ...     doc.user_data["document"] = document
        >>> document_numbers(docs)
        [0, 0, 1, 2]
    """
    numbers: list[int] = []
    before: Doc | None = None
    for doc in docs:
        number = numbers[-1] if numbers else -1
        numbers.append(number + (before is None or not same_document(before, doc)))
        before = doc
    return numbers


def document_batches(docs: Iterable[Doc], size: int) -> Iterator[list[Doc]]:
    """Cut a stream of docs into batches, between documents if possible; see `same_document`.

    Args:
        docs: the docs.
        size: number of docs in a batch. A batch grows up to ten times as long, so that the docs of
            a document stay together.

    Examples:
        >>> from spacy.vocab import Vocab
        >>> docs = [Doc(Vocab(), words=["Go"]) for _ in range(4)]
        >>> for doc in docs[1:]:
        ...     doc.user_data["document"] = 7
        >>> [len(batch) for batch in document_batches(docs, size=2)]
        [4]
        >>> [len(batch) for batch in document_batches(docs, size=1)]
        [1, 3]
    """
    batch: list[Doc] = []
    for doc in docs:
        full = len(batch) >= size
        if full and (len(batch) >= 10 * size or not same_document(batch[-1], doc)):
            yield batch
            batch = []
        batch.append(doc)
    if batch:
        yield batch
