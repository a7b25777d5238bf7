"""Calibration error, Brier score and average precision: hand-worked cases and properties."""

import math
from itertools import pairwise

import numpy
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, brier_score_loss
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.util import registry

from spacy_psa.errors import InputError
from spacy_psa.scoring.calibration import (
    Bin,
    Judged,
    average_precision,
    brier,
    calibration_error,
    calibration_scorer,
    judge,
    reliability,
    summary,
)

VOCAB = spacy.blank("en").vocab


def judged(pairs, missed=0):
    confidence, right = zip(*pairs) if pairs else ((), ())
    return Judged(numpy.array(confidence, dtype=float), numpy.array(right, dtype=bool), missed)


def example(words, gold, found, scores, key="ner", ents=None, reference_words=None):
    """Predicted spans with scores in doc.spans[key], and in doc.ents where `ents`."""
    predicted = Doc(VOCAB, words=words)
    spans = [Span(predicted, *span) for span in found]
    predicted.spans[key] = SpanGroup(predicted, spans=spans, attrs={"scores": scores})
    predicted.set_ents([spans[i] for i in ents] if ents else [])
    return Example(predicted, Doc(VOCAB, words=reference_words or words, ents=gold))


# The figures


def test_bins_are_of_equal_width_and_closed_above():
    bins = reliability(judged([(0.0, 0), (0.5, 1), (0.500001, 0), (1.0, 1)]), bins=2)
    assert [b.size for b in bins] == [2, 2]
    assert bins[0] == Bin(0.0, 0.5, 2, 0.25, 0.5)


def test_every_multiple_of_the_width_falls_below_its_edge():
    bins = reliability(judged([(i / 10, 1) for i in range(1, 11)]), bins=10)
    assert [b.size for b in bins] == [1] * 10


def test_empty_bins_have_no_means():
    bins = reliability(judged([(0.9, 1)]), bins=3)
    assert [(b.size, b.confidence, b.accuracy) for b in bins[:2]] == [(0, None, None)] * 2


def test_calibration_error_by_hand():
    # Bin (0, .5]: mean .4, right 0 of 2. Bin (.5, 1]: mean .8, right 2 of 3.
    found = judged([(0.3, 0), (0.5, 0), (0.7, 1), (0.8, 0), (0.9, 1)])
    expected = 2 / 5 * 0.4 + 3 / 5 * abs(2 / 3 - 0.8)
    assert calibration_error(reliability(found, bins=2)) == pytest.approx(expected)


def test_brier_by_hand():
    assert brier(judged([(0.8, 1), (0.3, 0), (1.0, 0)])) == pytest.approx((0.04 + 0.09 + 1) / 3)


def test_average_precision_by_hand():
    # Right, wrong, right of three gold spans, one of them never predicted:
    # recall 1/3 at precision 1, then 2/3 at precision 2/3.
    found = judged([(0.9, 1), (0.8, 0), (0.7, 1)], missed=1)
    assert average_precision(found) == pytest.approx(1 / 3 + 1 / 3 * 2 / 3)


def test_average_precision_takes_equal_confidences_together():
    assert average_precision(judged([(0.5, 0), (0.5, 1)])) == pytest.approx(0.5)
    assert average_precision(judged([(0.5, 1), (0.5, 0)])) == pytest.approx(0.5)


def test_nothing_predicted_has_no_calibration_but_an_area_of_nothing():
    assert summary(judged([], missed=3)) == {
        "ece": None,
        "ece_adaptive": None,
        "brier": None,
        "aupr": 0.0,
    }
    assert average_precision(judged([])) is None
    assert average_precision(judged([(0.5, 0)])) is None


def test_adaptive_bins_hold_as_many_spans_each_and_keep_equal_confidences_together():
    spread = judged([(c, 1) for c in (0.9, 0.91, 0.92, 0.93, 0.94, 0.95)])
    assert [b.size for b in reliability(spread, bins=3, adaptive=True)] == [2, 2, 2]
    crowded = judged([(1.0, 1)] * 8 + [(0.2, 0)] * 2)
    assert sorted(b.size for b in reliability(crowded, bins=5, adaptive=True)) == [2, 8]


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
def test_what_is_no_probability_is_refused(wrong):
    with pytest.raises(ValueError, match="confidences must be from 0 to 1"):
        reliability(judged([(wrong, 1)]))


def test_no_bins_are_refused():
    with pytest.raises(ValueError, match="bins"):
        reliability(judged([(0.5, 1)]), bins=0)
    with pytest.raises(InputError, match="bins"):
        calibration_scorer(bins=0)


# Properties

PAIRS = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.booleans()))
ANY = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1)
BINS = st.integers(1, 20)


@given(ANY, BINS, st.booleans())
def test_bins_hold_every_span_within_their_bounds(pairs, bins, adaptive):
    found = reliability(judged(pairs), bins, adaptive)
    assert sum(b.size for b in found) == len(pairs)
    assert found[0].lower == 0 and found[-1].upper == 1
    assert all(a.upper == b.lower for a, b in pairwise(found))
    for b in found:
        if b.confidence is not None:
            assert b.lower - 1e-12 <= b.confidence <= b.upper + 1e-12


@given(ANY, BINS, st.booleans())
def test_calibration_error_is_the_distance_in_plain_loops(pairs, bins, adaptive):
    found = judged(pairs)
    total = 0.0
    for b in reliability(found, bins, adaptive):
        first = b.lower == 0
        inside = [(c, y) for c, y in pairs if b.lower < c <= b.upper or (first and c == 0)]
        total += abs(sum(y - c for c, y in inside))
    assert calibration_error(reliability(found, bins, adaptive)) == pytest.approx(
        total / len(pairs), abs=1e-9
    )


@given(ANY, BINS)
def test_one_bin_gives_the_least_error(pairs, bins):
    found = judged(pairs)
    one = calibration_error(reliability(found, 1))
    many = calibration_error(reliability(found, bins))
    assert one is not None and many is not None and one <= many + 1e-9 <= 1 + 2e-9


@given(ANY)
def test_figures_do_not_depend_on_the_order(pairs):
    a, b = summary(judged(pairs)), summary(judged(pairs[::-1]))
    assert all(a[key] == pytest.approx(b[key]) for key in a)


@given(ANY.filter(lambda pairs: any(y for _, y in pairs)))
def test_figures_are_those_of_scikit_learn(pairs):
    found = judged(pairs)
    assert brier(found) == pytest.approx(brier_score_loss(found.right, found.confidence))
    expected = average_precision_score(found.right, found.confidence)
    assert average_precision(found) == pytest.approx(expected)


@given(PAIRS.filter(lambda pairs: any(y for _, y in pairs)), st.integers(0, 5))
def test_the_area_shrinks_with_the_recall_that_is_lost(pairs, missed):
    right = sum(y for _, y in pairs)
    whole, cut = average_precision(judged(pairs)), average_precision(judged(pairs, missed))
    assert whole is not None
    assert cut == pytest.approx(whole * right / (right + missed))


# Documents


def test_spans_are_right_where_place_and_label_agree():
    found = judge(
        [
            example(
                ["Ada", "saw", "New", "York"],
                ["B-PER", "O", "B-LOC", "I-LOC"],
                [(0, 1, "PER"), (2, 3, "LOC"), (2, 4, "ORG")],
                [0.9, 0.2, 0.5],
            )
        ],
        "ner",
    )
    assert found.confidence.tolist() == [0.9, 0.2, 0.5]
    assert found.right.tolist() == [True, False, False]
    assert found.missed == 1


def test_predictions_where_nobody_annotated_do_not_count():
    docs = [
        example(["a", "b", "c"], ["O", "", "B-X"], [(0, 2, "X"), (2, 3, "X")], [0.5, 0.5]),
        example(["a"], None, [(0, 1, "X")], [0.5]),
    ]
    found = judge(docs, "ner")
    assert found.right.tolist() == [True] and found.missed == 0


def test_other_tokens_in_the_reference_are_aligned():
    eg = example(
        ["can't", "go"],
        ["O", "O", "B-X"],
        [(1, 2, "X"), (0, 1, "X")],
        [0.5, 0.25],
        reference_words=["ca", "n't", "go"],
    )
    assert judge([eg], "ner").right.tolist() == [True, False]


def test_spans_that_align_to_one_count_once_with_the_higher_confidence():
    eg = example(
        ["ca", "n't"], ["B-X"], [(0, 1, "X"), (1, 2, "X")], [0.3, 0.6], reference_words=["can't"]
    )
    found = judge([eg], "ner")
    assert (found.confidence.tolist(), found.right.tolist(), found.missed) == ([0.6], [True], 0)


def test_docs_without_the_group_count_as_nothing_predicted():
    bare = Doc(VOCAB, words=["Ada"])
    docs = [
        example(["Ada"], ["B-PER"], [(0, 1, "PER")], [1.0]),
        Example(bare, Doc(VOCAB, words=["Ada"], ents=["B-PER"])),
    ]
    assert judge(docs, "ner").missed == 1


def test_a_group_that_no_doc_has_is_an_error():
    with pytest.raises(InputError, match=r'doc.spans\["other"\].*confidence = true'):
        judge([example(["Ada"], ["B-PER"], [], [])], "other")
    assert judge([], "other").missed == 0


@pytest.mark.parametrize("scores", [None, [0.5, 0.5]])
def test_spans_without_a_score_each_are_an_error(scores):
    eg = example(["Ada"], ["B-PER"], [(0, 1, "PER")], scores)
    with pytest.raises(InputError, match=r"has 1 spans and (no|2) scores"):
        judge([eg], "ner")


def test_scorer_adds_to_what_spacy_scores():
    scorer = registry.scorers.get("spacy-psa.calibration_scorer.v1")(spans_key="ner", bins=2)
    eg = example(["Ada", "saw", "Rome"], ["B-PER", "O", "B-LOC"], [(0, 1, "PER")], [0.75], ents=[0])
    scores = scorer([eg])
    assert scores["ents_p"] == 1.0 and scores["ents_r"] == 0.5
    assert scores["ents_per_type"]["LOC"]["r"] == 0.0
    assert scores["ents_ece"] == pytest.approx(0.25)
    assert scores["ents_brier"] == pytest.approx(0.0625)
    assert scores["ents_aupr"] == pytest.approx(0.5)


def test_scorer_reads_spans_of_the_reference_by_their_key():
    eg = example(["a", "b"], None, [(0, 1, "NP")], [0.5], key="chunker")
    eg.predicted.spans["chunks"] = [Span(eg.predicted, 0, 1, "NP")]
    eg.reference.spans["chunks"] = [Span(eg.reference, 0, 1, "NP"), Span(eg.reference, 1, 2, "NP")]
    scores = calibration_scorer("chunker", "chunks")([eg])
    assert (scores["chunks_p"], scores["chunks_r"]) == (1.0, 0.5)
    assert scores["chunks_brier"] == 0.25 and scores["chunks_aupr"] == 0.5


def test_scorer_of_no_documents_has_no_figures():
    assert set(calibration_scorer()([]).values()) == {None}
