"""Annotates one shard after another, in a worker of a data engine."""

import time
from dataclasses import dataclass, field

from pyarrow.fs import FileType

from spacy_psa.annotation.annotator import Annotated, Malformed
from spacy_psa.annotation.input import InputFormat
from spacy_psa.annotation.row_annotator import RowAnnotator, open_once
from spacy_psa.annotation.shard_batches import Batch, open_batches, write_jsonl, write_parquet
from spacy_psa.annotation.shards import PARQUET, Place, Shard, whole_file
from spacy_psa.errors import InputError

MESSAGES = 100
"""The number of documents of a shard that are named if they are left out."""


@dataclass
class Report:
    """What became of a shard."""

    shard: Shard
    kept: bool = False
    """Whether its output was there."""
    docs: int = 0
    words: int = 0
    failed: int = 0
    """Documents that were left out because they could not be annotated."""
    bad: int = 0
    """Malformed records that were left out."""
    seconds: float = 0.0
    """How long it took by the clock, without opening the pipeline."""
    processor_seconds: float = 0.0
    """How long it took in processor time."""
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

    An output that is there is kept. An output appears when all of it is done, so that a shard can
    be annotated again at any time, by any worker.

    Args:
        source: the file or the folder of the input.
        target: the folder of the output.
        work: annotates batches.
        input_format: the format of text and JSON lines.
        skip_bad: whether malformed records are left out; else they end their shard.
    """

    source: Place
    target: Place
    work: RowAnnotator
    input_format: InputFormat = InputFormat.auto
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
            found = target.filesystem.get_file_info(target.path)
            report.kept = found.type is not FileType.NotFound
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
                raise InputError(f"{where}: {outcome.reason}; correct the line or give --skip-bad")
            report.bad += malformed
            report.failed += not malformed
            if len(report.messages) < MESSAGES:
                what = "skipped" if malformed else "not annotated"
                report.messages.append(f"{where}: {what}: {outcome.reason}")
