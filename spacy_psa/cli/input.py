"""The input of `annotate`: text by lines, JSON lines or `.spacy` files, as a stream."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

BOM = b"\xef\xbb\xbf"

Bad = Callable[[str, str], None]
"""Called with the place ("FILE:LINE") of a malformed line and the reason.

It raises an error or counts the line."""


class InputFormat(str, Enum):
    """The format of the input; `auto` goes by the file name."""

    auto = "auto"
    text = "text"
    jsonl = "jsonl"
    spacy = "spacy"


SUFFIXES = {
    "": InputFormat.text,
    ".txt": InputFormat.text,
    ".text": InputFormat.text,
    ".jsonl": InputFormat.jsonl,
    ".ndjson": InputFormat.jsonl,
    ".spacy": InputFormat.spacy,
}


@dataclass(frozen=True)
class Record:
    """One document to annotate.

    Examples:
        >>> import spacy
        >>> record = Record(0, "texts.txt:1", 9, text="Ada left.", meta={"id": 7})
        >>> doc = record.make_doc(spacy.blank("en"))
        >>> doc.text, doc.user_data
        ('Ada left.', {'meta': {'id': 7}})
    """

    number: int
    """Its position in the stream, from 0."""
    where: str
    """Its place in the file, for messages."""
    position: int
    """How much of the input is read with it: bytes, or documents of a `.spacy` file."""
    text: str = ""
    doc: "Doc | None" = None
    """The words, if the input gives them; then `text` is empty."""
    meta: dict[str, Any] = field(default_factory=dict)

    def make_doc(self, nlp: "Language") -> "Doc":
        """Make a new `Doc`, with only the annotation of the input that is to be kept."""
        doc = nlp.make_doc(self.text) if self.doc is None else self.doc.copy()
        if self.meta:
            doc.user_data["meta"] = self.meta
        return doc


@dataclass(frozen=True)
class Source:
    """An open input: its records, and the `position` of the last record (None if unknown)."""

    records: Iterator[Record]
    total: int | None


def resolve_format(path: Path, wanted: InputFormat) -> InputFormat:
    """Give the format of the input.

    Raises:
        InputError: if `wanted` is auto and the file name does not tell the format.

    Examples:
        >>> resolve_format(Path("texts.jsonl"), InputFormat.auto).value
        'jsonl'
    """
    if wanted is not InputFormat.auto:
        return wanted
    if str(path) == "-":
        return InputFormat.text
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{path}: cannot tell the format from the name; "
            "give --input-format text, jsonl or spacy"
        )
    return SUFFIXES[path.suffix.lower()]


@contextmanager
def open_source(
    path: Path, wanted: InputFormat, vocab: "Vocab", text_key: str, keep: bool, bad: Bad
) -> Iterator[Source]:
    """Open `path` for reading; empty lines are skipped.

    Args:
        path: the file; "-" means stdin.
        wanted: the format.
        vocab: the vocabulary of the documents of a `.spacy` file.
        text_key: the key of the text in a JSON line; the other keys are kept as meta.
        keep: whether to keep all annotation of a `.spacy` file, not only words and sentences.
        bad: called for each malformed line.

    Raises:
        InputError: if the file cannot be read. Errors of `bad` pass through while it is read.
    """
    form = resolve_format(path, wanted)
    if str(path) == "-":
        yield _source(sys.stdin.buffer, "stdin", None, form, vocab, text_key, keep, bad)
        return
    try:
        stream = open(path, "rb")  # noqa: SIM115 - only the opening is inside of this try
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    with stream:
        size = path.stat().st_size or None
        yield _source(stream, str(path), size, form, vocab, text_key, keep, bad)


def _source(
    stream: BinaryIO,
    name: str,
    size: int | None,
    form: InputFormat,
    vocab: "Vocab",
    text_key: str,
    keep: bool,
    bad: Bad,
) -> Source:
    if form is InputFormat.spacy:
        return _docbin_source(stream, name, vocab, keep)
    lines = _lines(stream, name, bad)
    if form is InputFormat.jsonl:
        return Source(_json_records(lines, text_key, bad), size)
    return Source((Record(i, where, at, text) for i, (where, at, text) in enumerate(lines)), size)


def _lines(stream: BinaryIO, name: str, bad: Bad) -> Iterator[tuple[str, int, str]]:
    """Yield the place, the bytes read so far, and the text of each line that is not empty."""
    position = 0
    for number, line in enumerate(stream, 1):
        position += len(line)
        if number == 1:
            line = line.removeprefix(BOM)
        try:
            text = line.decode("utf8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            bad(f"{name}:{number}", f"not UTF-8 (byte {error.start + 1} of the line)")
            continue
        if text.strip():
            yield f"{name}:{number}", position, text


def _json_records(
    lines: Iterator[tuple[str, int, str]], text_key: str, bad: Bad
) -> Iterator[Record]:
    number = 0
    for where, position, line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            bad(where, f"not JSON ({error})")
            continue
        if not isinstance(value, dict) or not isinstance(value.get(text_key), str):
            bad(where, f'not an object with a string under "{text_key}"')
            continue
        text = value.pop(text_key)
        yield Record(number, where, position, text, meta=value)
        number += 1


def _docbin_source(stream: BinaryIO, name: str, vocab: "Vocab", keep: bool) -> Source:
    from spacy.tokens import DocBin

    from spacy_psa.corpora.docbin import codecs_known

    try:
        docbin = DocBin().from_bytes(stream.read())
    except Exception as error:  # zlib, msgpack and numpy raise different errors
        raise InputError(f"{name}: is not a .spacy file, or is broken; make it again") from error

    def records() -> Iterator[Record]:
        with codecs_known():
            for i, doc in enumerate(docbin.get_docs(vocab)):
                where = f"{name}: document {i + 1}"
                yield Record(i, where, i + 1, doc=doc if keep else _bare(doc))

    return Source(records(), len(docbin))


def _bare(doc: "Doc") -> "Doc":
    """Copy words, spaces, sentences and the user data of the document; no other annotation."""
    from spacy.tokens import Doc

    sentences = doc.has_annotation("SENT_START")
    return Doc(
        doc.vocab,
        words=[token.text for token in doc],
        spaces=None if doc.has_unknown_spaces else [bool(token.whitespace_) for token in doc],
        sent_starts=[token.is_sent_start for token in doc] if sentences else None,
        # Keys of custom attributes are ("._.", name, start, end). The keys of tokens and spans
        # have a start; they are annotation.
        user_data={
            key: value
            for key, value in doc.user_data.items()
            if not (isinstance(key, tuple) and key[2:3] != (None,))
        },
    )
