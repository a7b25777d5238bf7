"""Chinese names, one character and its tag a line: Resume (Zhang and Yang, 2018) in BMES, Weibo
(Peng and Dredze, 2015; second edition, He and Sun, 2017) in BIO.

Weibo's characters carry a number, their place in the word that a segmenter found,
which is left out. Its types tell names (PER.NAM) from nominal mentions (PER.NOM).
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.columns import Row, column_spans, read_rows
from spacy_psa.corpora.lines import read_lines
from spacy_psa.corpora.make_doc import make_doc
from spacy_psa.corpora.readers import Reader, make_reader
from spacy_psa.corpora.tag_schemes import SCHEMES, TagScheme, detect_scheme
from spacy_psa.errors import InputError

COLUMNS = ("character", "entity")
KIND = re.compile(r"\.(NAM|NOM)$")
FIRST, LAST = {"M": "B", "I": "B", "E": "S"}, {"B": "S", "M": "E", "I": "E"}
"""What a tag at the edge of a sentence becomes where its name runs over that edge."""
# U+FFFD twice is what an earlier conversion left of an emoji.
PLAIN, NUMBERED = re.compile("(.|\ufffd{2})"), re.compile("(.|\ufffd{2})[0-9]+")


class Format(NamedTuple):
    """How a file is written: the scheme of its tags, and whether numbers follow its characters."""

    scheme: TagScheme
    numbered: bool


def resolve_format(path: Path, scheme: TagScheme | Literal["auto"] = "auto") -> Format:
    """Read a file once to see how it is written; its first line tells of numbers.

    Raises:
        InputError: an unknown scheme; a line has not two columns; no sentences.
    """
    if scheme not in (*SCHEMES, "auto"):
        raise InputError(f"unknown scheme {scheme!r}; choose from {', '.join(SCHEMES)}, auto")
    rows = next(_read(path, Counter()))
    numbered = len(rows[0].columns[0]) > 1
    if scheme == "auto":
        tags = ([row.columns[1] for row in rows] for rows in _read(path, Counter()))
        return Format(detect_scheme(tags), numbered)
    return Format(scheme, numbered)


def read_docs(
    path: Path,
    vocab: Vocab,
    written: Format,
    repairs: Counter[str] | None = None,
    join_types: bool = False,
) -> Iterator[Doc]:
    """Yield one `Doc` a sentence, each character a token and no spaces, with `doc.ents`.

    Args:
        vocab: of the language "zh".
        written: see `resolve_format`.
        join_types: make one type of PER.NAM and PER.NOM, and so on.

    Raises:
        InputError: a line has not two columns or more than one character, a tag is
            one that the scheme forbids, or there are no sentences.
    """
    repairs = Counter() if repairs is None else repairs
    for rows in _read(path, repairs):
        words = [_character(path, row, written.numbered, repairs) for row in rows]
        if written.scheme == "bioes":
            _mend(rows[0], FIRST, repairs)
            _mend(rows[-1], LAST, repairs)
        advice = "correct it or give another --scheme"
        ents = column_spans(str(path), rows, 1, written.scheme, "entity", advice)
        if join_types:
            ents = [(start, end, KIND.sub("", label)) for start, end, label in ents]
        yield make_doc(vocab, words, ents=ents, spaces=[False] * len(words))


def _read(path: Path, repairs: Counter[str]) -> Iterator[list[Row]]:
    # Tabs are as usual as blanks in these files, so that they count as no repair.
    return read_rows(str(path), read_lines(path, repairs), COLUMNS, Counter())


def _mend(row: Row, edge: dict[str, str], repairs: Counter[str]) -> None:
    """Two names of Resume's training set are cut in two by an empty line."""
    prefix, dash, label = row.columns[1].partition("-")
    if dash and prefix in edge:
        row.columns[1] = f"{edge[prefix]}-{label}"
        repairs["tag(s) of names cut by the sentence's end"] += 1


def _character(path: Path, row: Row, numbered: bool, repairs: Counter[str]) -> str:
    text = row.columns[0]
    found = (NUMBERED if numbered else PLAIN).fullmatch(text)
    if not found:
        what = "one character and its segmentation number" if numbered else "one character"
        raise InputError(
            f"{path}:{row.line}: {text!r} is not {what}; correct it or convert as another format"
        )
    if len(found[1]) > 1:
        repairs["lost character(s), written twice, as one"] += 1
    return found[1][0]


def read_bmes(
    path: Path,
    scheme: Literal["iob1", "iob2", "bioes", "auto"] = "auto",
    join_types: bool = False,
    limit: int = 0,
) -> Reader:
    """The reader `spacy-psa.Bmes.v1`: train straight from a file, over characters.

    Args:
        path: the file.
        scheme: of the tags; BMES is "bioes".
        join_types: make one type of PER.NAM and PER.NOM, and so on.
        limit: read so many sentences only; 0 for all.

    Raises:
        InputError: when read, as `read_docs`.
    """
    path = Path(path)  # configs hand on the string that they checked
    return make_reader(
        path,
        lambda vocab, repairs: read_docs(
            path, vocab, resolve_format(path, scheme), repairs, join_types
        ),
        limit,
    )
