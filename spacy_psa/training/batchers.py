"""Batches of sentences of similar length."""

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from spacy.util import minibatch

from spacy_psa.errors import InputError


def bucket_by_length(
    size: int, buffer: int = 1000, get_length: Callable[[Any], int] | None = None
) -> Callable[[Iterable[Any]], Iterator[list[Any]]]:
    """Build the batcher `bucket_by_length.v1`: batches of items of similar length, in random order.

    It reads `buffer` items at a time, in the order of the corpus, sorts them by length and shuffles
    the batches. So an epoch has every item once, and a batch has little padding. Random choices
    come from Python's `random`, which `spacy train` seeds.

    Args:
        size: number of items of a batch.
        buffer: number of items that are sorted together; at least `size`.
        get_length: function of an item that returns its length; None for `len`.

    Raises:
        InputError: if `size` is below 1, or `buffer` below `size`.

    Examples:
        >>> batches = bucket_by_length(size=2, buffer=4)
        >>> sorted(batches(["a", "ccc", "b", "ddd"]))
        [['a', 'b'], ['ccc', 'ddd']]
    """
    if size < 1 or buffer < size:
        raise InputError(
            f"bucket_by_length.v1: size is {size} and buffer {buffer}: "
            "set a size of 1 or more and a buffer at least as large"
        )

    def batches(items: Iterable[Any]) -> Iterator[list[Any]]:
        for chunk in minibatch(items, buffer):
            ordered = list(minibatch(sorted(chunk, key=get_length or len), size))
            random.shuffle(ordered)
            yield from ordered

    return batches
