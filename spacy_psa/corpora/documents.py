"""Documents: docs of several sentences, joined from docs of one sentence each."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import numpy
from spacy.attrs import SENT_START
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_psa.corpora.docbin import read_docbins
from spacy_psa.corpora.marked_text import INCORRECT, MISSING
from spacy_psa.corpora.readers import Augmenter, Reader, augmented
from spacy_psa.errors import InputError, check_sizes, naming
from spacy_psa.sentences import (
    name_of_document,
    same_document,
    sentence_starts,
    set_sentence_starts,
    unannotated,
)

NO_START = 2**64 - 1
"""The value that spaCy stores for a token that does not begin a sentence: -1, without a sign."""


def join_documents(docs: Iterable[Doc], max_tokens: int = 0) -> Iterator[Doc]:
    """Join docs that follow each other and belong to one document; see `same_document`.

    A joined Doc has their annotation, their span groups, a sentence boundary where each of them
    begins, and the entries that name the document. A doc that names no document stays as it is.

    A doc with other layers than the one before, such as other span groups or heads, begins a new
    Doc: if it were joined, a doc without chunks would mean that there are none. A doc without the
    groups of missing and incorrect spans has none of them.

    A new Doc of the document also begins where the next sentence would make it longer than
    `max_tokens`; 0 means no limit.
    """
    joined: list[Doc] = []
    for doc in docs:
        full = max_tokens and sum(map(len, joined)) + len(doc) > max_tokens
        if joined and (full or not _belongs(joined[-1], doc)):
            yield _joined(joined)
            joined = []
        joined.append(doc)
    if joined:
        yield _joined(joined)


def _belongs(before: Doc, after: Doc) -> bool:
    """Tell whether a doc can be joined to the one before."""
    layers = [
        ({*doc.spans} - {MISSING, INCORRECT}, len(doc) > 0 and doc.has_annotation("DEP"))
        for doc in (before, after)
    ]
    return same_document(before, after) and layers[0] == layers[1]


def _joined(docs: list[Doc]) -> Doc:
    if len(docs) == 1:
        return docs[0]
    kept = name_of_document(docs[0])
    starts = [1 if start else NO_START for doc in docs for start in sentence_starts(doc)]
    others = ["spans", "tensor", "user_data"]
    whole = Doc.from_docs(docs, ensure_whitespace=False, exclude=others)  # type: ignore[call-arg]
    assert whole is not None
    _join_spans(docs, whole)
    whole.user_data.update(kept)
    if not whole.has_annotation("DEP"):  # with a parse, the boundaries are those of its trees
        whole.from_array([SENT_START], numpy.array(starts, dtype="uint64"))  # type: ignore[arg-type]
    return whole


def _join_spans(docs: Iterable[Doc], whole: Doc) -> None:
    """Copy the span groups of docs; spaCy looks for the tokens of each span by its characters."""
    joined: dict[str, list[Span]] = {}
    first = 0
    for doc in docs:
        for key, group in doc.spans.items():
            joined.setdefault(key, []).extend(
                Span(
                    whole, first + span.start, first + span.end, span.label,
                    kb_id=span.kb_id, span_id=span.id,
                )
                for span in group
            )  # fmt: skip
        first += len(doc)
    for key, spans in joined.items():
        whole.spans[key] = spans


def read_document_corpus(
    path: Path | None, max_tokens: int = 2000, limit: int = 0, augmenter: Augmenter | None = None
) -> Reader:
    """The reader `spacy-psa.DocumentCorpus.v1`: trains on whole documents.

    Each example is a document, or a part of one. Its prediction starts from the gold words and the
    gold sentence boundaries.

    Docs of one sentence each, as `spacy-psa convert` writes them, are joined; see `join_documents`.

    Args:
        path: a `.spacy` file, or a folder of them.
        max_tokens: begins a new example within a document where the next sentence would make it
            longer; 0 for no limit. Docs of several sentences are not cut.
        limit: the number of documents to read; 0 means all.
        augmenter: makes the examples of each document, as in `spacy.Corpus.v1`; None for no others
            than the document itself. Their sentence boundaries are those of the document.

    Raises:
        InputError: if `path` is None or a number is negative; and, when the reader is called, if a
            file is not in spaCy's format, or there is no doc.
    """
    if path is None:  # spaCy may fill in a config whose paths are not set yet
        raise InputError("DocumentCorpus.v1: path is null: set [paths.train] and [paths.dev]")
    with naming("DocumentCorpus.v1"):
        check_sizes(least=0, max_tokens=max_tokens, limit=limit)

    def read(nlp: Language) -> Iterator[Example]:
        docs = join_documents(read_docbins(Path(path), nlp.vocab), max_tokens)
        empty = True
        for doc in islice(docs, limit or None):
            empty = False
            example = Example(_unannotated(doc), doc)
            yield from augmented(nlp, example, augmenter, partial(_again, doc))
        if empty:
            raise InputError(f"{path}: there are no docs; use another file")

    return read


def _again(doc: Doc, made: Doc) -> Example:
    """Make an example of what an augmenter has made of a document."""
    made.user_data.update(name_of_document(doc))
    if len(made) == len(doc):
        set_sentence_starts(made, sentence_starts(doc))
    return Example(_unannotated(made), made)


def _unannotated(doc: Doc) -> Doc:
    """Copy the words, spaces, sentence boundaries and document of a doc."""
    copy = unannotated(doc, sentences=False, document=True)
    set_sentence_starts(copy, sentence_starts(doc))
    return copy
