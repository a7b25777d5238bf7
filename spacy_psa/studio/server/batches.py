"""Forms batches from the texts of concurrent requests."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Waiting = tuple[str, "asyncio.Future[Any]"]
Answer = TypeVar("Answer")


class QueueFull(Exception):
    """Too many texts wait for the model."""


class Batcher:
    """Lets a model annotate the texts of all requests together, in one thread.

    A batch begins as soon as the model is free, with the texts that wait then. So a single request
    does not wait for others, and many requests share batches.

    Args:
        annotate: annotates texts, in order; called in the thread of the model.
        size: number of texts in a batch.
        limit: number of texts that may wait.
        on_batch: called with the number of texts of each batch.
    """

    def __init__(
        self,
        annotate: Callable[[Sequence[str]], list[Any]],
        size: int,
        limit: int,
        on_batch: Callable[[int], None],
    ):
        self._annotate = annotate
        self._size = size
        self._limit = limit
        self._on_batch = on_batch
        self._waiting: deque[Waiting] = deque()
        self._thread = ThreadPoolExecutor(1, "model")
        self._runner: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """The number of texts that wait."""
        return len(self._waiting)

    async def annotate(self, texts: Sequence[str]) -> list[Any]:
        """Annotate the texts of a request.

        Raises:
            QueueFull: if too many texts wait.
        """
        if len(self._waiting) + len(texts) > self._limit:
            raise QueueFull
        loop = asyncio.get_running_loop()
        own = [(text, loop.create_future()) for text in texts]
        self._waiting.extend(own)
        if self._runner is None or self._runner.done():
            self._runner = loop.create_task(self._run())
        try:
            return list(await asyncio.gather(*(future for _, future in own)))
        finally:  # a text whose request is gone is not annotated
            for _, future in own:
                future.cancel()

    async def call(self, function: Callable[..., Answer], *args: Any) -> Answer:
        """Call a function in the thread of the model."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *args)

    def close(self) -> None:
        """End the thread when it has done its work."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        while self._waiting:
            batch: list[Waiting] = []
            while self._waiting and len(batch) < self._size:
                text, future = self._waiting.popleft()
                if not future.done():
                    batch.append((text, future))
            if batch:
                await self._answer(batch)

    async def _answer(self, batch: list[Waiting]) -> None:
        self._on_batch(len(batch))
        try:
            rows = await self.call(self._annotate, [text for text, _ in batch])
        except Exception as error:
            if len(batch) > 1:  # the other texts are not to blame
                for item in batch:
                    await self._answer([item])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        for (_, future), row in zip(batch, rows, strict=True):
            if not future.done():
                future.set_result(row)
