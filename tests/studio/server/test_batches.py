"""Batches from the texts of concurrent requests."""

import asyncio

import pytest

from spacy_psa.studio.server import batches
from spacy_psa.studio.server.batches import Batcher
from tests.helpers.patience import PATIENCE


@pytest.fixture
def batcher(monkeypatch):
    """A model that waits for further requests as long as it may, and the sizes of its batches."""
    monkeypatch.setattr(batches, "PAUSE", 10 * PATIENCE)
    monkeypatch.setattr(batches, "SHARE", float("inf"))
    sizes = []
    batcher = Batcher(lambda texts: [text.upper() for text in texts], 100, 100, sizes.append)
    yield batcher, sizes
    batcher.close()


def test_clients_that_were_answered_together_share_the_next_batch(batcher):
    batcher, sizes = batcher

    async def client(rank):
        while True:
            for _ in range(rank):
                await asyncio.sleep(0)  # the others ask first
            assert await batcher.annotate(["a", "b"]) == ["A", "B"]

    async def ask():
        clients = [asyncio.create_task(client(rank)) for rank in range(4)]
        while len(sizes) < 10 and not any(task.done() for task in clients):
            await asyncio.sleep(0.001)
        for task in clients:
            task.cancel()

    asyncio.run(asyncio.wait_for(ask(), PATIENCE))
    assert sizes[5:10] == [8] * 5


def test_a_single_client_never_waits(batcher):
    batcher, sizes = batcher

    async def ask():
        for _ in range(3):
            await batcher.annotate(["a"])

    asyncio.run(asyncio.wait_for(ask(), PATIENCE))
    assert sizes == [1, 1, 1]


def test_a_batch_ends_after_some_characters(batcher, monkeypatch):
    monkeypatch.setattr(batches, "CHARS", 10)
    batcher, sizes = batcher
    texts = ["a" * 6] * 3 + ["a" * 20] * 2
    rows = asyncio.run(batcher.annotate(texts))
    assert (rows, sizes) == ([text.upper() for text in texts], [2, 2, 1])
