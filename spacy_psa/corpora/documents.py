"""Documents: docs of all their sentences, joined from docs of one sentence each."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy
from spacy.attrs import SENT_START
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_psa.corpora.docbin import read_docbins
from spacy_psa.corpora.readers import Reader
from spacy_psa.errors import InputError, check_sizes, naming
from spacy_psa.sentences import same_document, sentence_starts, words_and_spaces

NO_START = 2**64 - 1
"""What spaCy stores of a token that does not begin a sentence: -1, without a sign."""


def join_documents(docs: Iterable[Doc], max_tokens: int = 0) -> Iterator[Doc]:
    """Join the docs that belong to one document.

    Docs that follow each other and belong to one document become one Doc; see `same_document`. It
    has their annotation, their span groups, a sentence boundary where each of them begins, and the
    entries that name the document. A doc without a document stays as it is.

    A doc that is annotated otherwise than the one before, with other span groups or with heads,
    begins a new Doc: joined with others, a doc without chunks would say that there are none.

    Args:
        docs: the docs, most of them of one sentence.
        max_tokens: begins a new Doc of the document where the next sentence would make it longer;
            0 for no limit.

    Examples:
        >>> from spacy.vocab import Vocab
        >>> vocab = Vocab()
        >>> docs = [Doc(vocab, words=words) for words in (["Stop"], ["Go", "on"], ["Hi"])]
        >>> for doc, document in zip(docs, [1, 1, 2]):
        ...     doc.user_data["document"] = document
        >>> [[len(sentence) for sentence in doc.sents] for doc in join_documents(docs)]
        [[1, 2], [1]]
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
    layers = [({*doc.spans}, len(doc) > 0 and doc.has_annotation("DEP")) for doc in (before, after)]
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


def name_of_document(doc: Doc) -> dict[Any, Any]:
    """Give the entries of `doc.user_data` that name the document of a doc; empty for none."""
    return {key: doc.user_data[key] for key in ("document", "part") if key in doc.user_data}


def read_document_corpus(path: Path | None, max_tokens: int = 2000, limit: int = 0) -> Reader:
    """The reader `spacy-psa.DocumentCorpus.v1`: trains on whole documents.

    Each example is a document, or a part of one. Its prediction starts from the gold words and the
    gold sentence boundaries.

    Docs of one sentence each, as `spacy-psa convert` writes them, are joined; see `join_documents`.

    Args:
        path: a `.spacy` file, or a folder of them.
        max_tokens: begins a new example within a document where the next sentence would make it
            longer; 0 for no limit. Docs of several sentences are not cut.
        limit: the number of examples to read; 0 means all.

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
        found = False
        for doc in islice(docs, limit or None):
            found = True
            yield Example(_unannotated(doc), doc)
        if not found:
            raise InputError(f"{path}: there are no docs; give another file")

    return read


def _unannotated(doc: Doc) -> Doc:
    """Copy the words, spaces, sentence boundaries and document of a doc."""
    words, spaces = words_and_spaces(doc)
    copy = Doc(
        doc.vocab,
        words=words,
        spaces=spaces,
        sent_starts=sentence_starts(doc) if len(doc) else None,  # type: ignore[arg-type]
    )
    copy.user_data.update(name_of_document(doc))
    return copy
