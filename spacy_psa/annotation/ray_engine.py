"""Shards annotated by the workers of Ray Data, on this machine or on a cluster."""

import logging
import pickle
import time
import warnings
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any

import numpy
import ray
from ray.data import ActorPoolStrategy, DataContext
from ray.exceptions import RayActorError, RayError
from ray.util.annotations import RayDeprecationWarning

from spacy_psa.annotation.input import Reading
from spacy_psa.annotation.row_annotator import RowAnnotator
from spacy_psa.annotation.run import Run, Summary
from spacy_psa.annotation.shard_annotator import Report, ShardAnnotator
from spacy_psa.annotation.shards import Place, Shard, check_apart, find_shards, finished
from spacy_psa.annotation.writers import OutputFormat
from spacy_psa.cluster import ray_cluster
from spacy_psa.errors import InputError

RETRIES = 10
"""How often a shard is tried again whose worker was killed."""
SUFFIXES: dict[str, str | None] = {"auto": None, "jsonl": ".jsonl", "parquet": ".parquet"}


def annotate_folder(
    model: str,
    source: str,
    target: str,
    reading: Reading,
    form: OutputFormat,
    run: Run,
    tokens: bool = False,
    address: str | None = None,
) -> Summary:
    """Annotate all files of `source`, except those with an output in `target`.

    Raises:
        NothingAnnotated: if no document was annotated, but some were read.
    """
    run.check(reading.text_key)
    if run.gpu_id >= 0:
        raise InputError(f"--gpu-id {run.gpu_id}: --engine ray annotates on CPUs; leave it out")
    if "-" in (source, target):
        raise InputError("--engine ray: needs a file or a folder, not -")
    if form not in SUFFIXES:
        raise InputError(f"--format {form}: --engine ray writes jsonl and parquet; choose one")
    if form == "parquet" and reading.text_key == "meta":
        raise InputError(
            "--text-key meta: the table has the other keys in this column; rename it in the input"
        )
    places = Place.of(source), Place.of(target)
    shards = find_shards(places[0], SUFFIXES[form], reading.format)
    check_apart(*places, shards)
    done = finished(places[1])
    missing = [shard for shard in shards if shard.target not in done]
    work = RowAnnotator(model, reading.text_key, tokens, batch_size=run.batch_size)
    annotator = ShardAnnotator(*places, work, reading.format, run.skip_bad)
    summary, unfinished = Summary(kept=len(shards) - len(missing)), 0
    started = time.perf_counter()
    if missing:
        try:
            with closing(annotate_shards(annotator, missing, run.n_process, address)) as reports:
                total = sum(shard.size for shard in missing)
                unfinished = _follow(reports, total, summary, run)
        finally:
            finished(places[1])  # removes the half-written files of workers that were ended
    summary.seconds = time.perf_counter() - started
    if unfinished:
        run.watch.say(str(summary))
        raise InputError(
            f"{unfinished:,} of {len(shards):,} shards were not finished; "
            "correct what is named above and run the same command again"
        )
    summary.check()
    return summary


def _follow(reports: Generator[Report, None, None], total: int, summary: Summary, run: Run) -> int:
    """Add up the reports, and count the shards that were not finished."""
    position = unfinished = 0
    for report in reports:
        if report.fatal:
            assert report.error is not None
            raise InputError(report.error)
        for message in report.messages:
            run.watch.say(message)
        if others := report.failed + report.bad - len(report.messages):
            run.watch.say(f"{report.shard.source}: and {others:,} others")
        if report.error is not None:
            run.watch.say(f"not finished: {report.error}")
            unfinished += 1
        else:
            for name in ("docs", "words", "failed", "bad", "kept"):
                setattr(summary, name, getattr(summary, name) + getattr(report, name))
        summary.replaced = summary.replaced.union(report.replaced)
        position += report.shard.size
        run.watch.advance(position, total, summary.words)
    return unfinished


class ShardWorker:
    """The function of an actor of Ray Data: shards in, reports out, both pickled."""

    def __init__(self, annotator: ShardAnnotator) -> None:
        import torch

        torch.set_num_threads(1)  # A worker has one core.
        self.annotator = annotator

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        reports = [self.annotator(pickle.loads(shard)) for shard in batch["shard"]]
        return {"report": numpy.array([pickle.dumps(each) for each in reports], dtype=object)}


def annotate_shards(
    annotator: ShardAnnotator, shards: Sequence[Shard], workers: int, address: str | None = None
) -> Generator[Report, None, None]:
    """Yield the report of each shard, in the order in which they are done.

    A worker that is killed is started again, and its shard with it. Close the generator to end
    before the last shard. Each of the `workers` is on one core; -1 for all cores. For the address
    of a Ray cluster see `ray_cluster`.
    """
    with ray_cluster(workers, address):
        count = workers if workers > 0 else int(ray.cluster_resources()["CPU"])
        DataContext.get_current().enable_progress_bars = False
        rows = [{"shard": pickle.dumps(shard)} for shard in shards]
        with warnings.catch_warnings():
            # Restarts have no named argument yet.
            warnings.filterwarnings("ignore", category=RayDeprecationWarning)
            reports = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
                ShardWorker,
                fn_constructor_args=(annotator,),
                batch_size=1,
                compute=ActorPoolStrategy(size=min(count, len(rows))),
                num_cpus=1,
                max_restarts=-1,  # machines may be taken away any number of times
                max_task_retries=RETRIES,
            )
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        try:
            for row in reports.iter_rows():
                yield pickle.loads(row["report"])
        except RayActorError as error:
            raise InputError(
                f"workers on one shard were killed more than {RETRIES} times, perhaps because "
                "memory ran out; run the same command again with a smaller --n-process or "
                "--batch-size, which keeps finished shards"
            ) from error
        except RayError as error:
            reason = str(error).strip().rpartition("\n")[2]
            raise InputError(
                f"a worker failed ({reason}); check that it has the same packages as this machine"
            ) from error
