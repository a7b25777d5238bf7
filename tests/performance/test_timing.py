"""Rows timed in turn, and what is kept of them."""

import pytest

from spacy_psa.errors import InputError
from spacy_psa.performance.pipelines import long_text, named_rows, of_length, read_words
from spacy_psa.performance.timing import Timing, alternate, summary


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


def test_words_are_cut_and_repeated():
    sentences = [["a", "b", "c"], ["d"]]
    assert long_text(sentences, 6) == ["a", "b", "c", "d", "a", "b"]
    assert of_length(sentences, 2, 6) == [["a", "b"], ["c", "d"], ["a", "b"]]


def test_rows_have_names_of_their_own():
    assert named_rows(["a=x/y", "z"]) == {"a": "x/y", "z": "z"}
    with pytest.raises(InputError, match="two rows have this name"):
        named_rows(["a=x", "a=y"])


def test_what_is_no_spacy_file_is_an_error(tmp_path):
    (tmp_path / "no.spacy").write_bytes(b"words")
    with pytest.raises(InputError, match=r"not a \.spacy file"):
        read_words(tmp_path / "no.spacy", 10)
