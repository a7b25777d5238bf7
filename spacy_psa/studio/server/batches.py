"""Forms batches from the texts of concurrent requests."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

CHARS = 100_000
"""Characters of a batch; further texts are left for the next one, so that none waits long."""
SHARE, PAUSE = 0.5, 0.01
"""The model waits for further requests at most this share of the batch before, and so many
seconds."""
Answer = TypeVar("Answer")


class QueueFull(Exception):
    """Too many texts wait for the model."""


class _Request:
    """The texts of a request and their rows so far; `done` gets the rows, or the first error."""

    def __init__(self, texts: Sequence[str]):
        self.rows: list[Any] = [None] * len(texts)
        self.left = len(texts)
        self.done: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()


class _Text(NamedTuple):
    request: _Request
    place: int
    text: str


class Batcher:
    """Lets a model annotate the texts of all requests together, in one thread.

    A batch begins as soon as the model is free, so a single client never waits for others. If
    several requests were answered together, their clients may ask again soon: the model waits for
    them a little while, as a large batch takes less time than two small ones.

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
        self._waiting: deque[_Text] = deque()
        self._asking = 0  # requests since the last batch began
        self._expected = 0  # the number of requests with which the next batch begins at once
        self._enough = asyncio.Event()
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
        if not texts:
            return []
        request = _Request(texts)
        self._waiting.extend(_Text(request, i, text) for i, text in enumerate(texts))
        self._asking += 1
        if self._asking >= self._expected:
            self._enough.set()
        if self._runner is None or self._runner.done():
            self._runner = asyncio.get_running_loop().create_task(self._run())
        try:
            return await request.done
        finally:  # a text whose request is gone is not annotated
            request.done.cancel()

    async def call(self, function: Callable[..., Answer], *args: Any) -> Answer:
        """Call a function in the thread of the model."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *args)

    def close(self) -> None:
        """End the thread when it has done its work."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        while self._waiting:
            batch: list[_Text] = []
            chars, self._asking = 0, 0
            while self._waiting and len(batch) < self._size and chars < CHARS:
                if not self._waiting[0].request.done.done():
                    batch.append(self._waiting[0])
                    chars += len(batch[-1].text)
                self._waiting.popleft()
            if batch:
                begin = clock()
                await self._answer(batch)
                answered = len({id(item.request) for item in batch})
                await self._wait_for(answered + self._asking, clock() - begin)

    async def _wait_for(self, requests: int, seconds: float) -> None:
        """Wait until so many have asked since the batch began that took some seconds."""
        if requests > 1 and len(self._waiting) < self._size:
            self._enough.clear()
            self._expected = requests
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._enough.wait(), min(SHARE * seconds, PAUSE))
            self._expected = 0

    async def _answer(self, batch: list[_Text]) -> None:
        self._on_batch(len(batch))
        try:
            rows = await self.call(self._annotate, [item.text for item in batch])
        except Exception as error:
            if len(batch) > 1:  # the other texts are not to blame
                for item in batch:
                    await self._answer([item])
            elif not batch[0].request.done.done():
                batch[0].request.done.set_exception(error)
            return
        for (request, place, _), row in zip(batch, rows, strict=True):
            request.rows[place] = row
            request.left -= 1
            if not request.left and not request.done.done():
                request.done.set_result(request.rows)
