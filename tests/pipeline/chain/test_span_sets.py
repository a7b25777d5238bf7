"""The heaviest set of each number of spans, against all sets."""

from itertools import combinations

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_psa.pipeline.chain.span_sets import heaviest_set, most_apart

spans_of_a_doc = given(
    spans=st.lists(st.tuples(st.integers(0, 8), st.integers(1, 4), st.integers(0, 6)), max_size=8)
)


def arrays(spans):
    """The weights, starts and ends of (start, length, weight)."""
    starts, lengths, weights = numpy.array(spans, dtype="int64").reshape(-1, 3).T
    return weights.astype("float64"), starts, starts + lengths


def sets_of(size, starts, ends):
    """All sets of a number of spans that do not overlap."""
    for chosen in combinations(range(len(starts)), size):
        if all(ends[a] <= starts[b] or ends[b] <= starts[a] for a, b in combinations(chosen, 2)):
            yield chosen


@settings(max_examples=100)
@spans_of_a_doc
def test_the_set_has_the_highest_sum_of_all_sets_of_its_size(spans):
    weights, starts, ends = arrays(spans)
    for size in range(1, len(spans) + 2):
        sums = [weights[list(chosen)].sum() for chosen in sets_of(size, starts, ends)]
        value, found = heaviest_set(size, weights, starts, ends)
        assert value == max(sums, default=-numpy.inf)
        if sums:
            assert tuple(sorted(found)) in set(sets_of(size, starts, ends))
            assert weights[found].sum() == value
        else:
            assert found == []


@spans_of_a_doc
def test_the_largest_set_without_overlap(spans):
    _, starts, ends = arrays(spans)
    possible = [size for size in range(len(spans) + 1) if any(sets_of(size, starts, ends))]
    assert most_apart(starts, ends) == max(possible, default=0)


@pytest.mark.parametrize(
    "size, value, places",
    [(1, 10, [0]), (2, 15, [0, 4]), (3, 13, [1, 2, 4]), (4, 17, [1, 2, 3, 4]), (5, -numpy.inf, [])],
)
def test_a_long_span_is_worth_more_than_two_short_ones_but_less_than_three(size, value, places):
    """So the sums of the group, 10, 8 and 12, are not concave."""
    starts, ends = numpy.array([0, 0, 1, 2, 3]), numpy.array([3, 1, 2, 3, 4])
    found = heaviest_set(size, numpy.array([10.0, 4.0, 4.0, 4.0, 5.0]), starts, ends)
    assert found[0] == value
    assert sorted(found[1]) == places
