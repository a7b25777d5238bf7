"""Sentences as rows of columns, an empty line after each."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from spacy_psa.corpora.lines import split_columns
from spacy_psa.corpora.tag_schemes import Span, TagError, TagScheme, tags_to_spans
from spacy_psa.errors import InputError


class Row(NamedTuple):
    """One token; `line` counts from 1."""

    line: int
    columns: list[str]


def read_rows(
    name: str,
    lines: Iterable[tuple[int, str]],
    columns: tuple[str, ...],
    repairs: Counter[str],
) -> Iterator[list[Row]]:
    """Yield the rows of each sentence, streaming.

    Args:
        name: of the file, for errors.
        lines: as `decode_lines` yields them.
        columns: what each of them holds.

    Raises:
        InputError: a line has more or fewer columns, or there are no sentences.
    """
    rows: list[Row] = []
    found = False
    for number, text in lines:
        if not text:
            if rows:
                yield rows
                rows = []
            continue
        row = split_columns(text, len(columns), repairs)
        if len(row) != len(columns):
            raise InputError(
                f"{name}:{number}: {len(row)} column(s) instead of {len(columns)} "
                f"({', '.join(columns)}); correct the line or convert as another format"
            )
        rows.append(Row(number, row))
        found = True
    if rows:
        yield rows
    if not found:
        raise InputError(f"{name}:1: no sentences in the file; check that it is complete")


def column_spans(
    name: str, rows: list[Row], column: int, scheme: TagScheme, what: str, advice: str
) -> list[Span]:
    """The spans that the tags of a column mark.

    Raises:
        InputError: a tag that the scheme lacks or a move that it forbids.
    """
    try:
        return tags_to_spans([row.columns[column] for row in rows], scheme)
    except TagError as error:
        line = rows[error.index].line
        raise InputError(f"{name}:{line}: {what} column: {error.reason}; {advice}") from error
