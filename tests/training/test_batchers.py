"""bucket_by_length.v1: batches of like length in random order."""

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.util import fix_random_seed, registry

from spacy_psa.errors import InputError
from spacy_psa.training.batchers import bucket_by_length

items = st.lists(st.text(alphabet="ab", max_size=9), max_size=60)


@given(items, st.integers(1, 7), st.integers(0, 20))
def test_every_item_comes_once(corpus, size, more):
    batches = list(bucket_by_length(size, size + more)(corpus))
    assert Counter(item for batch in batches for item in batch) == Counter(corpus)
    assert all(1 <= len(batch) <= size for batch in batches)


@given(items, st.integers(1, 7))
def test_batches_of_one_buffer_do_not_overlap_in_length(corpus, size):
    batches = list(bucket_by_length(size, 1000)(corpus))
    assert len(batches) == -(-len(corpus) // size)
    spans = sorted((min(map(len, batch)), max(map(len, batch))) for batch in batches)
    for (_, longest), (shortest, _) in pairwise(spans):
        assert longest <= shortest


def test_little_is_wasted_on_padding():
    generator = random.Random(0)
    corpus = ["x" * generator.randint(1, 60) for _ in range(1000)]
    batches = list(bucket_by_length(10)(corpus))
    padded = sum(len(batch) * max(map(len, batch)) for batch in batches)
    assert padded < 1.05 * sum(map(len, corpus))


def test_a_buffer_is_read_at_a_time():
    corpus = ["x" * n for n in range(20)]
    batches = list(bucket_by_length(2, 4)(corpus))
    blocks = [batches[i : i + 2] for i in range(0, 10, 2)]
    assert [sorted(len(x) for batch in block for x in batch) for block in blocks] == [
        list(range(i, i + 4)) for i in range(0, 20, 4)
    ]


def test_a_stream_is_not_read_ahead_of_its_buffer():
    read = []

    def stream():
        for n in range(1000):
            read.append(n)
            yield "x" * n

    next(bucket_by_length(2, 10)(stream()))
    assert len(read) == 10


def test_batches_come_in_random_order_that_the_seed_fixes():
    corpus = ["x" * n for n in range(100)]
    batcher = bucket_by_length(5)
    orders = []
    for seed in (1, 1, 2):
        fix_random_seed(seed)
        orders.append(list(batcher(corpus)))
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0])


def test_two_epochs_differ():
    corpus = ["x" * n for n in range(100)]
    batcher = bucket_by_length(5)
    random.seed(0)
    assert list(batcher(corpus)) != list(batcher(corpus))


def test_length_is_what_the_caller_says():
    batches = bucket_by_length(2, 4, get_length=lambda n: -n)([3, 1, 4, 2])
    assert sorted(batches) == [[2, 1], [4, 3]]


@pytest.mark.parametrize(("size", "buffer"), [(0, 10), (-1, 10), (11, 10)])
def test_bad_sizes_are_refused_at_once(size, buffer):
    with pytest.raises(InputError, match=rf"size is {size} and buffer {buffer}"):
        bucket_by_length(size, buffer)


def test_a_config_finds_the_batcher():
    config = {"@batchers": "spacy-psa.bucket_by_length.v1", "size": 2}
    batcher = registry.resolve({"batcher": config})["batcher"]
    batches = sorted(map(sorted, batcher(["a", "bbb", "bb", "cccc"])))
    assert batches == [["a", "bb"], ["bbb", "cccc"]]
