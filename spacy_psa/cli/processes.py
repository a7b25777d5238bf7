"""A function in several processes, on a stream, with the results in order."""

import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, parent_process
from threading import Thread
from typing import Any, TypeVar

from spacy_psa.errors import InputError

Argument = TypeVar("Argument")
Result = TypeVar("Result")

AHEAD = 2
"""The number of arguments for each process that are taken before their turn."""


def in_processes(
    function: Callable[[Argument], Result], arguments: Iterable[Argument], count: int
) -> Generator[Result, None, None]:
    """Yield the result for each argument, in order, as `map` does.

    Each process has its own copy of the function and one thread of torch. Arguments are taken as
    they are needed, with a few ahead. Close the generator to end the processes before the last
    argument.

    Args:
        function: the function, which can be pickled.
        arguments: the arguments, which can be pickled.
        count: the number of processes.

    Raises:
        InputError: if a process is killed. Errors of the function and of `arguments` pass through.

    Examples:
        >>> list(in_processes(abs, [-1, 2, -3], 2))
        [1, 2, 3]
    """
    pool = ProcessPoolExecutor(count, initializer=_start, initargs=(function,))
    waiting: deque[Future[Result]] = deque()
    try:
        for argument in arguments:
            waiting.append(pool.submit(_call, argument))
            if len(waiting) > AHEAD * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise InputError(
            "a process was killed, perhaps because memory ran out; "
            "give a smaller --n-process or --batch-size"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_function: Callable[[Any], Any]
"""The function of this process."""


def _start(function: Callable[[Any], Any]) -> None:
    import torch

    global _function
    _function = function
    torch.set_num_threads(
        1
    )  # as many processes as cores, and torch's threads do not survive a fork
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the first process to handle
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Without this, the process would wait for ever if its parent is killed."""
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _call(argument: Any) -> Any:
    return _function(argument)
