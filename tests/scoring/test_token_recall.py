"""Recall by class of tokens (X Tables 3 and 4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_psa.scoring.token_recall import (
    Recall,
    chunk_class,
    differences,
    token_recall,
    type_class,
)

GOLD = [["B-PER", "E-PER", "O", "B-FAC", "I-FAC", "E-FAC"], ["S-LOC", "O"]]
FOUND = [["B-PER", "E-LOC", "O", "O", "I-FAC", "S-FAC"], ["S-LOC", "S-LOC"]]


def test_whole_tags_are_classes_by_default():
    assert token_recall(GOLD, FOUND) == {
        "B-FAC": (0, 1),
        "B-PER": (1, 1),
        "E-FAC": (0, 1),
        "E-PER": (0, 1),
        "I-FAC": (1, 1),
        "O": (1, 2),
        "S-LOC": (1, 1),
    }


def test_chunking_does_not_look_at_types():
    found = token_recall(GOLD, FOUND, chunk_class)
    assert found == {"B": (1, 2), "E": (1, 2), "I": (1, 1), "O": (1, 2), "S": (1, 1)}


def test_typing_does_not_look_at_places():
    found = token_recall(GOLD, FOUND, type_class)
    assert found == {"FAC": (2, 3), "LOC": (1, 1), "NONE": (1, 2), "PER": (1, 2)}


@pytest.mark.parametrize(
    ("tag", "chunk", "kind"),
    [
        ("O", "O", "NONE"),
        ("B-PER", "B", "PER"),
        ("S-WORK_OF_ART", "S", "WORK_OF_ART"),
        ("I-A-B", "I", "A-B"),
    ],
)
def test_tags_are_projected(tag, chunk, kind):
    assert (chunk_class(tag), type_class(tag)) == (chunk, kind)


def test_a_rate_is_found_by_total():
    assert Recall(3, 4).rate == 0.75


def test_tokens_without_gold_are_left_out():
    assert token_recall([["O", None]], [["S-A", "S-A"]]) == {"O": (0, 1)}


def test_classes_are_those_of_the_gold_tags():
    assert token_recall([["O"]], [["S-A"]], type_class) == {"NONE": (0, 1)}


@pytest.mark.parametrize("found", [[["O"]], [["O", "O", "O"]], [["O", "O"], ["O"]]])
def test_unequal_lengths_are_refused(found):
    with pytest.raises(ValueError):
        token_recall([["O", "O"]], found)


def test_differences_are_in_points():
    base = {"B": Recall(9, 10), "I": Recall(1, 2)}
    other = {"B": Recall(4, 10), "I": Recall(2, 2)}
    assert differences(base, other) == {"B": pytest.approx(-50), "I": pytest.approx(50)}


TAGS = ["O", "B-X", "E-X", "S-X", "S-Y"]
PAIRS = st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), min_size=1)


@given(PAIRS)
def test_totals_are_the_tokens_and_founds_the_agreements(pairs):
    gold, found = zip(*pairs)
    recall = token_recall([gold], [found])
    assert sum(r.total for r in recall.values()) == len(pairs)
    assert sum(r.right for r in recall.values()) == sum(a == b for a, b in pairs)
    for project in (chunk_class, type_class):
        # Fewer distinctions, so never fewer agreements.
        assert sum(r.right for r in token_recall([gold], [found], project).values()) >= sum(
            r.right for r in recall.values()
        )
