"""The processes that train one pipeline together, as torchrun starts them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch.distributed as dist
from torch import Tensor

from spacy_psa.errors import InputError

Value = TypeVar("Value")
PATIENCE = timedelta(minutes=10)
"""How long a process waits for another one that is silent but not closed its connection."""


class Processes:
    """What the processes of one training tell each other.

    Each method must be called by all processes in the same order. One process alone tells itself.

    Args:
        rank: the number of this process; the first one, 0, writes all files.
        count: the number of processes.

    Examples:
        >>> alone = Processes()
        >>> alone.share("loss"), alone.gather(1.5)
        ('loss', [1.5])
    """

    def __init__(self, rank: int = 0, count: int = 1):
        self.rank = rank
        self.count = count

    @property
    def first(self) -> bool:
        """Whether this is the first process."""
        return self.rank == 0

    def share(self, value: Value) -> Value:
        """Give the value of the first process to all.

        Raises:
            InputError: if another process has ended.
        """
        if self.count == 1:
            return value
        box = [value]
        with _naming_the_end():
            dist.broadcast_object_list(box, src=0)
        return box[0]

    def gather(self, value: Value) -> list[Value]:
        """Give the values of all processes, in the order of their ranks, to all.

        Raises:
            InputError: if another process has ended.
        """
        if self.count == 1:
            return [value]
        found: list[Any] = [None] * self.count
        with _naming_the_end():
            dist.all_gather_object(found, value)
        return found

    def add(self, tensor: Tensor) -> "Addition":
        """Begin to add up the tensors of all processes, in place.

        Returns:
            What waits for the sum.

        Raises:
            InputError: if another process has ended.
        """
        if self.count == 1:
            return Addition(None)
        with _naming_the_end():
            return Addition(dist.all_reduce(tensor, async_op=True))


ALONE = Processes()
"""The process of a training that has one alone."""


class Addition:
    """A sum over processes that is under way.

    Args:
        work: the work of torch.distributed; None if there is none to do.
    """

    def __init__(self, work: Any):
        self.work = work

    def wait(self) -> None:
        """Wait for the sum.

        Raises:
            InputError: if another process has ended.
        """
        if self.work is not None:
            with _naming_the_end():
                self.work.wait()


def local_gpu(gpu: int) -> int:
    """Give the number of the GPU of this process.

    Args:
        gpu: the number that the user gave, -1 for the CPU. Under torchrun, each process of a
            machine takes a GPU of its own instead.
    """
    return int(os.environ["LOCAL_RANK"]) if gpu >= 0 and dist.is_torchelastic_launched() else gpu


@contextmanager
def started_by_torchrun(gpu: bool) -> Iterator[Processes]:
    """Join the processes that torchrun has started; without torchrun, this process is alone.

    Args:
        gpu: whether each process has a GPU; else they talk by gloo alone.
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
            "its own message says why; go on with --resume"
        ) from error
