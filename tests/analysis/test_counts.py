"""Corrections of counts: fitted to documents, and intervals that hold the truth."""

import math

import numpy
import pytest

from spacy_psa.analysis.counts import Counted, coverage, fit_corrections
from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.mention_counts import Moments, TextCounts
from spacy_psa.pipeline.coverage import Correction, CountCorrection


def documents(count, bias, seed=0):
    """Documents of about 40 candidates, each of which is `bias` times as often true as expected."""
    random = numpy.random.default_rng(seed)
    made = []
    for _ in range(count):
        counts, gold = TextCounts(), []
        shift = random.normal(0, 0.1)  # the mistakes of a document go one way
        for place in range(random.integers(20, 60)):
            p = random.uniform(0.2, 0.8)
            counts.add(_one(f"{len(made)} {place}", p))
            if random.random() < min(1.0, max(0.0, bias * p + shift)):
                gold.append(("A", f"{len(made)} {place}"))
        made.append(Counted(counts, gold))
    return made


def _one(form, p):
    single = TextCounts()
    single.mentions["A"] = Moments(p, p * (1 - p))
    single.absent["A", form] = math.log1p(-p)
    return single


def test_corrected_intervals_hold_the_truth_and_others_do_not():
    corrections = fit_corrections(documents(200, 0.8), ["A"])
    mentions, distinct = corrections["A"]
    assert mentions.ratio == pytest.approx(0.8, abs=0.03) and mentions.dispersion > 1.2
    assert distinct == pytest.approx(mentions)  # each form occurs once
    new = documents(200, 0.8, seed=1)
    held = coverage(new, corrections, ["A"], draws=300)["A"]
    bare = coverage(new, None, ["A"], draws=300)["A"]
    assert min(held.values()) > 0.9 and max(bare.values()) < 0.1


def test_few_documents_are_not_all_drawn_at_once():
    held = coverage(documents(6, 0.9), None, ["A"], draws=100)["A"]
    assert all(0 < share < 1 for share in held.values())


def test_numbers_that_are_as_expected_need_no_correction():
    made = [Counted(_one("x", 0.5), [("A", "x")] if i % 2 else []) for i in range(100)]
    mentions, _ = fit_corrections(made, ["A"])["A"]
    assert mentions.ratio == pytest.approx(1)
    assert mentions.dispersion == pytest.approx(100 / 99)
    assert mentions.uncertainty == pytest.approx(0.25 * 100 / 99 * 100 / 50**2)


def test_a_label_that_does_not_occur_is_not_corrected():
    made = [Counted(_one("x", 0.5), []) for _ in range(3)]
    assert fit_corrections(made, ["A"])["A"].mentions == (1.0, 1.0, 0.0)


def test_corrected_numbers_have_no_more_entities_than_mentions():
    corrections = {"A": CountCorrection(Correction(ratio=0.5), Correction(ratio=0.9))}
    rows = _one("x", 0.5).intervals(corrections)["A"]
    assert rows["mentions"][0] == rows["distinct"][0] == pytest.approx(0.25)


def test_one_document_is_too_few():
    with pytest.raises(InputError, match="2 documents or more"):
        fit_corrections(documents(1, 1.0), ["A"])
