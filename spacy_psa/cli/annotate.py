"""`spacy-psa annotate`: reads text and writes annotated documents, as a stream."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_psa.cli.input import InputFormat, Record, open_source, resolve_format
from spacy_psa.cli.output import OutputFormat, OutputTags, Writer, open_writer
from spacy_psa.cli.output import resolve_format as resolve_output_format
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

ZONE = 16
"""The number of batches after which spaCy forgets the words that it has met in them."""

Failed = Callable[[Record, Exception], None]


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

    INPUT is text with one document on each line, JSON lines ({"text": ...}), or a .spacy file.
    OUTPUT is JSON lines (text, entities with character offsets), a .spacy file, CoNLL columns or an
    HTML page. The output file appears when all documents are done.

    Documents on which the pipeline fails are named on stderr and left out. A malformed line ends
    the run, unless --skip-bad is given. The exit code is 1 if no document was annotated.

    \b
    Example:
      spacy-psa annotate training/model-best texts.txt annotated.jsonl
    """
    from spacy_psa.loading import load_pipeline

    if n_process == 0:
        raise InputError("--n-process 0: give a number of processes, or -1 for one per core")
    # Before the model is loaded, because these checks take no time.
    check_source(source, input_format)
    resolve_output_format(target, output_format)
    annotate_file(
        load_pipeline(model, gpu_id),
        source,
        open_writer(target, output_format, scheme, tokens),
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
    nlp: "Language",
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
        nlp: the pipeline.
        source: see `annotate`.
        writing: a context manager that gives the writer; it is entered after the source is open.
        input_format: see `annotate`.
        batch_size: see `annotate`.
        text_key: see `annotate`.
        skip_bad: see `annotate`.
        keep: see `annotate`.
        n_process: see `annotate`.

    Raises:
        InputError: if a line is malformed; errors of the source and the writer pass through.
        typer.Exit: if no document was annotated; then the writer does not finish.
    """
    counts: Counter[str] = Counter()
    started = time.perf_counter()
    with _progress() as (advance, say):

        def bad(where: str, reason: str) -> None:
            if not skip_bad:
                raise InputError(f"{where}: {reason}; correct the line or give --skip-bad")
            counts["bad"] += 1
            say(f"{where}: skipped: {reason}")

        def failed(record: Record, error: Exception) -> None:
            counts["failed"] += 1
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            say(f"{record.where}: not annotated: {reason}")

        with (
            open_source(source, input_format, nlp.vocab, text_key, keep, bad) as opened,
            writing as writer,
        ):
            for record, doc in annotated(nlp, opened.records, batch_size, n_process, failed):
                writer.write(doc)
                counts["docs"] += 1
                counts["words"] += len(doc)
                advance(record.position, opened.total, counts["words"])
            if counts["failed"] and not counts["docs"]:
                typer.echo(f"error: none of {counts['failed']:,} docs was annotated", err=True)
                raise typer.Exit(1)
    typer.echo(_summary(counts, time.perf_counter() - started), err=True)


def annotated(
    nlp: "Language",
    records: Iterable[Record],
    batch_size: int,
    n_process: int,
    failed: Failed,
) -> "Iterator[tuple[Record, Doc]]":
    """Yield each record with its annotated `Doc`, in order.

    Use each `Doc` before you take the next one. If the pipeline fails on a batch, the documents of
    the batch are annotated again one by one, and `failed` is called for those that fail alone.
    (`nlp.set_error_handler` would lose the whole batch, and raises an error for spaCy's own `ner`
    and `parser`.)

    Args:
        nlp: the pipeline.
        records: the documents to annotate.
        batch_size: the number of documents in a batch.
        n_process: the number of processes; -1 means one per core.
        failed: called with the record and the error of each document that fails.
    """
    if n_process != 1:
        yield from _in_processes(nlp, records, batch_size, n_process, failed)
        return
    records = iter(records)
    batches = iter(lambda: list(islice(records, batch_size)), [])
    done = ZONE
    while done == ZONE:
        done = 0
        # spaCy keeps every word that it meets. A memory zone frees the words of its documents,
        # so that memory does not grow with the input.
        with nlp.memory_zone():
            for batch in islice(batches, ZONE):
                yield from _batch(nlp, batch, failed)
                done += 1


def _batch(nlp: "Language", batch: list[Record], failed: Failed) -> "Iterator[tuple[Record, Doc]]":
    made = list(_made(nlp, batch, failed))
    try:
        docs = list(nlp.pipe([doc for _, doc in made], batch_size=len(batch)))
    except Exception:  # a component may raise any error; the document is found below
        docs = []
    for i, (record, _) in enumerate(made):
        doc = docs[i] if len(docs) == len(made) else _alone(nlp, record, failed)
        if doc is not None:
            yield record, doc


def _in_processes(
    nlp: "Language", records: Iterable[Record], batch_size: int, n_process: int, failed: Failed
) -> "Iterator[tuple[Record, Doc]]":
    from spacy.util import ignore_error

    under_way: deque[Record] = deque()

    def feed() -> "Iterator[tuple[Doc, int]]":
        for record, doc in _made(nlp, records, failed):
            under_way.append(record)
            yield doc, record.number

    def retried(record: Record) -> "list[tuple[Record, Doc]]":
        nlp.default_error_handler = handler
        doc = _alone(nlp, record, failed)
        nlp.default_error_handler = ignore_error
        return [] if doc is None else [(record, doc)]

    # Errors in a process are ignored here, so that the stream continues; see `retried`.
    handler, nlp.default_error_handler = nlp.default_error_handler, ignore_error
    try:
        for doc, number in nlp.pipe(
            feed(), as_tuples=True, batch_size=batch_size, n_process=n_process
        ):
            # Documents that went in before this one and have not come out have failed.
            while under_way:
                record = under_way.popleft()
                if record.number == number:
                    yield record, doc
                    break
                yield from retried(record)
        for record in under_way:
            yield from retried(record)
    finally:
        nlp.default_error_handler = handler


def _made(
    nlp: "Language", records: Iterable[Record], failed: Failed
) -> "Iterator[tuple[Record, Doc]]":
    """Yield tokenized documents; documents that cannot be tokenized are left out."""
    for record in records:
        try:
            doc = record.make_doc(nlp)
        except Exception as error:  # a tokenizer may raise any error
            failed(record, error)
        else:
            yield record, doc


def _alone(nlp: "Language", record: Record, failed: Failed) -> "Doc | None":
    # A new doc, because the components before the one that failed have changed the first.
    for _, doc in _made(nlp, [record], failed):
        try:
            return nlp(doc)
        except Exception as error:
            failed(record, error)
    return None


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
    # Without a refreshing thread: if a thread holds a lock while spaCy forks its processes,
    # they would hang.
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
