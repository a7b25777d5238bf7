"""Input that is tokenised already: a sentence on each line, a token on each line, or JSON lists."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from spacy_psa.annotation.records import MalformedLine, Record
from spacy_psa.corpora.lines import BLANKS, DOCSTART

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc


class Columns(NamedTuple):
    """Which columns of a file with a token on each line are read, from 0; -1 is the last.

    Examples:
        >>> Columns(word=1, tag=3)
        Columns(word=1, tag=3)
    """

    word: int
    tag: int | None
    """None for no tags."""


WORDS_ALONE = Columns(word=0, tag=None)
NO_WORD = re.compile(r"\d+[-.]\d+")
"""The number of a row of CoNLL-U that is no word."""
COMMENT = re.compile(r"# *(\S+ +=|newdoc|newpar)")
"""How the comments of CoNLL-U begin."""
ALONE = re.compile(COMMENT.pattern.encode())
BETWEEN = (DOCSTART.encode(), b"#begin document", b"#end document")
"""How the lines between documents begin."""


def tokens_doc(nlp: "Language", content: bytes, unescaped: bool = False) -> "Doc":
    """Make a document of one sentence, whose tokens stand between blanks.

    Args:
        nlp: the pipeline.
        content: the line.
        unescaped: see `sentence_doc`.

    Raises:
        MalformedLine: if it is not UTF-8.

    Examples:
        >>> import spacy
        >>> list(tokens_doc(spacy.blank("en"), b"I do n't ."))
        [I, do, n't, .]
    """
    text = _decoded(content).strip(" \t\r\n")
    return sentence_doc(nlp, BLANKS.split(text) if text else [], unescaped=unescaped)


def columns_doc(
    nlp: "Language", content: bytes, columns: Columns, unescaped: bool = False
) -> "Doc":
    """Make a document of the lines of a sentence, with a token on each line.

    The rows of CoNLL-U that are no words (1-2, 1.1) and comments are left out. A line that begins
    with # is a row, and no comment, if it has as many columns as other rows, with the same
    separator, and no lower-case letter in the second one: "# # B-NP" is the word "#".

    Args:
        nlp: the pipeline.
        content: the lines.
        columns: which columns are read.
        unescaped: see `sentence_doc`.

    Raises:
        MalformedLine: if it is not UTF-8, or a line lacks a column.

    Examples:
        >>> import spacy
        >>> doc = columns_doc(spacy.blank("en"), b"Ada NNP\\nleft VBD", Columns(0, 1))
        >>> [(token.text, token.tag_) for token in doc]
        [('Ada', 'NNP'), ('left', 'VBD')]
    """
    words, tags = [], []
    for line in _without_comments(_decoded(content).split("\n")):
        cells = _cells(line)
        if columns.word > 0 and NO_WORD.fullmatch(cells[0]):
            continue
        try:
            words.append(cells[columns.word])
            tags.append("" if columns.tag is None else cells[columns.tag])
        except IndexError:
            raise MalformedLine(
                f"the row {line!r} has {len(cells)} column(s), too few for the word "
                f"({columns.word}) and the tag ({columns.tag})"
            ) from None
    return sentence_doc(nlp, words, tags, unescaped)


def _without_comments(lines: list[str]) -> Iterator[str]:
    maybe = {line for line in lines if line.startswith("# ") or line.rstrip() == "#"}
    rows = {("\t" in line, len(_cells(line))) for line in lines if line not in maybe}
    for line in lines:
        cells = _cells(line)
        words = COMMENT.match(line) or any(letter.islower() for letter in "".join(cells[1:2]))
        if line not in maybe or (("\t" in line, len(cells)) in rows and not words):
            yield line


def _cells(line: str) -> list[str]:
    """Split a row at its tabs or, if it has none, at its blanks."""
    line = line.strip(" \r\n")
    return line.split("\t") if "\t" in line else BLANKS.split(line)


def json_tokens_doc(nlp: "Language", value: dict[str, Any], unescaped: bool = False) -> "Doc":
    """Make a document of one sentence of a JSON object; its other keys are kept as meta.

    Args:
        nlp: the pipeline.
        value: the object.
        unescaped: see `sentence_doc`.

    Raises:
        MalformedLine: if `tokens` is no list of words, or `tags` no list of as many strings.
    """
    words, tags = value.pop("tokens"), value.pop("tags", None)
    for name, found in (("tokens", words), ("tags", words if tags is None else tags)):
        if not (isinstance(found, list) and all(isinstance(each, str) for each in found)):
            raise MalformedLine(f'"{name}" is no list of strings')
    if tags is not None and len(tags) != len(words):
        raise MalformedLine(f"{len(tags)} tags for {len(words)} tokens")
    doc = sentence_doc(nlp, words, tags, unescaped)
    if value:
        doc.user_data["meta"] = value
    return doc


def sentence_doc(
    nlp: "Language", words: list[str], tags: list[str] | None = None, unescaped: bool = False
) -> "Doc":
    """Make a document of one sentence of given words.

    Args:
        nlp: the pipeline.
        words: the words.
        tags: their parts of speech.
        unescaped: whether words are read as a treebank writes them: -LRB- is (, 1\\/2 is 1/2.

    Raises:
        MalformedLine: if a word is empty.
    """
    from spacy.tokens import Doc

    from spacy_psa.corpora.bracketing import unescape

    if "" in words:
        raise MalformedLine(f"token {words.index('') + 1} is empty")
    if unescaped:
        words = [unescape(word) for word in words]
    starts: list[bool | int | None] = [i == 0 for i in range(len(words))]
    return Doc(nlp.vocab, words=words, tags=tags, sent_starts=starts)


def sentence_records(lines: Iterable[Record]) -> Iterator[Record]:
    """Join lines up to an empty line, or one between documents, to one record.

    It has the place of the first line. Lines between documents begin with -DOCSTART- or, in
    CoNLL-2012, with "#begin document" or "#end document". Comments alone are no sentence.
    """
    for between, group in groupby(lines, _is_between):
        if between:
            continue
        block = list(group)
        if not all(ALONE.match(record.content) for record in block):
            content = b"\n".join(record.content for record in block)
            yield Record(block[0].where, block[-1].position, content)


def _is_between(line: Record) -> bool:
    return not line.content.strip() or line.content.startswith(BETWEEN)


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf8")
    except UnicodeDecodeError as error:
        raise MalformedLine(f"not UTF-8 (byte {error.start + 1} of the line)") from error
