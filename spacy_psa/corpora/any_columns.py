"""Columns in any order and of any number: a token on each line, with its tags in other columns.

Lines without text separate sentences, `-DOCSTART-` lines separate documents. Columns are separated
by tabs if the first line of a file has one, and otherwise by blanks. A line that begins with `# `
and does not have the columns of the file is a comment, if it is before a sentence.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.columns import Columns, Schemes, Sentence, column_docs, group_rows
from spacy_psa.corpora.lines import (
    BLANKS,
    marks_documents,
    read_lines,
    split_columns,
    wrong_columns,
)
from spacy_psa.corpora.marked_text import Misfits
from spacy_psa.corpora.tag_schemes import (
    OUTSIDE,
    TagForm,
    TagScheme,
    choose_scheme,
    detect_form,
    form_of,
)
from spacy_psa.errors import InputError

COMMENTS = "comment line(s), left out"
MISPRINTS = "tag(s) o or 0, read as O"
CHUNKS = {
    "NP", "VP", "PP", "ADJP", "ADVP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP", "NPC", "NPB",
}  # fmt: skip
PART_OF_SPEECH = re.compile(r"[A-Z][A-Z0-9$|:_-]*|[^\w\s]{1,3}|-?[A-Z]{2,}-?")
MOST_TAGS = 200
"""The largest number of different values of a column with parts of speech."""

Rows = Callable[[Path, Counter[str]], Iterator[Sentence]]
"""Reads the sentences of a file, and counts repairs."""


def read_sentences(
    path: Path, repairs: Counter[str], faults: list[str] | None = None
) -> Iterator[Sentence]:
    """Yield the sentences of a file, plain or .gz, as a stream; `repairs` also counts comments.

    With `faults`, these get the message of each line that has not as many columns as most, and its
    sentence is left out.
    """
    first, count = 0, 0 if faults is None else _usual_count(path)
    usual = count
    others = "most lines have" if count else ""

    def split(number: int, text: str, begins: bool) -> list[str] | None:
        nonlocal first, count, usual
        comment = text.startswith("# ")
        if not first:
            if comment and len(BLANKS.split(text)) != 2:
                repairs[COMMENTS] += 1
                return None
            first, usual = number, count
            count = count or len(_split(text))
        # Tabs are as usual as blanks in these files, so they are not counted as repairs.
        columns = split_columns(text, count, Counter())
        if begins and comment and not _is_row(columns, count):
            repairs[COMMENTS] += 1
            if number == first:
                first, count = 0, usual
            return None
        if len(columns) != count:
            raise InputError(
                f"{path}:{number}: {wrong_columns(text, columns, count)}; "
                f"{others or f'line {first} has'} {count} columns; correct the line"
            )
        return columns

    lines = ((number, text if text.strip() else "") for number, text in read_lines(path, repairs))
    yield from group_rows(str(path), lines, split, marks_documents(path), faults)


def _usual_count(path: Path) -> int:
    """Count the columns that most lines of a file have."""
    counts = Counter(len(_split(text)) for _, text in read_lines(path, Counter()) if text.strip())
    return counts.most_common(1)[0][0] if counts else 0


def resolve_schemes(
    path: Path,
    columns: Columns,
    scheme: TagScheme | Literal["auto"] = "auto",
    label: str = "",
    rows: Rows = read_sentences,
) -> Schemes:
    """Find out the schemes of the columns with spans, and how the entities are written.

    This reads the file up to three times, by `rows`. `scheme` is that of the entities; that of
    chunks is always detected. `label` is the type of entities whose tags have none, such as B and
    I.
    """
    check_columns(path, columns, rows)

    def tags_of(column: int) -> Iterator[list[str]]:
        for _, sentence in rows(path, Counter()):
            yield [row.columns[column] for row in sentence]

    chunk = None if columns.chunk is None else choose_scheme("auto", tags_of(columns.chunk))
    if columns.ner is None:
        return Schemes(None, chunk)
    name = detect_form(Counter(tag for tags in tags_of(columns.ner) for tag in tags))
    if name is None:
        return Schemes(choose_scheme(scheme, tags_of(columns.ner)), chunk)
    if name == "B" and not label:
        raise InputError(
            f"{path}: the entities have tags without a type, such as B and I; name it with --label"
        )
    form = TagForm(name, label)
    read = ([form.read(tag) or "O" for tag in tags] for tags in tags_of(columns.ner))
    return Schemes(choose_scheme(scheme, read), chunk, form)


def check_columns(path: Path, columns: Columns, rows: Rows = read_sentences) -> None:
    """Raise an InputError if a file lacks one of the columns, or there are none but the words."""
    if columns[1:] == (None, None, None):
        raise InputError(
            f"{path}: nothing to learn from in the words; choose --ner, --tag or --chunk"
        )
    row = next(rows(path, Counter())).rows[0]
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
    misfits: Misfits | None = None,
    rows: Rows = read_sentences,
    faults: list[str] | None = None,
    mixed: bool = False,
) -> Iterator[Doc]:
    """Yield one `Doc` for each sentence of a file, plain or .gz, as `column_docs` does.

    `rows` reads the sentences. With `mixed`, sentences may have tags of several schemes.

    In IOB2, an `I-` that begins a span is an error; `resolve_schemes` would have detected IOB1.
    """
    counts: Counter[str] = Counter() if repairs is None else repairs

    def sentences() -> Iterator[Sentence]:
        for sentence in rows(path, counts):
            if columns.ner is not None and schemes.form and schemes.form.name != "b-type":
                tags = Counter(row.columns[columns.ner] for row in sentence.rows)
                misprints = sum(tags[tag] for tag in OUTSIDE[1:])
                counts.update({MISPRINTS: misprints} if misprints else {})
            yield sentence

    loose = counts if mixed else None
    return column_docs(str(path), vocab, sentences(), columns, schemes, misfits, faults, loose)


def find_columns(path: Path, rows: Rows = read_sentences) -> Columns:
    """Find the columns with words, entities, parts of speech and chunks, by their values.

    The majority of its values decides whether a column has tags, see `detect_form`. It has chunks
    if their types are those of CoNLL-2000, and entities otherwise. Of several, the last has the
    entities. The words are the first of the other columns whose values differ and are not all
    numbers. The parts of speech are the first column after the words with few values, in capital
    letters.
    """
    counts: list[Counter[str]] = []
    for _, sentence in rows(path, Counter()):
        counts = counts or [Counter() for _ in sentence[0].columns]
        for counter, values in zip(counts, zip(*(row.columns for row in sentence))):
            counter.update(values)
    forms = {i: form for i, values in enumerate(counts) if (form := detect_form(values))}
    spans = list(forms)
    with_spans = [i for i in spans if not set(counts[i]) <= set(OUTSIDE)]
    chunks = [i for i in with_spans if _labels(counts[i], forms[i]) <= CHUNKS]
    ents = [i for i in with_spans or spans[-1:] if i not in chunks]
    rest = [i for i in range(len(counts)) if i not in spans and len(counts[i]) > 1]
    words = [i for i in rest if not all(value.isdigit() for value in counts[i])]
    if not words and len(counts) > len(spans):
        words = [i for i in range(len(counts)) if i not in spans]
    tags = [i for i in words[1:] if _are_parts_of_speech(counts[i])]
    if not words or not (ents or chunks or tags):
        raise InputError(
            f"{path}:1: no column of the {len(counts)} has tags such as O and B-TYPE; name them "
            "with `spacy-psa convert columns`, or use another format"
        )
    return Columns(words[0], *(next(iter(each), None) for each in (ents[::-1], tags, chunks)))


def _labels(values: Counter[str], form: str) -> set[str]:
    tags = map(TagForm(form, "without a label").read, values)
    return {tag.partition("-")[2] for tag in tags if tag not in (None, "O")}


def _are_parts_of_speech(values: Counter[str]) -> bool:
    return len(values) <= MOST_TAGS and all(PART_OF_SPEECH.fullmatch(value) for value in values)


def _split(text: str) -> list[str]:
    return text.split("\t") if "\t" in text else BLANKS.split(text.strip(" \t"))


def _is_row(columns: list[str], count: int) -> bool:
    """Tell a row whose word is `#` from a comment with as many words."""
    return len(columns) == count and any(
        value == "O" or form_of(value) == "B-TYPE" for value in columns[1:]
    )
