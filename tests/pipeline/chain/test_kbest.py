"""The k best sequences of a chain, and the k highest sums."""

from itertools import product

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_psa.pipeline.analyses import best_sums

numbers = st.lists(st.floats(-5, 0), min_size=1, max_size=5).map(sorted).map(lambda x: x[::-1])


@settings(max_examples=60)
@given(lists=st.lists(numbers, max_size=4), n=st.integers(1, 30))
def test_best_sums_are_those_of_all_combinations(lists, n):
    found = best_sums([numpy.array(values) for values in lists], n)
    every = sorted((sum(values) for values in product(*lists)), reverse=True)
    numpy.testing.assert_allclose([total for total, _ in found], every[:n], atol=1e-12)
    places = [tuple(ranks.tolist()) for _, ranks in found]
    assert len(set(places)) == len(places)
    for (total, _), ranks in zip(found, places):
        assert total == pytest.approx(sum(v[i] for v, i in zip(lists, ranks)))
