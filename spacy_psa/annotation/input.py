"""The input of `annotate`: text by lines, JSON lines or `.spacy` files, as a stream.

The records of an input are bytes, which can be sent to other processes. Documents are made of them
where the pipeline is.
"""

import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from spacy_psa.annotation.records import MalformedLine, Record
from spacy_psa.annotation.tokenized import (
    WORDS_ALONE,
    Columns,
    columns_doc,
    json_tokens_doc,
    sentence_records,
    tokens_doc,
)
from spacy_psa.corpora.format_by_name import format_of
from spacy_psa.corpora.lines import BOM
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, DocBin

MakeDoc = Callable[["Language", Any], "Doc"]
"""Makes a new `Doc` of the content of a record; it can be pickled."""


class InputFormat(str, Enum):
    """The format of the input; `auto` goes by the file name."""

    auto = "auto"
    text = "text"
    jsonl = "jsonl"
    spacy = "spacy"
    tokens = "tokens"
    conll = "conll"


SUFFIXES = {
    "": InputFormat.text,
    ".txt": InputFormat.text,
    ".text": InputFormat.text,
    ".jsonl": InputFormat.jsonl,
    ".ndjson": InputFormat.jsonl,
    ".spacy": InputFormat.spacy,
    ".tok": InputFormat.tokens,
    ".conll": InputFormat.conll,
}


@dataclass(frozen=True)
class Source:
    """An open input."""

    records: Iterator[Record]
    total: int | None
    """The `position` of the last record; None if unknown."""
    make_doc: MakeDoc


def resolve_format(path: Path, wanted: InputFormat) -> InputFormat:
    """Give the format of the input.

    Raises:
        InputError: if `wanted` is auto and the file name does not tell the format.

    Examples:
        >>> resolve_format(Path("texts.jsonl.gz"), InputFormat.auto).value
        'jsonl'
    """
    name = path.with_suffix("") if _gzipped(path) else path
    if wanted is InputFormat.auto and name.suffix.lower() == ".parquet":
        raise InputError(f"{path}: Parquet is read with --engine ray; give it, too")
    choices = "--input-format text, jsonl, spacy, tokens or conll"
    return format_of(path, wanted, SUFFIXES, choices, name.suffix)


@contextmanager
def open_source(
    path: Path,
    wanted: InputFormat,
    text_key: str,
    keep: bool,
    columns: Columns = WORDS_ALONE,
    unescaped: bool = False,
) -> Iterator[Source]:
    """Open `path` for reading.

    Args:
        path: the file, plain or .gz; "-" means stdin.
        wanted: the format.
        text_key: the key of the text in a JSON line; the other keys are kept as meta.
        keep: whether to keep all annotation of a `.spacy` file, not only words and sentences.
        columns: which columns of CoNLL files are read.
        unescaped: whether tokens of the input are written as in a treebank; see `sentence_doc`.

    Raises:
        InputError: if the file cannot be read, also if this shows only while it is read.
    """
    form = resolve_format(path, wanted)
    if str(path) == "-":
        yield stream_source(
            sys.stdin.buffer, "stdin", None, form, text_key, keep, columns, unescaped
        )
        return
    opener = gzip.open if _gzipped(path) else open
    try:
        stream = opener(path, "rb")
        size = None if _gzipped(path) else path.stat().st_size or None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    with stream:
        yield stream_source(stream, str(path), size, form, text_key, keep, columns, unescaped)


def stream_source(
    stream: IO[bytes] | gzip.GzipFile,
    name: str,
    size: int | None,
    form: InputFormat,
    text_key: str,
    keep: bool,
    columns: Columns = WORDS_ALONE,
    unescaped: bool = False,
) -> Source:
    """Read the records of a stream; the arguments are those of `open_source`.

    Args:
        stream: the stream, not compressed any more.
        name: its name, for messages.
        size: its number of bytes; None if unknown.
        form: its format, not auto.
        text_key: see `open_source`.
        keep: see `open_source`.
        columns: see `open_source`.
        unescaped: see `open_source`.
    """
    if form is InputFormat.spacy:
        return _docbin_source(stream, name, keep)
    records = _lines(stream, name)
    if form is InputFormat.text:
        return Source(records, size, text_doc)
    if form is InputFormat.tokens:
        return Source(records, size, partial(tokens_doc, unescaped=unescaped))
    if form is InputFormat.conll:
        return Source(
            sentence_records(records),
            size,
            partial(columns_doc, columns=columns, unescaped=unescaped),
        )
    filled = (record for record in records if record.content.strip())
    return Source(filled, size, partial(json_doc, text_key=text_key, unescaped=unescaped))


def text_doc(nlp: "Language", content: bytes) -> "Doc":
    """Make a document of a line of text.

    Raises:
        MalformedLine: if it is not UTF-8.
    """
    try:
        return nlp.make_doc(content.decode("utf8"))
    except UnicodeDecodeError as error:
        raise MalformedLine(f"not UTF-8 (byte {error.start + 1} of the line)") from error


def json_doc(nlp: "Language", content: bytes, text_key: str, unescaped: bool = False) -> "Doc":
    """Make a document of a JSON line; the other keys are in `doc.user_data["meta"]`.

    A line without a text may have one sentence as `tokens`, a list of words, and `tags`.

    Args:
        nlp: the pipeline.
        content: the line.
        text_key: the key of the text.
        unescaped: see `open_source`.

    Raises:
        MalformedLine: if it is not an object with a string under `text_key`.

    Examples:
        >>> import spacy
        >>> doc = json_doc(spacy.blank("en"), b'{"text": "Ada left.", "id": 7}', "text")
        >>> doc.text, doc.user_data
        ('Ada left.', {'meta': {'id': 7}})
    """
    try:
        value = json.loads(content.decode("utf8"))
    except UnicodeDecodeError as error:
        raise MalformedLine(f"not UTF-8 (byte {error.start + 1} of the line)") from error
    except (ValueError, RecursionError) as error:
        raise MalformedLine(f"not JSON ({error})") from error
    if isinstance(value, dict) and text_key not in value and "tokens" in value:
        return json_tokens_doc(nlp, value, unescaped)
    if not isinstance(value, dict) or not isinstance(value.get(text_key), str):
        raise MalformedLine(f'not an object with a string under "{text_key}"')
    doc = nlp.make_doc(value.pop(text_key))
    if value:
        doc.user_data["meta"] = value
    return doc


def packed_doc(nlp: "Language", content: bytes, keep: bool) -> "Doc":
    """Make a document of a `.spacy` file with one document, with the annotation to keep."""
    from spacy.tokens import DocBin

    (doc,) = DocBin().from_bytes(content).get_docs(nlp.vocab)
    return doc if keep else _bare(doc)


def _gzipped(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


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
    position = 0
    for number in count(1):
        with _reading(name):
            line = stream.readline()
        if not line:
            return
        position += len(line)
        if number == 1:
            line = line.removeprefix(BOM)
        yield Record(f"{name}:{number}", position, line.rstrip(b"\r\n"))


def _docbin_source(stream: IO[bytes] | gzip.GzipFile, name: str, keep: bool) -> Source:
    from spacy.tokens import DocBin

    with _reading(name):
        content = stream.read()
    try:
        docbin = DocBin().from_bytes(content)
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


def _bare(doc: "Doc") -> "Doc":
    """Copy words, spaces, sentences and user data of the document."""
    from spacy_psa.sentences import unannotated

    copy = unannotated(doc)
    # Keys of custom attributes are ("._.", name, start, end). The keys of tokens and spans have a
    # start; they are annotation.
    for key, value in doc.user_data.items():
        if not isinstance(key, tuple) or key[2:3] == (None,):
            copy.user_data[key] = value
    return copy
