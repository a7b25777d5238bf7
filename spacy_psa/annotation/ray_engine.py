"""Shards annotated by the workers of Ray Data, on this machine or on a cluster."""

import logging
import pickle
import warnings
from collections.abc import Generator, Sequence
from typing import Any

import numpy
import ray
from ray.data import ActorPoolStrategy, DataContext
from ray.exceptions import RayActorError, RayError
from ray.util.annotations import RayDeprecationWarning

from spacy_psa.annotation.shard_annotator import Report, ShardAnnotator
from spacy_psa.annotation.shards import Shard
from spacy_psa.cluster import ray_cluster
from spacy_psa.errors import InputError

RETRIES = 10
"""How often a shard is tried again whose worker was killed."""


class ShardWorker:
    """The function of an actor of Ray Data: shards in, reports out, both pickled.

    Args:
        annotator: annotates the shards.
    """

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
    before the last shard.

    Args:
        annotator: annotates the shards.
        shards: the shards.
        workers: the number of workers, each on one core; -1 for all cores.
        address: the address of a Ray cluster; see `ray_cluster`.

    Raises:
        InputError: if there is no such cluster, or a shard's worker is killed again and again.
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
                "--batch-size, which keeps what is finished"
            ) from error
        except RayError as error:
            reason = str(error).strip().rpartition("\n")[2]
            raise InputError(
                f"a worker failed ({reason}); check that it has the same packages as this machine"
            ) from error
