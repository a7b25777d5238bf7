"""Sentences as rows of columns, with an empty line after each sentence."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from spacy_psa.corpora.lines import split_columns
from spacy_psa.corpora.tag_schemes import Span, TagError, TagScheme, tags_to_spans
from spacy_psa.errors import InputError


class Row(NamedTuple):
    """One token; `line` is the number of its line, from 1."""

    line: int
    columns: list[str]


def read_rows(
    name: str,
    lines: Iterable[tuple[int, str]],
    columns: tuple[str, ...],
    repairs: Counter[str],
) -> Iterator[list[Row]]:
    """Yield the rows of each sentence, as a stream.

    Args:
        name: the name of the file, for errors.
        lines: numbered lines, as `decode_lines` yields them.
        columns: the names of the columns, for errors.
        repairs: counts the repairs.

    Raises:
        InputError: if a line has more or fewer columns, or if there are no sentences.

    Examples:
        >>> lines = [(1, "Rome NNP"), (2, "fell VBD"), (3, "")]
        >>> for rows in read_rows("train.txt", lines, ("word", "part of speech"), Counter()):
        ...     print([row.columns for row in rows])
        [['Rome', 'NNP'], ['fell', 'VBD']]
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
                f"({', '.join(columns)}); correct the line or convert the file as another format"
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
    """Read the spans that the tags of a column mark.

    Args:
        name: the name of the file, for errors.
        rows: the rows of one sentence.
        column: the index of the column, from 0.
        scheme: the scheme of its tags.
        what: the name of the column, for errors.
        advice: what the user can do about an illegal tag, for errors.

    Raises:
        InputError: if a tag is not one of the scheme, or the scheme forbids its place.
    """
    try:
        return tags_to_spans([row.columns[column] for row in rows], scheme)
    except TagError as error:
        line = rows[error.index].line
        raise InputError(f"{name}:{line}: {what} column: {error.reason}; {advice}") from error
