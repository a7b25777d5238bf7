"""CoNLL-2003 columns: word, part of speech, chunk, entity (Tjong Kim Sang and De Meulder, 2003).

Empty lines separate sentences. `-DOCSTART-` lines separate documents and are not sentences.
The published files use IOB1 in both span columns.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_psa.corpora.lines import DOCSTART, marks_documents, read_lines, split_columns
from spacy_psa.corpora.readers import Reader, make_reader
from spacy_psa.corpora.tag_schemes import (
    SCHEMES,
    TagError,
    TagScheme,
    detect_scheme,
    spans_to_tags,
    tags_to_spans,
)
from spacy_psa.errors import InputError

COLUMNS = ("word", "part of speech", "chunk", "entity")


class Row(NamedTuple):
    """One token; `line` is the number of its line, from 1."""

    line: int
    word: str
    tag: str
    chunk: str
    ent: str


class Sentence(NamedTuple):
    """The rows of one sentence, and the number of its document, from 1; None without -DOCSTART-."""

    document: int | None
    rows: list[Row]


def read_sentences(path: Path, repairs: Counter[str]) -> Iterator[Sentence]:
    """Yield the sentences of a file, as a stream.

    Args:
        path: the file, plain or .gz.
        repairs: counts the repairs, see `read_lines`.

    Raises:
        InputError: if a line does not have four columns, or the file has no sentences.
    """
    rows: list[Row] = []
    document = 1 if marks_documents(path) else None
    begun = found = False
    for number, text in read_lines(path, repairs):
        boundary = text.startswith(DOCSTART)
        if boundary or not text:
            if rows:
                yield Sentence(document, rows)
                rows, begun = [], True
            if boundary and begun and document is not None:
                document, begun = document + 1, False
            continue
        columns = split_columns(text, len(COLUMNS), repairs)
        if len(columns) != len(COLUMNS):
            raise InputError(
                f"{path}:{number}: {len(columns)} column(s) instead of {len(COLUMNS)} "
                f"({', '.join(COLUMNS)}); correct the line, or read other columns with "
                "`spacy-psa convert columns`"
            )
        rows.append(Row(number, *columns))
        found = True
    if rows:
        yield Sentence(document, rows)
    if not found:
        raise InputError(f"{path}:1: no sentences in the file; check that it is complete")


def resolve_scheme(path: Path, scheme: TagScheme | Literal["auto"]) -> TagScheme:
    """Give the scheme of the entity column; "auto" reads the file once to detect it.

    Raises:
        InputError: if the scheme is unknown, and as `read_sentences`.
    """
    if scheme == "auto":
        sentences = read_sentences(path, Counter())
        return detect_scheme([row.ent for row in sentence.rows] for sentence in sentences)
    if scheme not in SCHEMES:
        raise InputError(f"unknown scheme {scheme!r}; choose from {', '.join(SCHEMES)}, auto")
    return scheme


def read_docs(
    path: Path, vocab: Vocab, scheme: TagScheme, repairs: Counter[str] | None = None
) -> Iterator[Doc]:
    """Yield one `Doc` for each sentence.

    The part of speech is in `token.tag_`, entities in `doc.ents`, chunks in `doc.spans["chunks"]`,
    and the number of the document, from 1, in `doc.user_data["document"]` if the file has
    `-DOCSTART-` lines. Chunks are read as IOB1, which reads legal IOB2 tags correctly too.

    Args:
        path: the file, plain or .gz.
        vocab: the vocabulary of the docs.
        scheme: the scheme of the entity column, see `resolve_scheme`.
        repairs: counts the repairs, if given.

    Raises:
        InputError: as `read_sentences`, and if a tag is not legal in its scheme.
    """
    for document, rows in read_sentences(path, Counter() if repairs is None else repairs):
        chunks = _spans(path, rows, "chunk", "iob1")
        ents = _spans(path, rows, "ent", scheme)
        doc = Doc(
            vocab,
            words=[row.word for row in rows],
            tags=[row.tag for row in rows],
            ents=spans_to_tags(ents, len(rows), "iob2"),
            sent_starts=[i == 0 for i in range(len(rows))],
        )
        doc.spans["chunks"] = [Span(doc, *chunk) for chunk in chunks]
        if document is not None:
            doc.user_data["document"] = document
        yield doc


def _spans(
    path: Path, rows: list[Row], column: Literal["chunk", "ent"], scheme: TagScheme
) -> list[tuple[int, int, str]]:
    try:
        return tags_to_spans([getattr(row, column) for row in rows], scheme)
    except TagError as error:
        name = "entity" if column == "ent" else column
        advice = "correct it or give another --scheme" if column == "ent" else "correct it"
        raise InputError(
            f"{path}:{rows[error.index].line}: {name} column: {error.reason}; {advice}"
        ) from error


def read_conll2003(
    path: Path,
    scheme: Literal["iob1", "iob2", "bioes", "auto"] = "auto",
    limit: int = 0,
) -> Reader:
    """The reader `spacy-psa.Conll2003.v1`: trains directly from a column file.

    Each example is one sentence, and its prediction starts from the gold words.

    Args:
        path: the column file, plain or .gz.
        scheme: the scheme of the entity column; "auto" detects it.
        limit: the number of sentences to read; 0 means all.

    Raises:
        InputError: as `read_docs`, when the reader is called.
    """
    path = Path(path)  # a config passes on the string that it has checked
    return make_reader(
        path,
        lambda vocab, repairs: read_docs(path, vocab, resolve_scheme(path, scheme), repairs),
        limit,
    )
