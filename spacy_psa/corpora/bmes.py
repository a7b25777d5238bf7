"""Chinese names, one character and its tag on each line.

Resume (Zhang and Yang, 2018) is tagged in BMES. Weibo (Peng and Dredze, 2015; second edition:
He and Sun, 2017) is tagged in BIO. A number follows each character of Weibo: its position in
the word that a segmenter found. The number is left out. The types of Weibo distinguish names
(PER.NAM) from nominal mentions (PER.NOM).
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.columns import Row, Sentence, column_spans, read_rows
from spacy_psa.corpora.lines import read_lines
from spacy_psa.corpora.readers import Augmenter, Reader, make_doc, make_reader
from spacy_psa.corpora.tag_schemes import TagScheme, choose_scheme
from spacy_psa.errors import InputError

COLUMNS = ("character", "entity")
KIND = re.compile(r"\.(NAM|NOM)$")
FIRST, LAST = {"M": "B", "I": "B", "E": "S"}, {"B": "S", "M": "E", "I": "E"}
"""Prefixes that replace others at the beginning and the end of a sentence that cuts a name."""
# An earlier conversion of the file has turned each emoji into two U+FFFD.
PLAIN, NUMBERED = re.compile("(.|\ufffd{2})"), re.compile("(.|\ufffd{2})[0-9]+")


class Format(NamedTuple):
    """How a file is written: its tag scheme, and whether a number follows each character."""

    scheme: TagScheme
    numbered: bool


def resolve_format(path: Path, scheme: TagScheme | Literal["auto"] = "auto") -> Format:
    """Find out how a file, plain or .gz, is written.

    The first line shows whether a number follows each character. If `scheme` is "auto", the whole
    file is read to detect it.
    """
    tags = ([row.columns[1] for row in rows] for _, rows in _read(path, Counter()))
    scheme = choose_scheme(scheme, tags)
    first = next(_read(path, Counter())).rows[0]
    return Format(scheme, numbered=len(first.columns[0]) > 1)


def read_docs(
    path: Path,
    vocab: Vocab,
    written: Format,
    repairs: Counter[str] | None = None,
    join_types: bool = False,
) -> Iterator[Doc]:
    """Yield one `Doc` for each sentence of a plain or .gz file, with `doc.ents`.

    Each character is a token, and no spaces follow the tokens. The vocabulary is of the language
    "zh". With `join_types`, PER.NAM and PER.NOM become one type, PER, and so on.
    """
    repairs = Counter() if repairs is None else repairs
    for _, rows in _read(path, repairs):
        words = [_character(path, row, written.numbered, repairs) for row in rows]
        if written.scheme == "bioes":
            _mend(rows[0], FIRST, repairs)
            _mend(rows[-1], LAST, repairs)
        advice = "correct the tag or choose another --scheme"
        tags = [row.columns[1] for row in rows]
        ents = column_spans(str(path), rows, tags, written.scheme, "entity", advice)
        if join_types:
            ents = [(start, end, KIND.sub("", label)) for start, end, label in ents]
        yield make_doc(vocab, words, ents=ents, spaces=[False] * len(words))


def _read(path: Path, repairs: Counter[str]) -> Iterator[Sentence]:
    # Tabs are as usual as blanks in these files, so they are not counted as repairs.
    return read_rows(str(path), read_lines(path, repairs), COLUMNS, Counter())


def _mend(row: Row, edge: dict[str, str], repairs: Counter[str]) -> None:
    """Correct a tag at the edge of a sentence: two names of Resume's training set run over one."""
    prefix, dash, label = row.columns[1].partition("-")
    if dash and prefix in edge:
        row.columns[1] = f"{edge[prefix]}-{label}"
        repairs["tag(s) of names cut by the sentence's end"] += 1


def _character(path: Path, row: Row, numbered: bool, repairs: Counter[str]) -> str:
    text = row.columns[0]
    match = (NUMBERED if numbered else PLAIN).fullmatch(text)
    if not match:
        what = "one character and its segmentation number" if numbered else "one character"
        raise InputError(
            f"{path}:{row.line}: {text!r} is not {what}; "
            "correct the line or convert the file as another format"
        )
    if len(match[1]) > 1:
        repairs["lost character(s), written twice, as one"] += 1
    return match[1][0]


def read_bmes(
    path: Path,
    scheme: Literal["iob1", "iob2", "bioes", "auto"] = "auto",
    join_types: bool = False,
    limit: int = 0,
    augmenter: Augmenter | None = None,
) -> Reader:
    """The reader `spacy-psa.Bmes.v1`: trains directly from a file, with characters as tokens.

    Args:
        path: the file, plain or .gz.
        scheme: the scheme of the tags; BMES is "bioes", and "auto" detects the scheme.
        join_types: whether PER.NAM and PER.NOM become one type, PER, and so on.
        limit: the number of sentences to read; 0 means all.
        augmenter: makes the examples of each sentence, as in `spacy.Corpus.v1`.
    """
    path = Path(path)  # a config passes on the string that it has checked
    return make_reader(
        path,
        lambda vocab, repairs: read_docs(
            path, vocab, resolve_format(path, scheme), repairs, join_types
        ),
        limit,
        augmenter,
    )
