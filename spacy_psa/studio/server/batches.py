"""Forms batches from the texts of concurrent requests."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

Row = dict[str, Any]
Answer = TypeVar("Answer")


class QueueFull(Exception):
    """Too many texts wait for the model."""


class _Waiting(NamedTuple):
    text: str
    future: "asyncio.Future[Row]"


class Batcher:
    """Lets a model annotate the texts of all requests together, in one thread.

    A batch begins as soon as the model is free, with what waits then. So a single request does not
    wait for others, and many requests share batches.

    Args:
        annotate: annotates texts, in order; called in the thread of the model.
        most: number of texts in a batch.
        waiting: number of texts that may wait.
        seen: called with the number of texts of each batch.

    Examples:
        >>> async def main():
        ...     batcher = Batcher(lambda texts: [{"length": len(text)} for text in texts])
        ...     rows = await batcher.annotate(["Ada", "met"])
        ...     batcher.close()
        ...     return rows
        >>> asyncio.run(main())
        [{'length': 3}, {'length': 3}]
    """

    def __init__(
        self,
        annotate: Callable[[Sequence[str]], list[Row]],
        most: int = 64,
        waiting: int = 10_000,
        seen: Callable[[int], None] = lambda count: None,
    ):
        self._annotate = annotate
        self._most = most
        self._limit = waiting
        self._seen = seen
        self._waiting: deque[_Waiting] = deque()
        self._thread = ThreadPoolExecutor(1, "model")
        self._runner: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """The number of texts that wait."""
        return len(self._waiting)

    async def annotate(self, texts: Sequence[str]) -> list[Row]:
        """Annotate texts.

        Args:
            texts: the texts of a request.

        Raises:
            QueueFull: if too many texts wait.
        """
        if len(self._waiting) + len(texts) > self._limit:
            raise QueueFull
        loop = asyncio.get_running_loop()
        own = [_Waiting(text, loop.create_future()) for text in texts]
        self._waiting.extend(own)
        if self._runner is None or self._runner.done():
            self._runner = loop.create_task(self._run())
        try:
            return list(await asyncio.gather(*(item.future for item in own)))
        finally:  # a text whose request is gone is not annotated
            for item in own:
                item.future.cancel()

    async def call(self, function: Callable[..., Answer], *args: Any) -> Answer:
        """Call a function in the thread of the model."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *args)

    def close(self) -> None:
        """End the thread when it has done its work."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        while self._waiting:
            batch: list[_Waiting] = []
            while self._waiting and len(batch) < self._most:
                item = self._waiting.popleft()
                if not item.future.done():
                    batch.append(item)
            if batch:
                await self._answer(batch)

    async def _answer(self, batch: list[_Waiting]) -> None:
        self._seen(len(batch))
        try:
            rows = await self.call(self._annotate, [item.text for item in batch])
        except Exception as error:
            if len(batch) > 1:  # the other texts are not to blame
                for item in batch:
                    await self._answer([item])
            elif not batch[0].future.done():
                batch[0].future.set_exception(error)
            return
        for item, row in zip(batch, rows, strict=True):
            if not item.future.done():
                item.future.set_result(row)
