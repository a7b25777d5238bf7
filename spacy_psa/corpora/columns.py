"""Sentences as rows of columns: a token on each line, and an empty line after each sentence.

`-DOCSTART-` lines separate documents and are not sentences.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.lines import DOCSTART, split_columns, wrong_columns
from spacy_psa.corpora.marked_text import KEPT, Misfits
from spacy_psa.corpora.readers import make_doc
from spacy_psa.corpora.tag_schemes import (
    Span,
    TagError,
    TagForm,
    TagScheme,
    loose_spans,
    tags_to_spans,
)
from spacy_psa.errors import InputError

Line = TypeVar("Line", str, list[str])
MIXED = "sentence(s) with tags of several schemes, read tag by tag"


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
    form: TagForm | None = None
    """How the entities are written, if not in the form that the format prescribes."""


def group_rows(
    name: str,
    lines: Iterable[tuple[int, Line]],
    split: Callable[[int, Line, bool], list[str] | None],
    documents: bool = False,
    faults: list[str] | None = None,
) -> Iterator[Sentence]:
    """Yield the sentences of a file, as a stream; a file without sentences is an error.

    Args:
        lines: numbered lines, as `decode_lines` yields them, or lists of their cells; an empty one
            ends a sentence.
        split: returns the columns of a line, or None for a comment. It is called with the number
            of the line, its text, and whether it would begin a sentence.
        documents: whether to number the documents, which `-DOCSTART-` lines separate.
        faults: gets the errors of `split`, and the sentences with such lines are left out.
    """
    rows: list[Row] = []
    whole = True
    document = 1 if documents else None
    begun, empty = False, True
    for number, text in lines:
        boundary = documents and isinstance(text, str) and text.startswith(DOCSTART)
        if boundary or not text:
            if rows and whole:
                empty = False
                yield Sentence(document, rows)
            if rows or not whole:
                rows, begun, whole = [], True, True
            if boundary and begun and document is not None:
                document, begun = document + 1, False
            continue
        try:
            columns = split(number, text, not rows)
        except InputError as error:
            if faults is None:
                raise
            faults.append(str(error))
            whole = False
            continue
        if columns is not None:
            rows.append(Row(number, columns))
    if rows and whole:
        empty = False
        yield Sentence(document, rows)
    if empty:
        if faults:
            raise InputError(faults[0])
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
    """

    def split(number: int, text: str, _: bool) -> list[str]:
        row = split_columns(text, len(columns), repairs)
        if len(row) != len(columns):
            raise InputError(
                f"{name}:{number}: {wrong_columns(text, row, len(columns))} "
                f"({', '.join(columns)}); correct the line, or read other columns with "
                "`spacy-psa convert columns`"
            )
        return row

    return group_rows(name, lines, split, documents)


def column_spans(
    name: str, rows: list[Row], tags: Sequence[str], scheme: TagScheme, what: str, advice: str
) -> list[Span]:
    """Read the spans that the tags of the rows of one sentence mark.

    The names of the file and of the column (`what`) and the `advice` are for errors.
    """
    try:
        return tags_to_spans(tags, scheme)
    except TagError as error:
        line = rows[error.index].line
        raise InputError(f"{name}:{line}: {what} column: {error.reason}; {advice}") from error


def column_docs(
    name: str,
    vocab: Vocab,
    sentences: Iterable[Sentence],
    columns: Columns,
    schemes: Schemes,
    misfits: Misfits | None = None,
    faults: list[str] | None = None,
    repairs: Counter[str] | None = None,
) -> Iterator[Doc]:
    """Yield one `Doc` for each sentence.

    Parts of speech are in `token.tag_`, entities in `doc.ents`, chunks in `doc.spans["chunks"]`,
    and the number of the document, from 1, in `doc.user_data["document"]` if the file has
    `-DOCSTART-` lines.

    If `misfits` is set, it collects the entity tags that are not in the form, and their tokens
    become missing annotation, with the entities that they may belong to. Otherwise they are errors.

    If `repairs` is set, it counts the sentences whose tags no single scheme allows, and these are
    read tag by tag. Otherwise illegal tags are errors. If `faults` is set, it gets the errors, and
    their sentences are left out.
    """
    for document, rows in sentences:
        ents: list[Span] | None = None
        missing: set[int] = set()
        groups: dict[str, Any] = {}
        try:
            if columns.chunk is not None and schemes.chunk:
                chunks = [row.columns[columns.chunk] for row in rows]
                groups["chunks"] = column_spans(
                    name, rows, chunks, schemes.chunk, "chunk", "correct it"
                )
            if columns.ner is not None and schemes.ner:
                ents, missing = _entities(name, rows, columns, schemes, misfits, repairs)
        except InputError as error:
            if faults is None:
                raise
            faults.append(str(error))
            continue
        tags = None if columns.tag is None else [row.columns[columns.tag] for row in rows]
        doc = make_doc(vocab, [row.columns[columns.word] for row in rows], tags, ents, **groups)
        if missing:
            doc.set_ents(list(doc.ents), missing=[doc[i : i + 1] for i in sorted(missing)])
        if document is not None:
            doc.user_data["document"] = document
        yield doc


def _entities(
    name: str,
    rows: list[Row],
    columns: Columns,
    schemes: Schemes,
    misfits: Misfits | None,
    repairs: Counter[str] | None,
) -> tuple[list[Span], set[int]]:
    """Return the entities of a sentence, and the tokens whose annotation is missing."""
    assert columns.ner is not None and schemes.ner is not None
    advice = "correct it or choose another --scheme"
    given = [row.columns[columns.ner] for row in rows]
    form = schemes.form
    tags = given if form is None else [form.read(tag) or "" for tag in given]
    odd = {i for i, tag in enumerate(tags) if not tag}
    if odd and form is not None and misfits is None:
        line, tag = rows[min(odd)].line, given[min(odd)]
        raise InputError(
            f"{name}:{line}: entity column: {tag!r} is not a tag such as O or {form.name}; {advice}"
        )
    if not odd or misfits is None:
        missing: set[int] = set()
        try:
            ents = column_spans(name, rows, tags, schemes.ner, "entity", advice)
        except InputError:
            if repairs is None:
                raise
            ents = loose_spans(tags)
            if not _is_legal(tags):
                repairs[MIXED] += 1
    else:
        words = [row.columns[columns.word] for row in rows]
        for i in sorted(odd):
            kind = "is not a tag of the form of the others"
            misfits.add(f"{name}:{rows[i].line}", kind, f"{words[i]!r} ({given[i]})", "")
            misfits.count(given[i], kind)
        ents, unclear = _between(tags, odd)
        for start, end, label in unclear:
            kind = "is next to such a tag"
            what = f"{' '.join(words[start:end])!r} ({label})"
            misfits.add(f"{name}:{rows[start].line}", kind, what, "")
            misfits.count(label, kind)
        missing = odd.union(*(range(start, end) for start, end, _ in unclear))
    if misfits is not None:
        for _, _, label in ents:
            misfits.count(label, KEPT)
    return ents, missing


def _is_legal(tags: list[str]) -> bool:
    """Tell whether tags are those of IOB2, which the schemes of a file may differ from."""
    try:
        return bool(tags_to_spans(tags, "iob2"))
    except TagError:
        return False


def _between(tags: list[str], odd: set[int]) -> tuple[list[Span], list[Span]]:
    """Read the spans between odd tags, and those that may go on at an odd tag."""
    clear: list[Span] = []
    unclear: list[Span] = []
    for start, end, label in loose_spans([tag or "O" for tag in tags]):
        begins = start - 1 in odd and tags[start][0] not in "BSU"
        goes_on = end in odd and tags[end - 1][0] not in "ESLU"
        (unclear if begins or goes_on else clear).append((start, end, label))
    return clear, unclear
