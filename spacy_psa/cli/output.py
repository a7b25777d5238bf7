"""The output of `annotate`: which format, and a file that appears complete or not at all."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from functools import partial
from pathlib import Path
from typing import BinaryIO

from spacy_psa.annotation.span_keys import USUAL, SpanKeys
from spacy_psa.annotation.writer import Writer
from spacy_psa.cli.conll_writer import ConllWriter
from spacy_psa.cli.docbin_writer import DocBinWriter
from spacy_psa.cli.html_writer import HtmlWriter, entity_view
from spacy_psa.cli.jsonl_writer import JsonlWriter
from spacy_psa.corpora.format_by_name import format_of
from spacy_psa.errors import InputError


class OutputFormat(str, Enum):
    """The format of the output; `auto` goes by the file name."""

    auto = "auto"
    jsonl = "jsonl"
    spacy = "spacy"
    conll = "conll"
    html = "html"
    parquet = "parquet"


class OutputTags(str, Enum):
    """The tag scheme of the span columns."""

    bio = "bio"
    bioes = "bioes"


SUFFIXES = {
    ".jsonl": OutputFormat.jsonl,
    ".ndjson": OutputFormat.jsonl,
    ".spacy": OutputFormat.spacy,
    ".conll": OutputFormat.conll,
    ".bio": OutputFormat.conll,
    ".bioes": OutputFormat.conll,
    ".iob": OutputFormat.conll,
    ".html": OutputFormat.html,
    ".htm": OutputFormat.html,
    ".parquet": OutputFormat.parquet,
}


def resolve_format(path: Path, wanted: OutputFormat) -> OutputFormat:
    """Give the format of the output.

    Raises:
        InputError: if `wanted` is auto and the file name does not tell the format, or if it is
            Parquet.

    Examples:
        >>> resolve_format(Path("page.html"), OutputFormat.auto).value
        'html'
    """
    suffix = ".jsonl" if str(path) == "-" else path.suffix
    form = format_of(path, wanted, SUFFIXES, "--format jsonl, spacy, conll or html", suffix)
    if form is OutputFormat.parquet:
        raise InputError(f"{path}: Parquet is written with --engine ray; give it, too")
    return form


@contextmanager
def open_writer(
    path: Path,
    wanted: OutputFormat,
    scheme: OutputTags,
    tokens: bool,
    text_key: str = "text",
    keys: SpanKeys = USUAL,
) -> Iterator[Writer]:
    """Open a writer to `path`; the file appears complete at the end, or not at all.

    Args:
        path: the file; "-" means stdout.
        wanted: the format.
        scheme: the tag scheme of CoNLL columns.
        tokens: whether to write the tokens to JSON lines.
        text_key: the key of the text in JSON lines.
        keys: the span groups that CoNLL columns and HTML show.

    Raises:
        InputError: if `path` cannot be written.
    """
    form = resolve_format(path, wanted)
    with open_output(path) as stream:
        writer: Writer
        if form is OutputFormat.jsonl:
            writer = JsonlWriter(stream, tokens, text_key)
        elif form is OutputFormat.spacy:
            writer = DocBinWriter(stream)
        elif form is OutputFormat.conll:
            writer = ConllWriter(stream, scheme.value, keys)
        else:
            writer = HtmlWriter(stream, encode=partial(entity_view, key=keys.trees))
        yield writer
        writer.finish()


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Open `path` for bytes; the file appears complete at the end, or not at all.

    Args:
        path: the file; "-" means stdout.

    Raises:
        InputError: if `path` cannot be written.
    """
    from spacy_psa.corpora.atomic import atomic_path

    if str(path) == "-":
        with _written("stdout"):
            try:
                yield sys.stdout.buffer
                sys.stdout.buffer.flush()
            except OSError:
                _forget_stdout()
                raise
    elif path.exists() and not path.is_file() and not path.is_dir():
        # A pipe or a device is written to and not replaced.
        with _written(str(path)), open(path, "wb") as stream:
            yield stream
    else:
        # Resolved, so that the file that a link points to is replaced, not the link.
        with atomic_path(path.resolve()) as temporary, open(temporary, "wb") as stream:
            yield stream


@contextmanager
def _written(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # readers inside the block raise InputError
        if error.errno == errno.EPIPE:
            raise  # the reader has enough, which is no error; click ends the command
        reason = error.strerror or error
        raise InputError(f"{name}: cannot be written ({reason}); check the path") from error


def _forget_stdout() -> None:
    """Drop what stdout still holds, or Python would fail to write it once more when it ends."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)
