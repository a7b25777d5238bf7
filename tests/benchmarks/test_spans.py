"""The scores of nested spans by depth, and the configs of the systems."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from benchmarks.spans.score import DEEPEST, Counts, depths, read_spans
from benchmarks.spans.systems import KEY
from benchmarks.spans.train import set_steps

OUTER, INNER, DEEP, APART = (0, 5, "A"), (0, 3, "B"), (1, 2, "C"), (6, 8, "A")


def test_the_depth_of_a_span_counts_those_around_it():
    assert depths([DEEP, OUTER, APART, INNER]) == {OUTER: 1, INNER: 2, DEEP: 3, APART: 1}
    assert depths([(0, 2, "A"), (0, 2, "B"), (1, 3, "C")]) == {
        (0, 2, "A"): 1, (0, 2, "B"): 2, (1, 3, "C"): 1,
    }  # fmt: skip


SPANS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, 4), st.sampled_from("AB")), unique=True, max_size=8
).map(lambda places: [(start, start + size, label) for start, size, label in places])


@given(SPANS)
def test_depths_equal_those_of_all_pairs(spans):
    for span, depth in depths(spans).items():
        around = sum(
            (o[0] <= span[0] and o[1] >= span[1] and (o[:2] != span[:2] or o[2] < span[2]))
            for o in spans
        )
        assert depth == min(around + 1, DEEPEST)


def test_a_span_is_right_at_whatever_depth_it_is_on_the_other_side():
    counts = Counts()
    counts.add(depths([OUTER, INNER]), depths([INNER, APART]), "news")
    figures = counts.figures()
    assert figures["all"] == pytest.approx({"p": 0.5, "r": 0.5, "f": 0.5, "gold": 2})
    assert figures["nested"] == {"p": 0.0, "r": 1.0, "f": 0.0, "gold": 1}
    assert figures["flat"] == {"p": 0.5, "r": 0.0, "f": 0.0, "gold": 1}
    assert figures["genres"] == {"news": figures["all"]}
    assert set(figures["depths"]) == {"1", "2"}


def test_steps_are_set_in_training_and_schedule():
    config = {"training": {"optimizer": {"learn_rate": {"total_steps": 9, "warmup_steps": 300}}}}
    set_steps(config, 1500)
    training = config["training"]
    assert (training["max_steps"], training["eval_frequency"]) == (1500, 100)
    assert training["optimizer"]["learn_rate"] == {"total_steps": 1500, "warmup_steps": 150}


def test_spans_are_the_same_in_docs_with_other_tokens():
    vocab = Vocab()
    docs = [
        Doc(vocab, words=words, spaces=[False] * (len(words) - 2) + [True, False])
        for words in (["gold", "-plated", "ring"], ["gold", "-", "plated", "ring"])
    ]
    for doc in docs:
        doc.spans[KEY] = [Span(doc, len(doc) - 1, len(doc), "object")]
    assert read_spans(docs[0]) == read_spans(docs[1]) == [(12, 16, "object")]
