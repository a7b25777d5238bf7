"""`spacy-psa annotate`: reads text and writes annotated documents, as a stream."""

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spacy_psa.annotation.annotator import Annotator, Failed, Malformed, Outcome
from spacy_psa.annotation.input import InputFormat, open_source, resolve_format
from spacy_psa.annotation.records import Record, record_batches
from spacy_psa.annotation.rows import ANNOTATION
from spacy_psa.annotation.span_keys import USUAL, SpanKeys
from spacy_psa.annotation.tokenized import WORDS_ALONE, Columns
from spacy_psa.annotation.writer import Writer
from spacy_psa.cli.options import Address, Engine
from spacy_psa.cli.output import OutputFormat, OutputTags, open_writer
from spacy_psa.cli.output import resolve_format as resolve_output_format
from spacy_psa.cli.processes import in_processes
from spacy_psa.cli.progress import progress, summary
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language


def annotate(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Folder or installed package of a pipeline.")
    ],
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help='File to read; "-" for stdin. With ray, a folder or address, too.',
        ),
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="OUTPUT",
            help='File to write; "-" for stdout. With ray, a folder or address.',
        ),
    ],
    input_format: Annotated[
        InputFormat,
        typer.Option(
            help="Format of INPUT; text is one document a line, tokens one sentence a line with "
            "blanks between its tokens, conll one token a line, auto goes by the name."
        ),
    ] = InputFormat.auto,
    output_format: Annotated[
        OutputFormat, typer.Option("--format", help="Format of OUTPUT; auto goes by the name.")
    ] = OutputFormat.auto,
    batch_size: Annotated[int, typer.Option(min=1, help="Number of documents in a batch.")] = 256,
    n_process: Annotated[
        int, typer.Option(min=-1, help="Number of processes; -1 for one per core.")
    ] = 1,
    gpu_id: Annotated[int, typer.Option(min=-1, help="Number of the GPU; -1 for the CPU.")] = -1,
    text_key: Annotated[str, typer.Option(help="Key of the text in a JSON line.")] = "text",
    scheme: Annotated[
        OutputTags, typer.Option(help="Tag scheme of the CoNLL columns.")
    ] = OutputTags.bio,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Write the tokens to JSON lines, too.")
    ] = False,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Keep all annotation of a .spacy file, not only words and sentences."
        ),
    ] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip malformed lines and count them.")
    ] = False,
    engine: Annotated[
        Engine, typer.Option(help="local, or ray for many files, on this machine or a cluster.")
    ] = Engine.local,
    address: Address = None,
) -> None:
    """Annotate text with a trained pipeline.

    INPUT is text with one document on each line, JSON lines ({"text": ...} or {"tokens": [...]}), a
    .spacy file, tokenised sentences or columns; it may be gzipped (.gz). OUTPUT is JSON lines
    (text, entities with character offsets), a .spacy file, CoNLL columns or an HTML page. JSON
    lines keep the other keys of the input, but for ents, spans and tokens. Trees are a column of
    CoNLL files, as in CoNLL-2012, and drawings of a page; `parse` writes them in brackets. The
    output file appears when all documents are done; a missing folder is made.

    Documents that cannot be annotated or written are named on stderr and left out. A malformed line
    ends the run, unless --skip-bad is given. The exit code is 1 if no document was annotated.

    With --engine ray, INPUT is a file or a folder of text, JSON lines or Parquet, and OUTPUT a
    folder, as paths or addresses (s3://bucket/folder). Each file of INPUT gives one of OUTPUT:
    Parquet for Parquet, else JSON lines, or what --format says. A file of OUTPUT appears when all
    of it is done. A worker that is killed is started again. A file with a malformed line is not
    finished, but the others are. The same command annotates what is not finished, and nothing else.

    \b
    Example:
      spacy-psa annotate training/model-best texts.txt annotated.jsonl
      spacy-psa annotate training/model-best texts annotated --engine ray --n-process -1
    """
    from spacy_psa.loading import load_pipeline

    if n_process == 0:
        raise InputError("--n-process 0: give a number of processes, or -1 for one per core")
    if text_key in ANNOTATION:
        raise InputError(
            f"--text-key {text_key}: the annotation has this key; rename it in the input"
        )
    if engine is Engine.ray:
        from spacy_psa.cli.annotate_shards import annotate_shards

        if gpu_id >= 0:
            raise InputError(f"--gpu-id {gpu_id}: --engine ray annotates on CPUs; leave it out")
        annotate_shards(
            model,
            source,
            target,
            input_format=input_format,
            output_format=output_format,
            batch_size=batch_size,
            workers=n_process,
            address=address,
            text_key=text_key,
            tokens=tokens,
            skip_bad=skip_bad,
        )
        return
    if address is not None:
        raise InputError(f"--address {address}: give --engine ray, too")
    # Before the model is loaded, because these checks take no time.
    check_source(Path(source), input_format)
    form = resolve_output_format(Path(target), output_format)
    opening: Callable[[], Language] = partial(load_pipeline, model, gpu_id)
    keys = USUAL
    if form in (OutputFormat.conll, OutputFormat.html):
        nlp = opening()
        keys = SpanKeys.of(nlp)
        opening = opening if n_process != 1 else lambda: nlp
    annotate_file(
        opening,
        Path(source),
        open_writer(Path(target), form, scheme, tokens, text_key, keys),
        input_format=input_format,
        batch_size=batch_size,
        n_process=n_process,
        text_key=text_key,
        keep=keep,
        skip_bad=skip_bad,
    )


def check_source(source: Path, input_format: InputFormat) -> None:
    """Check that the input exists and that its format is known.

    Raises:
        InputError: if there is no such file, or its name does not tell its format.
    """
    resolve_format(source, input_format)
    if str(source) != "-" and not source.exists():
        raise InputError(f"{source}: there is no such file; check the path")


def annotate_file(
    open_pipeline: "Callable[[], Language]",
    source: Path,
    writing: AbstractContextManager[Writer],
    *,
    input_format: InputFormat,
    batch_size: int,
    text_key: str,
    skip_bad: bool,
    keep: bool = False,
    n_process: int = 1,
    columns: Columns = WORDS_ALONE,
    trees: bool = False,
    gap: Any = None,
) -> None:
    """Annotate all of `source`, with a progress bar and a summary on stderr.

    Args:
        open_pipeline: gives the pipeline; with several processes it is sent to them, so that it
            must be possible to pickle it.
        source: see `annotate`.
        writing: a context manager that gives the writer; it is entered after the source is open.
        input_format: see `annotate`.
        batch_size: see `annotate`.
        text_key: see `annotate`.
        skip_bad: see `annotate`.
        keep: see `open_source`.
        n_process: see `annotate`.
        columns: which columns of CoNLL files are read.
        trees: whether trees are read or made: tokens are written as in a treebank, and an input
            without documents is an error.
        gap: what is written in place of a document that cannot be read or annotated; None for
            nothing.

    Raises:
        InputError: if a line is malformed, a process is killed, or there are no documents where
            there have to be some; errors of the pipeline, the source and the writer pass through.
        typer.Exit: if no document was annotated; then the writer does not finish.
    """
    counts: Counter[str] = Counter()
    with (
        open_source(source, input_format, text_key, keep, columns, unescaped=trees) as opened,
        writing as writer,
    ):
        annotator = Annotator(open_pipeline, opened.make_doc, writer.encode)
        with (
            closing(annotated(annotator, opened.records, batch_size, n_process)) as outcomes,
            progress() as (advance, say),
        ):
            started = time.perf_counter()  # the pipeline is open
            for record, outcome in outcomes:
                if isinstance(outcome, Malformed):
                    if not skip_bad:
                        raise InputError(
                            f"{record.where}: {outcome.reason}; correct the line or give --skip-bad"
                        )
                    counts["bad"] += 1
                    say(f"{record.where}: skipped: {outcome.reason}")
                    if gap is not None:
                        writer.write(gap)
                elif isinstance(outcome, Failed):
                    counts["failed"] += 1
                    say(f"{record.where}: not annotated: {outcome.reason}")
                    if gap is not None:
                        writer.write(gap)
                else:
                    writer.write(outcome.row)
                    counts["docs"] += 1
                    counts["words"] += outcome.words
                    advance(record.position, opened.total, counts["words"])
        lost = counts["failed"] + counts["bad"]
        if lost and not counts["docs"]:
            typer.echo(f"error: none of {lost:,} docs was annotated", err=True)
            raise typer.Exit(1)
        if trees and not counts["docs"]:
            raise InputError(f"{source}:1: has no sentence; give a file with some")
    typer.echo(summary(counts, time.perf_counter() - started), err=True)


def annotated(
    annotator: Annotator, records: Iterable[Record], batch_size: int, n_process: int
) -> Generator[tuple[Record, Outcome], None, None]:
    """Open the pipeline; then yield each record with its outcome, in order.

    Close the generator to end before the last record.

    Args:
        annotator: annotates the batches.
        records: the documents to annotate.
        batch_size: the number of documents in a batch; see `record_batches`.
        n_process: the number of processes; -1 means one per core.
    """
    waiting: deque[list[Record]] = deque()

    def contents() -> Iterator[list[bytes]]:
        yield []  # opens the pipeline
        for batch in record_batches(records, batch_size):
            waiting.append(batch)
            yield [record.content for record in batch]

    count = n_process if n_process > 0 else os.cpu_count() or 1
    several = in_processes(annotator, contents(), count) if count > 1 else None
    found = several or (annotator(batch) for batch in contents())
    next(found)
    return _with_records(found, waiting)


def _with_records(
    found: Generator[list[Outcome], None, None], waiting: deque[list[Record]]
) -> Generator[tuple[Record, Outcome], None, None]:
    with closing(found):
        for outcomes in found:
            yield from zip(waiting.popleft(), outcomes, strict=True)
