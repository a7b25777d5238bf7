"""Rows timed in turn, and what is kept of them."""

from spacy_psa.laboratory.performance.timing import Timing, alternate, summary


class Counting:
    def __init__(self, name, order):
        self.name, self.order = name, order

    def run(self):
        self.order.append(self.name)
        return Timing(len(self.order), 1.0, 0.5)


def test_rows_take_turns_and_the_first_round_does_not_count():
    order = []
    timings = alternate([Counting("a", order), Counting("b", order)], repeats=2)
    assert order == ["b", "a", "a", "b", "b", "a"]
    assert [t.amount for t in timings["a"]] == [3, 6]


def test_a_summary_has_the_rates_and_their_spread():
    found = summary([Timing(10, 1.0, 2.0), Timing(10, 2.0, 2.0), Timing(10, 4.0, 2.5)])
    assert found["per_second"]["median"] == 5 and found["per_second"]["most"] == 10
    assert found["per_cpu_second"] == {
        "median": 5, "lower": 4.5, "upper": 5, "least": 4, "most": 5
    }  # fmt: skip
    assert [run["seconds"] for run in found["runs"]] == [1, 2, 4]
