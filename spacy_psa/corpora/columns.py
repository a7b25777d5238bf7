"""Sentences as rows of columns: a token on each line, and an empty line after each sentence.

`-DOCSTART-` lines separate documents and are not sentences.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.lines import DOCSTART, split_columns
from spacy_psa.corpora.readers import make_doc
from spacy_psa.corpora.tag_schemes import Span, TagError, TagScheme, tags_to_spans
from spacy_psa.errors import InputError


class Row(NamedTuple):
    """One token; `line` is the number of its line, from 1."""

    line: int
    columns: list[str]


class Sentence(NamedTuple):
    """The rows of one sentence, and the number of its document, from 1; None without -DOCSTART-."""

    document: int | None
    rows: list[Row]


class Columns(NamedTuple):
    """The index of each column, from 0; negative ones count from the last, which is -1."""

    word: int = 0
    ner: int | None = None
    """Entities, as tags of a scheme."""
    tag: int | None = None
    """Parts of speech."""
    chunk: int | None = None
    """Chunks, as tags of a scheme."""

    def __str__(self) -> str:
        names = ("word", "entities", "parts of speech", "chunks")
        return ", ".join(f"{name} {i}" for name, i in zip(names, self) if i is not None)


class Schemes(NamedTuple):
    """The schemes of the columns with spans; None for a column that is not read."""

    ner: TagScheme | None
    chunk: TagScheme | None


def group_rows(
    name: str,
    lines: Iterable[tuple[int, str]],
    split: Callable[[int, str, bool], list[str] | None],
    documents: bool = False,
) -> Iterator[Sentence]:
    """Yield the sentences of a file, as a stream.

    Args:
        name: the name of the file, for errors.
        lines: numbered lines, as `decode_lines` yields them.
        split: returns the columns of a line, or None for a comment. It is called with the number
            of the line, its text, and whether it would begin a sentence.
        documents: whether to number the documents, which `-DOCSTART-` lines separate.

    Raises:
        InputError: if there are no sentences.
    """
    rows: list[Row] = []
    document = 1 if documents else None
    begun, empty = False, True
    for number, text in lines:
        boundary = document is not None and text.startswith(DOCSTART)
        if boundary or not text:
            if rows:
                yield Sentence(document, rows)
                rows, begun = [], True
            if boundary and begun and document is not None:
                document, begun = document + 1, False
            continue
        columns = split(number, text, not rows)
        if columns is not None:
            rows.append(Row(number, columns))
            empty = False
    if rows:
        yield Sentence(document, rows)
    if empty:
        raise InputError(f"{name}:1: no sentences in the file; check that it is complete")


def read_rows(
    name: str,
    lines: Iterable[tuple[int, str]],
    columns: tuple[str, ...],
    repairs: Counter[str],
    documents: bool = False,
) -> Iterator[Sentence]:
    """Yield the sentences of a file whose format has a fixed number of columns.

    `columns` are the names of the columns; the other arguments are those of `group_rows`.

    Raises:
        InputError: if a line has more or fewer columns, or if there are no sentences.
    """

    def split(number: int, text: str, _: bool) -> list[str]:
        row = split_columns(text, len(columns), repairs)
        if len(row) != len(columns):
            raise InputError(
                f"{name}:{number}: {len(row)} column(s) instead of {len(columns)} "
                f"({', '.join(columns)}); correct the line, or read other columns with "
                "`spacy-psa convert columns`"
            )
        return row

    return group_rows(name, lines, split, documents)


def column_spans(
    name: str, rows: list[Row], column: int, scheme: TagScheme, what: str, advice: str
) -> list[Span]:
    """Read the spans that the tags of a column mark in the rows of one sentence.

    The names of the file and of the column (`what`) and the `advice` are for errors.

    Raises:
        InputError: if a tag is not one of the scheme, or the scheme forbids its place.
    """
    try:
        return tags_to_spans([row.columns[column] for row in rows], scheme)
    except TagError as error:
        line = rows[error.index].line
        raise InputError(f"{name}:{line}: {what} column: {error.reason}; {advice}") from error


def column_docs(
    name: str, vocab: Vocab, sentences: Iterable[Sentence], columns: Columns, schemes: Schemes
) -> Iterator[Doc]:
    """Yield one `Doc` for each sentence.

    Parts of speech are in `token.tag_`, entities in `doc.ents`, chunks in `doc.spans["chunks"]`,
    and the number of the document, from 1, in `doc.user_data["document"]` if the file has
    `-DOCSTART-` lines.

    Raises:
        InputError: if a tag is not legal in its scheme.
    """
    advice = "correct it or choose another --scheme"
    for document, rows in sentences:
        ents: list[Span] | None = None
        groups: dict[str, Any] = {}
        if columns.chunk is not None and schemes.chunk:
            groups["chunks"] = column_spans(
                name, rows, columns.chunk, schemes.chunk, "chunk", "correct it"
            )
        if columns.ner is not None and schemes.ner:
            ents = column_spans(name, rows, columns.ner, schemes.ner, "entity", advice)
        tags = None if columns.tag is None else [row.columns[columns.tag] for row in rows]
        doc = make_doc(vocab, [row.columns[columns.word] for row in rows], tags, ents, **groups)
        if document is not None:
            doc.user_data["document"] = document
        yield doc
