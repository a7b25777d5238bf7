"""Annotates one shard after another, in a worker of a data engine.

Shards are text, JSON lines or Parquet, and are written as JSON lines or Parquet. Text and JSON
lines that are written as Parquet have the columns `text` (or the key of the text), `meta`, the
other keys as a JSON object, since they may have any type, and the annotation. Parquet keeps all its
columns.
"""

import gzip
import io
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow
from pyarrow import parquet
from pyarrow.fs import FileType

from spacy_psa.annotation.annotator import Annotated, Annotator, Malformed, Outcome
from spacy_psa.annotation.input import InputFormat, Reading, resolve_format, stream_source
from spacy_psa.annotation.row_annotator import RowAnnotator, open_once
from spacy_psa.annotation.rows import ANNOTATION, json_line, json_row
from spacy_psa.annotation.shards import PARQUET, Place, Shard, whole_file
from spacy_psa.annotation.tables import ANNOTATION_SCHEMA, with_columns
from spacy_psa.errors import InputError

MESSAGES = 100
"""The number of left out documents of a shard that are named."""
ROW_GROUP = 8192
"""The least number of rows in a group of a Parquet file, except the last group."""


@dataclass(frozen=True)
class LineBatch:
    """A batch of lines; the row of an outcome has the text, and the keys that it replaces."""

    wheres: list[str]
    """The place of each document in the input, for messages."""
    outcomes: list[Outcome]
    schema: pyarrow.Schema

    @property
    def replaced(self) -> set[str]:
        """The keys of the input that the annotation replaces."""
        return {name for row in _rows(self.outcomes) for name in row[1]}

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the documents that are annotated."""
        return [row[0] for row in _rows(self.outcomes)]

    def table(self) -> pyarrow.Table:
        """Return the same rows as a table."""
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


@dataclass(frozen=True)
class TableBatch:
    """A batch of rows of Parquet, as `LineBatch`; the row of an outcome is only the annotation."""

    wheres: list[str]
    outcomes: list[Outcome]
    source: pyarrow.Table

    @property
    def replaced(self) -> set[str]:
        return set(ANNOTATION) & set(self.source.schema.names)

    def rows(self) -> list[dict[str, Any]]:
        others = self._kept().drop_columns(sorted(self.replaced)).to_pylist()
        return [{**other, **row} for other, row in zip(others, _rows(self.outcomes), strict=True)]

    def table(self) -> pyarrow.Table:
        return with_columns(self._kept(), _rows(self.outcomes), ANNOTATION_SCHEMA)

    def _kept(self) -> pyarrow.Table:
        return self.source.filter([isinstance(each, Annotated) for each in self.outcomes])


def _rows(outcomes: list[Outcome]) -> list[Any]:
    return [each.row for each in outcomes if isinstance(each, Annotated)]


class LineBatches:
    """The batches of text or JSON lines, plain or gzipped, annotated as they are read."""

    def __init__(
        self, stream: BinaryIO, name: str, wanted: InputFormat, work: RowAnnotator
    ) -> None:
        reading = Reading(resolve_format(Path(name), wanted), work.text_key)
        opened = gzip.GzipFile(fileobj=stream) if name.lower().endswith(".gz") else stream
        source = stream_source(opened, name, None, reading)
        self.records = source.records
        self.batch_size = work.batch_size
        encode = partial(json_row, tokens=work.tokens, text_key=work.text_key)
        self.annotator = Annotator(partial(open_once, work.model), source.make_doc, encode)
        first = [(work.text_key, pyarrow.string()), ("meta", pyarrow.string())]
        self.schema = pyarrow.schema([*first, *ANNOTATION_SCHEMA])
        """The schema of the tables."""

    def __iter__(self) -> Iterator[LineBatch]:
        for batch in iter(lambda: list(islice(self.records, self.batch_size)), []):
            outcomes = self.annotator([record.content for record in batch])
            yield LineBatch([record.where for record in batch], outcomes, self.schema)


class TableBatches:
    """The batches of a Parquet file, as `LineBatches`."""

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
                "choose another --text-key"
            )
        empty = self.file.schema_arrow.empty_table()
        self.schema = with_columns(empty, [], ANNOTATION_SCHEMA).schema

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


Batch = LineBatch | TableBatch
Batches = LineBatches | TableBatches


@contextmanager
def open_batches(
    place: Place, name: str, wanted: InputFormat, work: RowAnnotator
) -> Iterator[Batches]:
    """Open a shard."""
    if name.lower().endswith(PARQUET):
        with place.filesystem.open_input_file(place.path) as file:
            yield TableBatches(file, name, work)
    else:
        # As they are: LineBatches opens .gz itself, with the errors of `annotate`.
        with place.filesystem.open_input_stream(place.path, compression=None) as stream:
            yield LineBatches(io.BufferedReader(stream), name, wanted, work)


def write_jsonl(stream: BinaryIO, batches: Batches, tell: Callable[[Batch], None]) -> None:
    """Write the batches as JSON lines, and pass each to `tell`."""
    for batch in batches:
        stream.write(b"".join(json_line(row, unknown=str) for row in batch.rows()))
        tell(batch)


def write_parquet(stream: BinaryIO, batches: Batches, tell: Callable[[Batch], None]) -> None:
    """Write the batches as Parquet, and pass each to `tell`."""
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


@dataclass
class Report:
    """The outcome of a shard."""

    shard: Shard
    kept: bool = False
    """Whether there was an output already."""
    docs: int = 0
    words: int = 0
    failed: int = 0
    """Documents that were left out because they could not be annotated."""
    bad: int = 0
    """Malformed records that were left out."""
    seconds: float = 0.0
    """Seconds by the clock, without opening the pipeline."""
    processor_seconds: float = 0.0
    messages: list[str] = field(default_factory=list)
    """The documents that were left out, each with the reason."""
    replaced: list[str] = field(default_factory=list)
    """The keys of the input that the annotation replaced."""
    error: str | None = None
    """Why the shard is not finished."""
    fatal: bool = False
    """Whether no other shard can be finished either, because the pipeline cannot be opened."""


@dataclass(frozen=True)
class ShardAnnotator:
    """Annotates shards; it can be pickled, and opens the pipeline with the first.

    An output that exists is kept. An output appears when all of it is done, so that a shard can be
    annotated again at any time, by any worker. Malformed records are left out with `skip_bad`; else
    they end their shard.
    """

    source: Place
    target: Place
    work: RowAnnotator
    input_format: InputFormat = "auto"
    skip_bad: bool = False

    def __call__(self, shard: Shard) -> Report:
        """Annotate a shard. Errors are in the report."""
        report = Report(shard)
        try:
            open_once(self.work.model)
        except InputError as error:
            report.error, report.fatal = str(error), True
            return report
        started, processor_started = time.perf_counter(), time.process_time()
        target = self.target.below(shard.target)
        name = shard.source or self.source.path.rpartition("/")[2]
        try:
            info = target.filesystem.get_file_info(target.path)
            report.kept = info.type is not FileType.NotFound
            if not report.kept:
                self._annotate(shard, name, target, report)
        except InputError as error:
            report.error = str(error)
        except OSError as error:
            report.error = f"{name}: cannot be read or written ({error})"
        report.seconds = time.perf_counter() - started
        report.processor_seconds = time.process_time() - processor_started
        return report

    def _annotate(self, shard: Shard, name: str, target: Place, report: Report) -> None:
        source = self.source.below(shard.source) if shard.source else self.source
        write = write_parquet if shard.target.endswith(PARQUET) else write_jsonl
        with (
            open_batches(source, name, self.input_format, self.work) as batches,
            whole_file(target) as stream,
        ):
            write(stream, batches, lambda batch: self._count(batch, report))
            lost = report.failed + report.bad
            if lost and not report.docs:
                raise InputError(f"{name}: none of {lost:,} docs was annotated")

    def _count(self, batch: Batch, report: Report) -> None:
        report.replaced = sorted({*report.replaced, *batch.replaced})
        for where, outcome in zip(batch.wheres, batch.outcomes, strict=True):
            if isinstance(outcome, Annotated):
                report.docs += 1
                report.words += outcome.words
                continue
            malformed = isinstance(outcome, Malformed)
            if malformed and not self.skip_bad:
                raise InputError(f"{where}: {outcome.reason}; correct the line or use --skip-bad")
            report.bad += malformed
            report.failed += not malformed
            if len(report.messages) < MESSAGES:
                what = "skipped" if malformed else "not annotated"
                report.messages.append(f"{where}: {what}: {outcome.reason}")
