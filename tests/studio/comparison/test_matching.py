"""Predicted units for gold units, and the errors of two models, by hand and at random."""

import random

import pytest

from spacy_psa.studio.comparison.matching import cases, confusion, match


@pytest.mark.parametrize(
    ("gold", "predicted", "kinds"),
    [
        ([(0, 2, "A")], [(0, 2, "A")], ["right"]),
        ([(0, 2, "A")], [(0, 2, "B")], ["wrong type"]),
        ([(0, 2, "A")], [(1, 2, "A")], ["wrong bounds"]),
        ([(0, 2, "A")], [(1, 3, "B")], ["wrong bounds and type"]),
        ([(0, 2, "A")], [(2, 3, "A")], ["missed", "invented"]),
        ([(0, 4, "A")], [(0, 1, "A"), (1, 4, "A")], ["wrong bounds", "invented"]),
        ([(0, 1, "A"), (1, 3, "A")], [(0, 3, "A")], ["missed", "wrong bounds"]),
        # Equal bounds before an equal type, an equal type before a larger overlap.
        ([(0, 2, "A")], [(0, 1, "A"), (0, 2, "B")], ["wrong type", "invented"]),
        ([(0, 4, "A")], [(0, 1, "A"), (1, 4, "B")], ["wrong bounds", "invented"]),
        # A right unit is not taken for another one.
        ([(0, 2, "A"), (0, 3, "A")], [(0, 3, "A")], ["missed", "right"]),
    ],
)
def test_each_kind_of_error_is_distinguished(gold, predicted, kinds):
    assert sorted(pair.kind for pair in match(gold, predicted)) == sorted(kinds)


def test_of_several_the_greatest_overlap_is_taken():
    pairs = match([(0, 4, "A")], [(0, 1, "A"), (1, 4, "A")])
    assert ((0, 4, "A"), (1, 4, "A")) in pairs


def test_each_unit_is_in_one_pair_and_no_pair_is_left_that_could_be_made():
    draw = random.Random(0)
    for _ in range(300):
        gold, predicted = (
            {
                (start, start + draw.randint(1, 3), draw.choice("AB"))
                for start in draw.choices(range(9), k=draw.randint(0, 5))
            }
            for _ in range(2)
        )
        pairs = match([*gold], [*predicted])
        assert sorted(p.gold for p in pairs if p.gold) == sorted(gold)
        assert sorted(p.predicted for p in pairs if p.predicted) == sorted(predicted)
        assert sum(p.kind == "right" for p in pairs) == len(gold & predicted)
        alone = [p.gold for p in pairs if p.predicted is None]
        others = [p.predicted for p in pairs if p.gold is None]
        assert not any(a[0] < b[1] and b[0] < a[1] for a in alone for b in others)
        assert all(a[0] < b[1] and b[0] < a[1] for a, b in pairs if a and b)


def test_an_error_says_what_each_model_made_of_it():
    gold = [(0, 2, "A"), (3, 4, "B"), (5, 6, "A")]
    first = match(gold, [(0, 2, "A"), (3, 4, "A"), (7, 8, "B")])
    second = match(gold, [(0, 1, "A"), (3, 4, "A"), (5, 6, "A"), (7, 8, "A")])
    assert [(case.gold, case.predicted, case.kinds) for case in cases([first, second])] == [
        ((0, 2, "A"), ((0, 2, "A"), (0, 1, "A")), ("right", "wrong bounds")),
        ((3, 4, "B"), ((3, 4, "A"), (3, 4, "A")), ("wrong type", "wrong type")),
        ((5, 6, "A"), (None, (5, 6, "A")), ("missed", "right")),
        (None, ((7, 8, "B"), (7, 8, "A")), ("invented", "invented")),
    ]


def test_a_model_that_rightly_finds_nothing_is_right():
    (case,) = cases([match([], []), match([], [(0, 1, "A")])])
    assert case.kinds == ("right", "invented")


def test_confusion_counts_each_pair_once():
    pairs = match([(0, 2, "A"), (3, 4, "A"), (6, 7, "B")], [(0, 1, "A"), (3, 4, "B"), (8, 9, "B")])
    table = confusion(pairs, ["A", "B"])
    assert table["rows"] == [[1, 1, 0], [0, 0, 1], [0, 1, 0]]
    assert table["moved"] == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
