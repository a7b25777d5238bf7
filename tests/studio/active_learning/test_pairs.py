"""Agreement of annotators: kappa, F1 and the texts where they differ."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_psa.studio.active_learning.decisions import Decided
from spacy_psa.studio.active_learning.pairs import compare_annotators, kappa

LABELS = ["O", "PER", "ORG"]


def decided(spans=(), outside=()):
    return Decided(tuple(spans), (), frozenset(outside))


@given(st.lists(st.tuples(*[st.sampled_from(LABELS)] * 2), min_size=1, max_size=40))
def test_kappa_is_the_agreement_above_that_of_shuffled_labels(words):
    """The expected agreement is that over all pairs of a word of one and a word of the other."""
    cells = {pair: words.count(pair) for pair in words}
    first, second = zip(*words)
    same = sum(left == right for left, right in words) / len(words)
    pairs = [left == right for left, right in product(first, second)]
    expected = sum(pairs) / len(pairs)
    if all(pairs):
        assert kappa(cells) is None
    else:
        assert kappa(cells) == pytest.approx((same - expected) / (1 - expected))


def test_only_words_that_both_have_decided_count():
    (pair,) = compare_annotators(
        {
            1: {"ann": decided([(0, 2, "PER")], [2, 3]), "eve": decided([(0, 2, "PER")], [2])},
            2: {"ann": decided([(0, 1, "ORG")], [1]), "eve": decided([(0, 2, "ORG")])},
            3: {"ann": decided([(0, 1, "ORG")])},
            4: {"ann": decided([(0, 2, "LOC")]), "eve": decided([(1, 2, "LOC")])},
        }
    )
    assert pair.annotators == ("ann", "eve")
    assert (pair.texts, pair.words, pair.differ) == (3, 6, [2, 4])
    labels = {
        row["label"]: (row["first"], row["second"], row["both"], row["f1"]) for row in pair.labels
    }
    assert labels == {"ORG": (1, 1, 0, 0.0), "PER": (1, 1, 1, 1.0), "LOC": (0, 1, 0, 0.0)}


def test_annotators_without_common_words_are_no_pair():
    assert compare_annotators({1: {"ann": decided(outside=[0]), "eve": decided(outside=[1])}}) == []
