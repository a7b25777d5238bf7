"""The nearest occurrences of words, against a plain search."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_psa.kernels import available
from spacy_psa.modules import occurrences
from spacy_psa.modules.occurrences import nearest_occurrences, without


@pytest.fixture(params=["kernel", "numpy"])
def path(request, monkeypatch):
    if request.param == "kernel" and not available():
        pytest.skip("numba does not work here")
    monkeypatch.setattr(occurrences, "available", lambda: request.param == "kernel")


def searched(words, documents, most):
    found = []
    for i, word in enumerate(words):
        places = [
            (abs(j - i), j)
            for j in range(len(words))
            if j != i and words[j] == word and documents[j] == documents[i]
        ]
        nearest = [j for _, j in sorted(places)[:most]]
        found.append(nearest + [-1] * (most - len(nearest)))
    return found


@given(
    tokens=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=40),
    most=st.integers(1, 5),
)
def test_the_two_walks_find_what_a_search_finds(tokens, most):
    tokens.sort(key=lambda token: token[1])  # documents follow each other
    words, documents = (list(column) for column in zip(*tokens, strict=True))
    expected = searched(words, documents, most)
    for fast in {False, available()}:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(occurrences, "available", lambda fast=fast: fast)
            found = nearest_occurrences(
                numpy.array(words, dtype="uint64"), numpy.array(documents), most
            )
        left = [[-1] * (most - found.shape[1])] * len(words)  # columns that no word needs
        assert [[*row, *rest] for row, rest in zip(found.tolist(), left)] == expected


def test_memory_depends_on_what_is_there_and_not_on_the_most_that_is_asked_for(path):
    words, documents = numpy.array([7, 7, 7, 8]), numpy.array([0, 0, 0, 0])
    found = nearest_occurrences(words, documents, most=10**12)
    assert found.tolist() == [[1, 2], [0, 2], [1, 0], [-1, -1]]


def test_one_word_ten_thousand_times_has_its_neighbours_alone(path):
    count = 10_000
    found = nearest_occurrences(numpy.zeros(count), numpy.zeros(count, dtype="int64"), most=4)
    assert found.shape == (count, 4)
    assert found[5000].tolist() == [4999, 5001, 4998, 5002]
    assert found[0].tolist() == [1, 2, 3, 4]


@given(
    words=st.lists(st.integers(0, 3), min_size=1, max_size=30),
    most=st.integers(1, 5),
    data=st.data(),
)
def test_what_is_left_out_is_no_occurrence_and_the_others_keep_their_order(words, most, data):
    left_out = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    occurrences = nearest_occurrences(numpy.array(words), numpy.zeros(len(words), int), most)
    found = without(occurrences, numpy.array(left_out))
    assert found.shape == occurrences.shape
    for row, before in zip(found.tolist(), occurrences.tolist(), strict=True):
        kept = [place for place in before if place >= 0 and not left_out[place]]
        assert row == kept + [-1] * (len(before) - len(kept))
