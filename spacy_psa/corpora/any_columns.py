"""Columns in any order and of any number: a token on each line, with its tags beside it.

Lines without text separate sentences, `-DOCSTART-` lines separate documents. Columns are separated
by tabs if the first line of a file has one, and otherwise by blanks. A line that begins with `# `
and does not have the columns of the file is a comment, if it stands before a sentence.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.columns import Row, column_spans
from spacy_psa.corpora.lines import (
    BLANKS,
    DOCSTART,
    marks_documents,
    read_lines,
    split_columns,
)
from spacy_psa.corpora.readers import make_doc
from spacy_psa.corpora.tag_schemes import SCHEMES, Span, TagScheme, detect_scheme
from spacy_psa.errors import InputError

PREFIXES = ("B-", "I-", "E-", "S-", "L-", "U-", "M-")
COMMENTS = "comment line(s), left out"


class Columns(NamedTuple):
    """The index of each column, from 0; negative ones count from the last, which is -1.

    Examples:
        >>> print(Columns(word=0, ner=-1))
        word 0, entities -1
    """

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


class Sentence(NamedTuple):
    """The rows of one sentence, and the number of its document, from 1; None without -DOCSTART-."""

    document: int | None
    rows: list[Row]


class Schemes(NamedTuple):
    """The schemes of the columns with spans; None for a column that is not read."""

    ner: TagScheme | None
    chunk: TagScheme | None


def read_sentences(path: Path, repairs: Counter[str]) -> Iterator[Sentence]:
    """Yield the sentences of a file, as a stream.

    Args:
        path: the file, plain or .gz.
        repairs: counts the repairs, see `read_lines`, and the comments.

    Raises:
        InputError: if a line has not as many columns as the first, or the file has no sentences.
    """
    rows: list[Row] = []
    document = 1 if marks_documents(path) else None
    begun, first = False, None
    for number, text in read_lines(path, repairs):
        boundary = text.startswith(DOCSTART)
        if boundary or not text.strip():
            if rows:
                yield Sentence(document, rows)
                rows, begun = [], True
            if boundary and begun and document is not None:
                document, begun = document + 1, False
            continue
        if first is None:
            if _begins_as_comment(text) and len(BLANKS.split(text)) != 2:
                repairs[COMMENTS] += 1
                continue
            first, count = number, len(_split(text))
        # Tabs are as usual as blanks in these files, so they are not counted as repairs.
        columns = split_columns(text, count, Counter())
        if not rows and _begins_as_comment(text) and not _is_row(columns, count):
            repairs[COMMENTS] += 1
            continue
        if len(columns) != count:
            raise InputError(
                f"{path}:{number}: {len(columns)} column(s) instead of {count}, as in line "
                f"{first}; correct the line"
            )
        rows.append(Row(number, columns))
    if rows:
        yield Sentence(document, rows)
    if first is None:
        raise InputError(f"{path}:1: no sentences in the file; check that it is complete")


def resolve_schemes(
    path: Path, columns: Columns, scheme: TagScheme | Literal["auto"] = "auto"
) -> Schemes:
    """Find out the schemes of the columns with spans; this reads the file once.

    Args:
        path: the file, plain or .gz.
        columns: the columns to read.
        scheme: the scheme of the entities; "auto" detects it. That of chunks is always detected.

    Raises:
        InputError: if the scheme is unknown, the file does not have a column, and as
            `read_sentences`.
    """
    if scheme not in (*SCHEMES, "auto"):
        raise InputError(f"unknown scheme {scheme!r}; choose from {', '.join(SCHEMES)}, auto")
    check_columns(path, columns)

    def detect(column: int | None) -> TagScheme | None:
        if column is None:
            return None
        sentences = read_sentences(path, Counter())
        return detect_scheme([row.columns[column] for row in rows] for _, rows in sentences)

    return Schemes(
        detect(columns.ner) if scheme == "auto" or columns.ner is None else scheme,
        detect(columns.chunk),
    )


def check_columns(path: Path, columns: Columns) -> None:
    """Check that a file has the columns.

    Raises:
        InputError: if it does not, or if there is none but the words.
    """
    if columns[1:] == (None, None, None):
        raise InputError(
            f"{path}: nothing to learn from in the words alone; give --ner, --tag or --chunk"
        )
    row = next(read_sentences(path, Counter())).rows[0]
    count = len(row.columns)
    for column in columns:
        if column is not None and not -count <= column < count:
            raise InputError(
                f"{path}:{row.line}: there is no column {column}; the line has the columns 0 to "
                f"{count - 1}, or -{count} to -1"
            )


def read_docs(
    path: Path,
    vocab: Vocab,
    columns: Columns,
    schemes: Schemes,
    repairs: Counter[str] | None = None,
) -> Iterator[Doc]:
    """Yield one `Doc` for each sentence.

    Parts of speech are in `token.tag_`, entities in `doc.ents`, chunks in `doc.spans["chunks"]`,
    and the number of the document, from 1, in `doc.user_data["document"]` if the file has
    `-DOCSTART-` lines. In IOB2, an `I-` that begins a span is an error; `resolve_schemes` would
    have found IOB1.

    Args:
        path: the file, plain or .gz.
        vocab: the vocabulary of the docs.
        columns: the columns to read.
        schemes: their schemes, from `resolve_schemes`.
        repairs: counts the repairs, if given.

    Raises:
        InputError: as `read_sentences`, and if a tag is not legal in its scheme.
    """
    advice = "correct it or give another --scheme"
    for document, rows in read_sentences(path, Counter() if repairs is None else repairs):
        ents: list[Span] | None = None
        groups: dict[str, Any] = {}
        if columns.ner is not None and schemes.ner:
            ents = column_spans(str(path), rows, columns.ner, schemes.ner, "entity", advice)
        if columns.chunk is not None and schemes.chunk:
            chunks = column_spans(
                str(path), rows, columns.chunk, schemes.chunk, "chunk", "correct it"
            )
            groups["chunks"] = chunks
        tags = None if columns.tag is None else [row.columns[columns.tag] for row in rows]
        words = [row.columns[columns.word] for row in rows]
        doc = make_doc(vocab, words, tags, ents, **groups)
        if document is not None:
            doc.user_data["document"] = document
        yield doc


def is_span_tag(value: str) -> bool:
    """Tell whether a value may be a tag of IOB1, IOB2 or BIOES.

    Examples:
        >>> is_span_tag("O"), is_span_tag("B-PER"), is_span_tag("NNP")
        (True, True, False)
    """
    return value == "O" or (value.startswith(PREFIXES) and len(value) > 2)


def _split(text: str) -> list[str]:
    return text.split("\t") if "\t" in text else BLANKS.split(text.strip(" \t"))


def _begins_as_comment(text: str) -> bool:
    return text.startswith("# ")


def _is_row(columns: list[str], count: int) -> bool:
    """Tell a row whose word is `#` from a comment with as many words."""
    return len(columns) == count and any(is_span_tag(value) for value in columns[1:])
