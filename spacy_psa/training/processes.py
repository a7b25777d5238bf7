"""The processes that train one pipeline together, as torchrun starts them."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch.distributed as dist
from torch import Tensor

from spacy_psa.errors import InputError

Value = TypeVar("Value")
PATIENCE = timedelta(minutes=10)
"""How long a process waits for one that is silent but has not closed its connection."""


class Processes:
    """The messages between the processes of one training; by default there is one process.

    All processes must call each method in the same order. Each method raises InputError if another
    process has ended.

    Args:
        rank: the number of this process; the first one, 0, writes all files.
        count: the number of processes.
    """

    def __init__(self, rank: int = 0, count: int = 1):
        self.rank = rank
        self.count = count

    @property
    def first(self) -> bool:
        """Whether this is the first process."""
        return self.rank == 0

    def share(self, value: Value) -> Value:
        """Return the value of the first process in all."""
        if self.count == 1:
            return value
        box = [value]
        with _naming_the_end():
            dist.broadcast_object_list(box, src=0)
        return box[0]

    def gather(self, value: Value) -> list[Value]:
        """Return the values of all processes, in the order of their ranks."""
        if self.count == 1:
            return [value]
        values: list[Any] = [None] * self.count
        with _naming_the_end():
            dist.all_gather_object(values, value)
        return values

    def add(self, tensor: Tensor) -> Callable[[], None]:
        """Begin to add up the tensors of several processes, in place.

        Returns:
            A function that waits for the sum.
        """
        with _naming_the_end():
            work = dist.all_reduce(tensor, async_op=True)

        def wait() -> None:
            with _naming_the_end():
                work.wait()

        return wait


def local_gpu(gpu: int) -> int:
    """Return the number of the GPU of this process.

    Args:
        gpu: the number that the user named, -1 for the CPU. Under torchrun, each process of a
            machine uses a GPU of its own instead.
    """
    return int(os.environ["LOCAL_RANK"]) if gpu >= 0 and dist.is_torchelastic_launched() else gpu


@contextmanager
def started_by_torchrun(gpu: bool) -> Iterator[Processes]:
    """Join the processes that torchrun has started; without torchrun, there is only this process.

    Without a GPU for each, they only communicate by gloo.
    """
    if not dist.is_torchelastic_launched():
        yield Processes()
        return
    backend = "cpu:gloo,cuda:nccl" if gpu else "gloo"
    with _naming_the_end():
        store, rank, count = next(dist.rendezvous("env://", timeout=PATIENCE))
        # torchrun keeps its store when it starts the processes again, and with it the addresses of
        # those that have ended.
        store = dist.PrefixStore(f"start-{os.environ['TORCHELASTIC_RESTART_COUNT']}", store)
        dist.init_process_group(backend, timeout=PATIENCE, store=store, rank=rank, world_size=count)
    try:
        yield Processes(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()


@contextmanager
def _naming_the_end() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # torch.distributed has no narrower one
        raise InputError(
            "another process of this training has ended or does not answer: "
            "see its own message for the reason; continue with --resume"
        ) from error
