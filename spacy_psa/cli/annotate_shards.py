"""`spacy-psa annotate --engine ray`: annotates the files of a collection on many workers."""

import time
from collections import Counter
from collections.abc import Generator
from contextlib import closing
from typing import TYPE_CHECKING

import typer

from spacy_psa.annotation.input import InputFormat
from spacy_psa.cli.output import OutputFormat
from spacy_psa.cli.progress import progress, summary
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy_psa.annotation.shard_annotator import Report

SUFFIXES = {
    OutputFormat.auto: None,
    OutputFormat.jsonl: ".jsonl",
    OutputFormat.parquet: ".parquet",
}


def annotate_shards(
    model: str,
    source: str,
    target: str,
    *,
    input_format: InputFormat,
    output_format: OutputFormat,
    batch_size: int,
    workers: int,
    address: str | None,
    text_key: str,
    tokens: bool,
    skip_bad: bool,
) -> None:
    """Annotate all files of `source`, but for those whose output is in `target`.

    The arguments are those of `annotate`.

    Raises:
        InputError: if Ray is not installed, the input or the output cannot be used, the pipeline
            cannot be opened, or a shard was not finished.
        typer.Exit: if no document was annotated, but some were read.
    """
    try:
        from spacy_psa.annotation.ray_engine import annotate_shards as reports_of
        from spacy_psa.annotation.row_annotator import RowAnnotator
        from spacy_psa.annotation.shard_annotator import ShardAnnotator
        from spacy_psa.annotation.shards import Place, check_apart, find_shards, finished
    except ModuleNotFoundError as error:
        if error.name not in ("ray", "pyarrow", "pandas"):
            raise
        raise InputError("--engine ray needs Ray: pip install 'spacy-psa[ray]'") from error

    if "-" in (source, target):
        raise InputError("--engine ray: give a file or a folder, not -")
    if output_format not in SUFFIXES:
        raise InputError(
            f"--format {output_format.value}: --engine ray writes jsonl and parquet; take one"
        )
    places = Place.of(source), Place.of(target)
    shards = find_shards(places[0], SUFFIXES[output_format], input_format)
    check_apart(*places, shards)
    done = finished(places[1])
    missing = [shard for shard in shards if shard.target not in done]
    annotator = ShardAnnotator(
        *places,
        RowAnnotator(model, text_key, tokens, batch_size=batch_size),
        input_format,
        skip_bad,
    )
    counts = Counter(kept=len(shards) - len(missing))
    started = time.perf_counter()
    if missing:
        total = sum(shard.size for shard in missing)
        try:
            with closing(reports_of(annotator, missing, workers, address)) as reports:
                _follow(reports, total, counts)
        finally:
            finished(places[1])  # removes what workers that were ended have left
    typer.echo(summary(counts, time.perf_counter() - started), err=True)
    if counts["unfinished"]:
        raise InputError(
            f"{counts['unfinished']:,} of {len(shards):,} shards were not finished; "
            "correct what is named above and run the same command again"
        )
    if counts["failed"] + counts["bad"] and not counts["docs"]:
        raise typer.Exit(1)


def _follow(reports: "Generator[Report, None, None]", total: int, counts: Counter[str]) -> None:
    replaced: set[str] = set()
    position = 0
    with progress() as (advance, say):
        for report in reports:
            if report.fatal:
                raise InputError(report.error)
            for message in report.messages:
                say(message)
            left_out = report.failed + report.bad - len(report.messages)
            if left_out:
                say(f"{report.shard.source}: and {left_out:,} others")
            if report.error is not None:
                say(f"not finished: {report.error}")
                counts["unfinished"] += 1
            else:
                counts.update(
                    docs=report.docs,
                    words=report.words,
                    failed=report.failed,
                    bad=report.bad,
                    kept=report.kept,
                )
            replaced.update(report.replaced)
            position += report.shard.size
            advance(position, total, counts["words"])
    if replaced:
        names = ", ".join(sorted(replaced))
        typer.echo(f"warning: the annotation replaces keys of the input: {names}", err=True)
