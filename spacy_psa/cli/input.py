"""Reading what `annotate` annotates: one text a line, JSON lines or `.spacy`, as a stream."""

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
"""Told the place ("FILE:LINE") and the reason of a malformed line; raises, or counts it."""


class InputFormat(str, Enum):
    """What the input is; auto goes by the file's name."""

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
    """One document to annotate."""

    number: int
    """Its place in the stream, from 0."""
    where: str
    """Its place in the file, for messages."""
    position: int
    """How far the input has been read with it: bytes, or documents of a `.spacy` file."""
    text: str = ""
    doc: "Doc | None" = None
    """Words given by the input, instead of `text`."""
    meta: dict[str, Any] = field(default_factory=dict)

    def make_doc(self, nlp: "Language") -> "Doc":
        """A new `Doc` without annotation but what the input was to keep."""
        doc = nlp.make_doc(self.text) if self.doc is None else self.doc.copy()
        if self.meta:
            doc.user_data["meta"] = self.meta
        return doc


@dataclass(frozen=True)
class Source:
    """An open input: its records, and the last record's `position` where that is known."""

    records: Iterator[Record]
    total: int | None


def resolve_format(path: Path, wanted: InputFormat) -> InputFormat:
    """Raises InputError where `wanted` is auto and the name says nothing."""
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
    """Open `path`, "-" for stdin. Empty lines are passed over.

    Args:
        vocab: for the documents of a `.spacy` file.
        text_key: where the text of a JSON line is; the other keys are kept as meta.
        keep: keep the annotation of a `.spacy` file, not only words and sentences.
        bad: called for each malformed line.

    Raises:
        InputError: the file cannot be read, and while it is read what `bad` raises.
    """
    form = resolve_format(path, wanted)
    if str(path) == "-":
        yield _source(sys.stdin.buffer, "stdin", None, form, vocab, text_key, keep, bad)
        return
    try:
        stream = open(path, "rb")  # noqa: SIM115 - what fails inside the block is no matter of this
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
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
    """(place, bytes read so far, text) of each line that is not empty."""
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
    except Exception as error:  # zlib, msgpack and numpy each have errors of their own
        raise InputError(f"{name}: not a .spacy file, or a broken one") from error

    def records() -> Iterator[Record]:
        with codecs_known():
            for i, doc in enumerate(docbin.get_docs(vocab)):
                where = f"{name}: document {i + 1}"
                yield Record(i, where, i + 1, doc=doc if keep else _bare(doc))

    return Source(records(), len(docbin))


def _bare(doc: "Doc") -> "Doc":
    """Words, spaces, sentences and the document's own user data; no other annotation."""
    from spacy.tokens import Doc

    sentences = doc.has_annotation("SENT_START")
    return Doc(
        doc.vocab,
        words=[token.text for token in doc],
        spaces=None if doc.has_unknown_spaces else [bool(token.whitespace_) for token in doc],
        sent_starts=[token.is_sent_start for token in doc] if sentences else None,
        # Keys of custom attributes are ("._.", name, start, end); those of tokens
        # and spans, which have a start, are annotation.
        user_data={
            key: value
            for key, value in doc.user_data.items()
            if not (isinstance(key, tuple) and key[2:3] != (None,))
        },
    )
