"""Cells, normal forms and distances of trees, against plain loops."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_psa.structs.span_cells import SpanCells, hamming, normal_form


@settings(max_examples=40)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_cells_are_row_major_sentence_after_sentence(lengths):
    cells = SpanCells(torch.tensor(lengths), len(lengths), max(lengths))
    expected = [
        (b, i, j) for b, n in enumerate(lengths) for i in range(n) for j in range(i + 1, n + 1)
    ]
    found = zip(cells.sentence.tolist(), cells.start.tolist(), cells.end.tolist(), strict=True)
    assert list(found) == expected
    assert len(cells) == len(expected)
    assert [cells.at(*span) for span in expected] == list(range(len(expected)))
    assert [expected[i] for i in cells.roots] == [(b, 0, n) for b, n in enumerate(lengths)]
    for b in range(len(lengths)):
        assert all(span[0] == b for span in expected[cells.of(b)])
    assert sum(len(expected[cells.of(b)]) for b in range(len(lengths))) == len(expected)


@pytest.mark.parametrize(
    ("tree", "length", "nodes"),
    [
        ([(0, 1, 2)], 1, [(0, 1, 2)]),
        ([(0, 2, 1)], 2, [(0, 2, 1), (0, 1, 0), (1, 2, 0)]),
        (  # flat: the rest after the first child, and the rest after that
            [(0, 4, 1)],
            4,
            [(0, 4, 1), (0, 1, 0), (1, 4, 0), (1, 2, 0), (2, 4, 0), (2, 3, 0), (3, 4, 0)],
        ),
        (  # a left child keeps its label, a right child that is a constituent needs no null
            [(0, 3, 1), (0, 2, 2), (1, 2, 1)],
            3,
            [(0, 3, 1), (0, 2, 2), (0, 1, 0), (1, 2, 1), (2, 3, 0)],
        ),
        (
            [(0, 4, 1), (1, 3, 2)],
            4,
            [(0, 4, 1), (0, 1, 0), (1, 4, 0), (1, 3, 2), (1, 2, 0), (2, 3, 0), (3, 4, 0)],
        ),
    ],
)
def test_normal_form_is_the_right_branching_binary_tree(tree, length, nodes):
    assert normal_form(tree, length, 3) == nodes
    assert normal_form(reversed(tree), length, 3) == nodes
    assert [node for node in nodes if node[2]] == tree


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([], "no constituent covers all 3 tokens"),
        ([(0, 2, 1)], "no constituent covers all 3 tokens"),
        ([(0, 3, 1), (0, 3, 2)], r"\(0, 3\) is listed twice"),
        ([(0, 3, 1), (1, 2, 1), (1, 2, 1)], r"\(1, 2\) is listed twice"),
        ([(0, 3, 1), (0, 2, 1), (1, 3, 1)], r"\(1, 3\) crosses \(0, 2\)"),
        ([(0, 3, 1), (1, 4, 1)], r"\(1, 4\) is not a span of 3 tokens"),
        ([(0, 3, 1), (2, 2, 1)], r"\(2, 2\) is not a span of 3 tokens"),
        ([(0, 3, 1), (-1, 2, 1)], r"\(-1, 2\) is not a span of 3 tokens"),
        ([(0, 3, 0)], r"label 0 of \(0, 3\) is not from 1 to 2"),
        ([(0, 3, 3)], r"label 3 of \(0, 3\) is not from 1 to 2"),
    ],
)
def test_what_is_no_tree_is_an_error(tree, message):
    with pytest.raises(ValueError, match=message):
        normal_form(tree, 3, 3)


@pytest.mark.parametrize(
    ("tree", "distance"),
    [
        ([(0, 3, 1), (1, 3, 2)], 0),
        ([(0, 3, 1), (1, 3, 1)], 1),  # a wrong label
        ([(0, 3, 1)], 1),  # one too few
        ([(0, 3, 1), (1, 3, 2), (0, 1, 1)], 1),  # one too many
        ([(0, 3, 2), (0, 2, 2)], 3),
    ],
)
def test_hamming_counts_the_spans_with_different_labels(tree, distance):
    gold = [(0, 3, 1), (1, 3, 2)]
    assert hamming(tree, gold) == hamming(gold, tree) == distance
