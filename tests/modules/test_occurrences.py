"""The nearest occurrences of words, against a plain search."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_psa.kernels import available
from spacy_psa.modules import occurrences
from spacy_psa.modules.occurrences import nearest_occurrences


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
        assert found.tolist() == expected


def test_one_word_ten_thousand_times_has_its_neighbours_alone(path):
    count = 10_000
    found = nearest_occurrences(numpy.zeros(count), numpy.zeros(count, dtype="int64"), most=4)
    assert found.shape == (count, 4)
    assert found[5000].tolist() == [4999, 5001, 4998, 5002]
    assert found[0].tolist() == [1, 2, 3, 4]
