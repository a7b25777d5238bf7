"""The clicks of a simulated annotator, counted by hand."""

from functools import partial

import pytest

from benchmarks.proof.play import count_clicks, fixed

GOLD = {(0, 2, "PER"), (4, 5, "LOC"), (7, 8, "LOC")}


@pytest.mark.parametrize(
    ("predicted", "clicks"),
    [
        (GOLD, 1),
        (set(), 7),
        (GOLD - {(4, 5, "LOC")}, 3),
        (GOLD | {(5, 6, "ORG")}, 3),  # one to reject
        (GOLD - {(0, 2, "PER")} | {(0, 1, "PER")}, 3),  # other bounds replace it
        (GOLD - {(4, 5, "LOC")} | {(4, 5, "ORG"), (5, 6, "ORG")}, 5),
        ({(i, i + 1, "ORG") for i in range(9)}, 7),  # all are marked, and the rest ignored
    ],
)
def test_the_fewest_clicks_lead_from_suggestions_to_the_gold_spans(predicted, clicks):
    assert count_clicks(GOLD, partial(fixed, predicted)) == clicks
