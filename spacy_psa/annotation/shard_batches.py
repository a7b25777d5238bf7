"""The batches of a shard: read from text, JSON lines or Parquet, written as JSON lines or Parquet.

Text and JSON lines that are written as Parquet have the columns `text` (or the key of the text),
`meta`, the other keys as a JSON object, since they may have any type, and the annotation. Parquet
keeps all its columns.
"""

import gzip
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow
from pyarrow import parquet

from spacy_psa.annotation.annotator import Annotated, Annotator, Outcome
from spacy_psa.annotation.input import InputFormat, resolve_format, stream_source
from spacy_psa.annotation.row_annotator import RowAnnotator, open_once
from spacy_psa.annotation.rows import ANNOTATION, json_line, json_row
from spacy_psa.annotation.shards import PARQUET, Place
from spacy_psa.annotation.tables import ANNOTATION_SCHEMA, with_columns
from spacy_psa.errors import InputError

ROW_GROUP = 8192
"""The least number of rows in a group of a Parquet file, but for the last."""


class Batch(Protocol):
    """Documents that were annotated together."""

    @property
    def wheres(self) -> list[str]:
        """The place of each document in the input, for messages."""

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcome for each document."""

    @property
    def replaced(self) -> set[str]:
        """The keys of the input that the annotation replaces."""

    def rows(self) -> list[dict[str, Any]]:
        """Give the rows of the documents that are annotated."""

    def table(self) -> pyarrow.Table:
        """Give the same rows as a table."""


class Batches(Protocol):
    """The batches of a shard, annotated as they are read."""

    @property
    def schema(self) -> pyarrow.Schema:
        """The schema of their tables."""

    def __iter__(self) -> Iterator[Batch]: ...


@dataclass(frozen=True)
class LineBatch:
    """A batch of lines; the row of an outcome has the text, and the keys that it replaces."""

    wheres: list[str]
    outcomes: list[Outcome]
    schema: pyarrow.Schema

    @property
    def replaced(self) -> set[str]:
        return {name for row in self._found() for name in row[1]}

    def rows(self) -> list[dict[str, Any]]:
        return [row[0] for row in self._found()]

    def table(self) -> pyarrow.Table:
        rows = self.rows()
        others = [{k: v for k, v in row.items() if k not in self.schema.names} for row in rows]
        text_key = self.schema.names[0]
        columns: dict[str, list[Any]] = {
            text_key: [row[text_key] for row in rows],
            "meta": [json.dumps(other) if other else None for other in others],
        }
        columns |= {name: [row.get(name) for row in rows] for name in ANNOTATION}
        arrays = [pyarrow.array(columns[field.name], field.type) for field in self.schema]
        return pyarrow.table(arrays, self.schema)

    def _found(self) -> list[tuple[dict[str, Any], list[str]]]:
        return [each.row for each in self.outcomes if isinstance(each, Annotated)]


class LineBatches:
    """Text or JSON lines, plain or gzipped.

    Args:
        stream: the bytes of the shard.
        name: its name, for messages and for its format.
        wanted: its format.
        work: annotates.
    """

    def __init__(
        self, stream: BinaryIO, name: str, wanted: InputFormat, work: RowAnnotator
    ) -> None:
        form = resolve_format(Path(name), wanted)
        opened = gzip.GzipFile(fileobj=stream) if name.lower().endswith(".gz") else stream
        source = stream_source(opened, name, None, form, work.text_key, keep=False)
        self.records = source.records
        self.batch_size = work.batch_size
        encode = partial(json_row, tokens=work.tokens, text_key=work.text_key)
        self.annotator = Annotator(partial(open_once, work.model), source.make_doc, encode)
        first = [(work.text_key, pyarrow.string()), ("meta", pyarrow.string())]
        self.schema = pyarrow.schema([*first, *ANNOTATION_SCHEMA])

    def __iter__(self) -> Iterator[LineBatch]:
        for batch in iter(lambda: list(islice(self.records, self.batch_size)), []):
            outcomes = self.annotator([record.content for record in batch])
            yield LineBatch([record.where for record in batch], outcomes, self.schema)


@dataclass(frozen=True)
class TableBatch:
    """A batch of rows of Parquet; the row of an outcome is the annotation alone."""

    wheres: list[str]
    outcomes: list[Outcome]
    source: pyarrow.Table

    @property
    def replaced(self) -> set[str]:
        return set(ANNOTATION) & set(self.source.schema.names)

    def rows(self) -> list[dict[str, Any]]:
        others = self._kept().drop_columns(sorted(self.replaced)).to_pylist()
        return [{**other, **row} for other, row in zip(others, self._found(), strict=True)]

    def table(self) -> pyarrow.Table:
        return with_columns(self._kept(), self._found(), ANNOTATION_SCHEMA)

    def _kept(self) -> pyarrow.Table:
        return self.source.filter([isinstance(each, Annotated) for each in self.outcomes])

    def _found(self) -> list[dict[str, Any]]:
        return [each.row for each in self.outcomes if isinstance(each, Annotated)]


class TableBatches:
    """A Parquet file.

    Args:
        file: the open file.
        name: its name, for messages.
        work: annotates.

    Raises:
        InputError: if it is no Parquet file, or has no column for the text.
    """

    def __init__(self, file: pyarrow.NativeFile, name: str, work: RowAnnotator) -> None:
        self.name = name
        self.work = work
        try:
            self.file = parquet.ParquetFile(file)
        except pyarrow.ArrowInvalid as error:
            raise self._broken(error) from error
        names = self.file.schema_arrow.names
        if work.text_key not in names:
            raise InputError(
                f"{name}: there is no column {work.text_key} among {', '.join(names)}; "
                "give --text-key"
            )
        self.schema = with_columns(
            self.file.schema_arrow.empty_table(), [], ANNOTATION_SCHEMA
        ).schema

    def __iter__(self) -> Iterator[TableBatch]:
        number = 0
        try:
            for batch in self.file.iter_batches(self.work.batch_size):
                table = pyarrow.table(batch)
                outcomes = self.work.outcomes(table[self.work.text_key].to_pylist())
                wheres = [f"{self.name}: row {number + i}" for i in range(1, len(outcomes) + 1)]
                number += len(outcomes)
                yield TableBatch(wheres, outcomes, table)
        except pyarrow.ArrowInvalid as error:
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> InputError:
        return InputError(f"{self.name}: is not a Parquet file, or is broken ({error})")


@contextmanager
def open_batches(
    place: Place, name: str, wanted: InputFormat, work: RowAnnotator
) -> Iterator[Batches]:
    """Open a shard.

    Args:
        place: where it is.
        name: its name, for messages and for its format.
        wanted: the format of text and JSON lines.
        work: annotates.

    Raises:
        InputError: if it is not in its format, also while it is read.
        OSError: if it cannot be read.
    """
    if name.lower().endswith(PARQUET):
        with place.filesystem.open_input_file(place.path) as file:
            yield TableBatches(file, name, work)
    else:
        # As they are: LineBatches opens .gz itself, with the errors of `annotate`.
        with place.filesystem.open_input_stream(place.path, compression=None) as stream:
            yield LineBatches(io.BufferedReader(stream), name, wanted, work)


def write_jsonl(stream: BinaryIO, batches: Batches, tell: Callable[[Batch], None]) -> None:
    """Write the batches as JSON lines; `tell` hears of each."""
    for batch in batches:
        stream.write(b"".join(json_line(row, unknown=str) for row in batch.rows()))
        tell(batch)


def write_parquet(stream: BinaryIO, batches: Batches, tell: Callable[[Batch], None]) -> None:
    """Write the batches as Parquet; `tell` hears of each."""
    waiting: list[pyarrow.Table] = []
    with parquet.ParquetWriter(stream, batches.schema) as writer:
        for batch in batches:
            waiting.append(batch.table())
            tell(batch)
            if sum(map(len, waiting)) >= ROW_GROUP:
                writer.write_table(pyarrow.concat_tables(waiting))
                waiting = []
        if waiting:
            writer.write_table(pyarrow.concat_tables(waiting))
