"""The input of `annotate` as a stream: text, tokens, columns, JSON lines or `.spacy` files.

The records of an input are bytes, which can be sent to other processes. Documents are made of them
where the pipeline is.
"""

import gzip
import json
import re
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple

from spacy_psa.corpora.format_by_name import format_of
from spacy_psa.corpora.lines import BLANKS, BOM, DOCSTART, HARMLESS, LONGEST, NO_WORD
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, DocBin

MakeDoc = Callable[["Language", Any], "Doc"]
"""Makes a new `Doc` of the content of a record; it can be pickled."""

InputFormat = Literal["auto", "text", "jsonl", "spacy", "tokens", "conll", "brackets"]
"""The format of the input; `auto` goes by the file name."""

SUFFIXES: dict[str, InputFormat] = {
    "": "text",
    ".txt": "text",
    ".text": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".spacy": "spacy",
    ".tok": "tokens",
    ".conll": "conll",
}


@dataclass(frozen=True)
class Record:
    """One document to annotate."""

    where: str
    """Its place in the file, for messages."""
    position: int
    """How much of the input is read with it: bytes, or documents of a `.spacy` file."""
    content: bytes
    """A line, or a `.spacy` file with one document."""
    goes_on: bool = False
    """Whether the next record belongs to the same document; see `same_document`."""


class MalformedLine(ValueError):
    """The content of a record is not in the format of the input; the message explains why."""


@dataclass(frozen=True)
class Source:
    """An open input."""

    records: Iterator[Record]
    total: int | None
    """The `position` of the last record; None if unknown."""
    make_doc: MakeDoc


class Columns(NamedTuple):
    """The columns of a file with a token on each line, from 0; -1 is the last."""

    word: int = 0
    tag: int | None = None
    """None for no tags."""


ONLY_WORDS = Columns()


@dataclass(frozen=True)
class Reading:
    """How an input is read."""

    format: InputFormat = "auto"
    text_key: str = "text"
    """The key of the text in a JSON line; the other keys are kept as meta."""
    keep: bool = False
    """Whether to keep all annotation of a `.spacy` file, not only words and sentences."""
    columns: Columns = ONLY_WORDS
    unescaped: bool = False
    """Whether tokens are written as in a treebank: -LRB- is (, 1\\/2 is 1/2."""


def resolve_format(path: Path, wanted: InputFormat) -> InputFormat:
    """Find the format of the input."""
    name = path.with_suffix("") if _gzipped(path) else path
    if wanted == "auto" and name.suffix.lower() == ".parquet":
        raise InputError(f"{path}: Parquet is only read with --engine ray; add this option")
    choices = "--input-format text, jsonl, spacy, tokens, conll or brackets"
    return format_of(path, wanted, SUFFIXES, choices, name.suffix)


def check_source(path: Path, wanted: InputFormat) -> InputFormat:
    """Check that an input exists and find its format, before anything that needs time."""
    form = resolve_format(path, wanted)
    if str(path) != "-" and not path.exists():
        raise InputError(f"{path}: there is no such file; check the path")
    return form


@contextmanager
def open_source(path: Path, reading: Reading) -> Iterator[Source]:
    """Open a file for reading, plain or .gz; "-" means stdin."""
    reading = replace(reading, format=resolve_format(path, reading.format))
    if str(path) == "-":
        yield stream_source(sys.stdin.buffer, "stdin", None, reading)
        return
    opener = gzip.open if _gzipped(path) else open
    try:
        stream = opener(path, "rb")
        size = None if _gzipped(path) else path.stat().st_size or None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    with stream:
        yield stream_source(stream, str(path), size, reading)


def stream_source(
    stream: IO[bytes] | gzip.GzipFile, name: str, size: int | None, reading: Reading
) -> Source:
    """Read the records of a decompressed stream, whose format is not auto.

    `name` is for messages, and `size` the number of bytes; None if unknown.
    """
    form, unescaped = reading.format, reading.unescaped
    if form == "spacy":
        return _docbin_source(stream, name, reading.keep)
    records = _lines(stream, name)
    if form == "brackets":
        filled = (record for record in records if record.content.strip())
        return Source(filled, size, brackets_doc)
    if form in ("text", "tokens"):
        records = _watch_for_trees(records)
    if form == "text":
        return Source(records, size, text_doc)
    if form == "tokens":
        return Source(records, size, partial(tokens_doc, unescaped=unescaped))
    if form == "conll":
        make = partial(columns_doc, columns=reading.columns, unescaped=unescaped)
        return Source(sentence_records(records), size, make)
    filled = (record for record in records if record.content.strip())
    return Source(filled, size, partial(json_doc, text_key=reading.text_key, unescaped=unescaped))


def text_doc(nlp: "Language", content: bytes) -> "Doc":
    """Make a document of a line of text."""
    return nlp.make_doc(_decoded(content))


def json_doc(
    nlp: "Language", content: bytes, text_key: str = "text", unescaped: bool = False
) -> "Doc":
    """Make a document of a JSON line; the other keys are in `doc.user_data["meta"]`.

    A line without a text may have one sentence as `tokens`, a list of words, and `tags`.
    """
    try:
        value = json.loads(_decoded(content))
    except MalformedLine:
        raise
    except (ValueError, RecursionError) as error:
        raise MalformedLine(f"not JSON ({error})") from error
    if isinstance(value, dict) and text_key not in value and "tokens" in value:
        words, tags = value.pop("tokens"), value.pop("tags", None)
        for name, values in (("tokens", words), ("tags", words if tags is None else tags)):
            if not (isinstance(values, list) and all(isinstance(each, str) for each in values)):
                raise MalformedLine(f'"{name}" is not a list of strings')
        if tags is not None and len(tags) != len(words):
            raise MalformedLine(f"{len(tags)} tags for {len(words)} tokens")
        doc = sentence_doc(nlp, words, tags, unescaped)
    elif not isinstance(value, dict) or not isinstance(value.get(text_key), str):
        raise MalformedLine(f'not an object with a string under "{text_key}"')
    else:
        doc = nlp.make_doc(value.pop(text_key))
    if value:
        doc.user_data["meta"] = value
    return doc


def brackets_doc(nlp: "Language", content: bytes) -> "Doc":
    """Make a document of the words and tags of a line with a tree in brackets."""
    from spacy_psa.corpora.bracketing import TreeStyle, read_trees
    from spacy_psa.corpora.trees import Parsed

    style = TreeStyle(remove_empty=True, spelled=True)
    try:
        trees = list(read_trees("tree", [(1, _decoded(content))], Counter(), style, True))
    except InputError as error:
        raise MalformedLine(f"not one tree in brackets ({error})") from error
    words, tags, _ = trees[0][1] if trees else Parsed([], [], [])  # (()) has no words
    return sentence_doc(nlp, words, tags, unescaped=True)


def _watch_for_trees(records: Iterable[Record]) -> Iterator[Record]:
    """Warn if the first line is a tree in brackets, which would be read as words."""
    for i, record in enumerate(records):
        if not i and re.match(rb"\s*\([^\s()]* ?\([^\s()]+ ", record.content):
            warnings.warn(
                f"{record.where}: looks like a tree in brackets, and is read as text; "
                "--input-format brackets reads the words and tags of trees",
                stacklevel=2,
            )
        yield record


def tokens_doc(nlp: "Language", content: bytes, unescaped: bool = False) -> "Doc":
    """Make a document of one sentence, a line with blanks between its tokens."""
    text = _decoded(content).strip(" \t\r\n")
    return sentence_doc(nlp, BLANKS.split(text) if text else [], unescaped=unescaped)


COMMENT = re.compile(r"# *(\S+ +=|newdoc|newpar)")
"""The beginning of a comment of CoNLL-U."""
COMMENT_BYTES = re.compile(COMMENT.pattern.encode())
BETWEEN = (DOCSTART.encode(), b"#begin document", b"#end document")
"""The beginnings of lines between documents."""


def sentence_records(lines: Iterable[Record]) -> Iterator[Record]:
    """Join the lines of each sentence to one record, with the place of the first line.

    Empty lines are between sentences; -DOCSTART- and, in CoNLL-2012, "#begin document" and "#end
    document" are between documents. Lines that are all comments are not a sentence.
    """
    for between, group in groupby(lines, _is_between):
        block = list(group)
        if not between and not all(COMMENT_BYTES.match(record.content) for record in block):
            content = b"\n".join(record.content for record in block)
            yield Record(block[0].where, block[-1].position, content)


def _is_between(line: Record) -> bool:
    return not line.content.strip() or line.content.startswith(BETWEEN)


def columns_doc(
    nlp: "Language", content: bytes, columns: Columns, unescaped: bool = False
) -> "Doc":
    """Make a document of the lines of a sentence, with a token on each line.

    The rows of CoNLL-U that are not words (1-2, 1.1) and comments are left out. A line that begins
    with # is a row, not a comment, if it has as many columns as other rows, with the same
    separator, and no lower-case letter in the second one: "# # B-NP" is the word "#".
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
    """Split a row at its tabs or, if there are none, at its blanks."""
    line = line.strip(" \r\n")
    return line.split("\t") if "\t" in line else BLANKS.split(line)


def sentence_doc(
    nlp: "Language", words: list[str], tags: list[str] | None = None, unescaped: bool = False
) -> "Doc":
    """Make a document of one sentence of given words."""
    from spacy.tokens import Doc

    from spacy_psa.corpora.bracketing import spelling_data, unescape

    if "" in words:
        raise MalformedLine(f"token {words.index('') + 1} is empty")
    spellings = {}
    if unescaped:
        spellings = spelling_data(words)
        words = [unescape(word) for word in words]
    starts: list[bool | int | None] = [i == 0 for i in range(len(words))]
    return Doc(nlp.vocab, words=words, tags=tags, sent_starts=starts, user_data=spellings)


def packed_doc(nlp: "Language", content: bytes, keep: bool) -> "Doc":
    """Make a document of a `.spacy` file with one document, with the annotation to keep."""
    from spacy.tokens import DocBin

    from spacy_psa.sentences import unannotated

    (doc,) = DocBin().from_bytes(content).get_docs(nlp.vocab)
    if keep:
        return doc
    bare = unannotated(doc)
    # Keys of custom attributes are ("._.", name, start, end). The keys of tokens and spans have a
    # start; they are annotation.
    for key, value in doc.user_data.items():
        if not isinstance(key, tuple) or key[2:3] == (None,):
            bare.user_data[key] = value
    return bare


def _gzipped(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf8")
    except UnicodeDecodeError as error:
        raise MalformedLine(f"not UTF-8 (byte {error.start + 1} of the line)") from error


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name}: the gzip file is broken ({error}); make it again") from error
    except OSError as error:
        raise InputError(
            f"{name}: cannot be read ({error.strerror or error}); check the path"
        ) from error


def _lines(stream: IO[bytes] | gzip.GzipFile, name: str) -> Iterator[Record]:
    position, most = 0, LONGEST + 1 if isinstance(stream, gzip.GzipFile) else -1
    for number in count(1):
        with _reading(name):
            line = stream.readline(most)
        if not line:
            return
        if 0 < most == len(line):
            raise InputError(
                f"{name}:{number}: the line is longer than {LONGEST // 2**20} MiB; check that the "
                "file is text with line ends"
            )
        position += len(line)
        if number == 1:
            line = line.removeprefix(BOM)
        yield Record(f"{name}:{number}", position, line.rstrip(b"\r\n"))


def _docbin_source(stream: IO[bytes] | gzip.GzipFile, name: str, keep: bool) -> Source:
    from spacy.tokens import DocBin

    from spacy_psa.corpora.docbin import check_unpacked

    with _reading(name):
        content = stream.read(HARMLESS + 1 if isinstance(stream, gzip.GzipFile) else -1)
    if isinstance(stream, gzip.GzipFile) and len(content) > HARMLESS:
        raise InputError(f"{name}: unpacks to more than {HARMLESS // 2**30} GiB: unpack it first")
    try:
        check_unpacked(Path(name), content)
        docbin = DocBin().from_bytes(content)
    except InputError:
        raise
    except Exception as error:  # zlib, msgpack and numpy raise different errors
        raise InputError(
            f"{name}: is not a .spacy file, or is broken; make it by `spacy-psa convert`"
        ) from error
    return Source(_packed(docbin, name), len(docbin), partial(packed_doc, keep=keep))


def _packed(docbin: "DocBin", name: str) -> Iterator[Record]:
    """Yield each document as a `.spacy` file of its own."""
    from spacy.tokens import DocBin
    from spacy.vocab import Vocab

    from spacy_psa.corpora.docbin import codecs_known
    from spacy_psa.sentences import same_document

    docs = docbin.get_docs(Vocab())
    before: tuple[Doc, Record] | None = None
    for number in range(1, len(docbin) + 1):
        where = f"{name}: document {number}"
        try:
            with codecs_known():
                doc = next(docs)
                content = DocBin(docbin.attrs, store_user_data=True, docs=[doc]).to_bytes()
        except Exception as error:  # as above; StopIteration if the parts differ in length
            raise InputError(f"{where}: is broken ({error}); make the file again") from error
        if before is not None:
            yield replace(before[1], goes_on=same_document(before[0], doc))
        before = doc, Record(where, number, content)
    if before is not None:
        yield before[1]
