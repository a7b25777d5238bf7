"""`spacy-psa annotate`: reads text and writes annotated documents, as a stream."""

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_psa.cli.annotator import Annotator, Failed, Malformed, Outcome
from spacy_psa.cli.input import InputFormat, Record, open_source, resolve_format
from spacy_psa.cli.jsonl_writer import ANNOTATION
from spacy_psa.cli.output import OutputFormat, OutputTags, open_writer
from spacy_psa.cli.output import resolve_format as resolve_output_format
from spacy_psa.cli.processes import in_processes
from spacy_psa.cli.writer import Writer
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language


def annotate(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Folder or installed package of a pipeline.")
    ],
    source: Annotated[Path, typer.Argument(metavar="INPUT", help='File to read; "-" for stdin.')],
    target: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help='File to write; "-" for stdout.')
    ],
    input_format: Annotated[
        InputFormat,
        typer.Option(help="Format of INPUT; text is one document a line, auto goes by the name."),
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
) -> None:
    """Annotate text with a trained pipeline.

    INPUT is text with one document on each line, JSON lines ({"text": ...}), or a .spacy file; it
    may be gzipped (.gz). OUTPUT is JSON lines (text, entities with character offsets), a .spacy
    file, CoNLL columns or an HTML page. JSON lines keep the other keys of the input, but for ents,
    spans and tokens. The output file appears when all documents are done; a missing folder is made.

    Documents that cannot be annotated or written are named on stderr and left out. A malformed line
    ends the run, unless --skip-bad is given. The exit code is 1 if no document was annotated.

    \b
    Example:
      spacy-psa annotate training/model-best texts.txt annotated.jsonl
    """
    from spacy_psa.loading import load_pipeline

    if n_process == 0:
        raise InputError("--n-process 0: give a number of processes, or -1 for one per core")
    if text_key in ANNOTATION:
        raise InputError(
            f"--text-key {text_key}: the annotation has this key; rename it in the input"
        )
    # Before the model is loaded, because these checks take no time.
    check_source(source, input_format)
    resolve_output_format(target, output_format)
    annotate_file(
        partial(load_pipeline, model, gpu_id),
        source,
        open_writer(target, output_format, scheme, tokens, text_key),
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
        keep: see `annotate`.
        n_process: see `annotate`.

    Raises:
        InputError: if a line is malformed or a process is killed; errors of the pipeline, the
            source and the writer pass through.
        typer.Exit: if no document was annotated; then the writer does not finish.
    """
    counts: Counter[str] = Counter()
    with open_source(source, input_format, text_key, keep) as opened, writing as writer:
        annotator = Annotator(open_pipeline, opened.make_doc, writer.encode)
        with (
            closing(annotated(annotator, opened.records, batch_size, n_process)) as outcomes,
            _progress() as (advance, say),
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
                elif isinstance(outcome, Failed):
                    counts["failed"] += 1
                    say(f"{record.where}: not annotated: {outcome.reason}")
                else:
                    writer.write(outcome.row)
                    counts["docs"] += 1
                    counts["words"] += outcome.words
                    advance(record.position, opened.total, counts["words"])
        lost = counts["failed"] + counts["bad"]
        if lost and not counts["docs"]:
            typer.echo(f"error: none of {lost:,} docs was annotated", err=True)
            raise typer.Exit(1)
    typer.echo(_summary(counts, time.perf_counter() - started), err=True)


def annotated(
    annotator: Annotator, records: Iterable[Record], batch_size: int, n_process: int
) -> Generator[tuple[Record, Outcome], None, None]:
    """Open the pipeline; then yield each record with its outcome, in order.

    Close the generator to end before the last record.

    Args:
        annotator: annotates the batches.
        records: the documents to annotate.
        batch_size: the number of documents in a batch.
        n_process: the number of processes; -1 means one per core.
    """
    records = iter(records)
    waiting: deque[list[Record]] = deque()

    def contents() -> Iterator[list[bytes]]:
        yield []  # opens the pipeline
        for batch in iter(lambda: list(islice(records, batch_size)), []):
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


@contextmanager
def _progress() -> Iterator[tuple[Callable[[int, int | None, int], None], Callable[[str], None]]]:
    """Give `advance(position, total, words)` and `say(line)`; a terminal gets a bar."""
    import sys

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    if not sys.stderr.isatty():
        yield (lambda position, total, words: None), (lambda line: typer.echo(line, err=True))
        return
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.fields[words]:,} words"),
        BarColumn(),
        TextColumn("{task.fields[speed]:,.0f} words/s"),
        TimeElapsedColumn(),
    )
    # No thread refreshes the bar: `advance` does.
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as bar:
        task = bar.add_task("", total=None, words=0, speed=0.0)
        started = shown = time.perf_counter()

        def advance(position: int, total: int | None, words: int) -> None:
            nonlocal shown
            now = time.perf_counter()
            if now - shown > 0.1:
                shown = now
                speed = words / (now - started)
                bar.update(task, completed=position, total=total, words=words, speed=speed)
                bar.refresh()

        def say(line: str) -> None:
            console.print(line, markup=False, highlight=False, soft_wrap=True)

        yield advance, say


def _summary(counts: Counter[str], seconds: float) -> str:
    parts = [
        f"{counts['docs']:,} docs",
        f"{counts['words']:,} words",
        f"{seconds:.1f} s",
        f"{counts['words'] / seconds:,.0f} words/s",
    ]
    if counts["failed"]:
        parts.append(f"{counts['failed']:,} failed")
    if counts["bad"]:
        parts.append(f"{counts['bad']:,} malformed lines skipped")
    return ", ".join(parts)
