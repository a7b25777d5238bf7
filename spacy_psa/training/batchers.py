"""Batches of sentences of like length."""

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from spacy.util import minibatch

from spacy_psa.errors import InputError


def bucket_by_length(
    size: int, buffer: int = 1000, get_length: Callable[[Any], int] = len
) -> Callable[[Iterable[Any]], Iterator[list[Any]]]:
    """`bucket_by_length.v1`: batches of `size` items of like length, in random order.

    Reads `buffer` items at a time (their order is the corpus reader's or the
    training loop's shuffle), sorts them by length and shuffles the batches, so an
    epoch sees every item once and a batch wastes little on its longest item.
    Random choices come from Python's `random`, which `spacy train` seeds.
    """
    if size < 1 or buffer < size:
        raise InputError(
            f"bucket_by_length.v1: size is {size} and buffer {buffer}; "
            "take a size of 1 or more and a buffer at least as large"
        )

    def batches(items: Iterable[Any]) -> Iterator[list[Any]]:
        for chunk in minibatch(items, buffer):
            ordered = list(minibatch(sorted(chunk, key=get_length), size))
            random.shuffle(ordered)
            yield from ordered

    return batches
