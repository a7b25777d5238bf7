"""Predictions on a GPU, while the docs before are annotated."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import torch
from spacy.tokens import Doc
from thinc.api import set_active_gpu

AHEAD = 1
"""The batches that are predicted ahead."""
DEVICE = "gpu"
"""The type of the devices on which batches are predicted ahead."""
Predictions = Iterator[tuple[list[Doc], Callable[[], Any]]]


def predicted_ahead(pipe: Any, batches: Iterable[list[Doc]]) -> Predictions:
    """Predict the next batch in a thread, which mostly waits for the device.

    Meanwhile, the program writes annotation to the docs of this one, uses them and makes new docs.

    Yields:
        The docs, and a function that returns what `pipe.predict` does for them, or raises its
        error. A batch must have been annotated before the next is asked for.
    """
    waiting: deque[tuple[list[Doc], Future[Any]]] = deque()
    pool = ThreadPoolExecutor(1, "predict", _use_gpu, (_gpu(),))
    try:
        for docs in batches:
            # thinc keeps the device of new arrays in the context.
            waiting.append((docs, pool.submit(copy_context().run, pipe.predict, docs)))
            if len(waiting) > AHEAD:
                ready, result = waiting.popleft()
                yield ready, result.result
        while waiting:
            ready, result = waiting.popleft()
            yield ready, result.result
    finally:
        pool.shutdown(cancel_futures=True)


def _gpu() -> int | None:
    return torch.cuda.current_device() if torch.cuda.is_available() else None


def _use_gpu(number: int | None) -> None:
    """Let a thread use the GPU of another one."""
    if number is not None:
        set_active_gpu(number)
