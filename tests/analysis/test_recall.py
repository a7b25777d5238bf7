"""Promises of recall: the test behind them, the thresholds, and the weights."""

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_psa.analysis.recall import (
    allowed_loss,
    density_ratio,
    documents_needed,
    features,
    p_value,
    recall_threshold,
)
from spacy_psa.errors import InputError
from tests.helpers.analyses import enumerate_doc
from tests.helpers.pipelines import random_nlp


def binomial(most, n, risk):
    return sum(math.comb(n, k) * risk**k * (1 - risk) ** (n - k) for k in range(most + 1))


@given(st.integers(1, 60), st.floats(0, 1), st.sampled_from([0.05, 0.1, 0.3]))
def test_the_p_value_is_the_lesser_of_the_bounds_of_hoeffding_and_bentkus(n, share, risk):
    mean = share * risk
    p = p_value(mean, n, risk)
    kl = (1 - mean) * math.log((1 - mean) / (1 - risk))
    kl += mean * math.log(mean / risk) if mean else 0
    bentkus = math.e * binomial(math.ceil(n * mean - 1e-9), n, risk)
    assert p == pytest.approx(min(1, math.exp(-n * kl), bentkus))
    assert p <= p_value(min(mean + 0.01, risk), n, risk) + 1e-12
    assert p_value(risk, n, risk) == 1


@pytest.mark.parametrize("risk", [0.1, 0.3])
def test_the_p_value_is_at_most_delta_with_a_probability_of_at_most_delta(risk):
    """For losses of 0 and 1, the number of which is binomial, at the edge of the hypothesis."""
    n = 40
    chances = [math.comb(n, k) * risk**k * (1 - risk) ** (n - k) for k in range(n + 1)]
    for delta in (0.01, 0.05, 0.2, 0.5):
        assert sum(c for k, c in enumerate(chances) if p_value(k / n, n, risk) <= delta) <= delta


@pytest.mark.parametrize("recall", [0.9, 0.97])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_a_promise_needs_the_documents_that_the_error_names(recall, confidence):
    needed = documents_needed(recall, confidence)
    assert allowed_loss(needed, recall, confidence) is not None
    assert allowed_loss(needed - 1, recall, confidence) is None
    documents = [[0.9]] * needed
    assert recall_threshold([*documents, []], recall, confidence) == 0.9
    with pytest.raises(InputError, match=f"at least {needed:,} documents .* are {needed - 1:,}"):
        recall_threshold(documents[1:], recall, confidence)


def test_the_threshold_is_the_largest_at_which_the_loss_is_allowed():
    random = numpy.random.default_rng(0)
    documents = [random.uniform(0, 1, random.integers(1, 8)).tolist() for _ in range(100)]
    least = recall_threshold(documents, 0.7, 0.9)
    loss = allowed_loss(100, 0.7, 0.9)

    def mean_loss(threshold):
        return numpy.mean([numpy.mean([p < threshold for p in items]) for items in documents])

    greater = min(p for items in documents for p in items if p > least)
    assert mean_loss(least) <= loss < mean_loss(greater)


def test_the_promise_is_kept_as_often_as_promised():
    """Documents from one distribution, whose true risk is known."""
    random, kept = numpy.random.default_rng(1), 0
    for _ in range(300):
        hard = random.random(60) < 0.3  # half of the entities of such a document are improbable
        documents = [[0.9, random.uniform(0, 0.5) if each else 0.9] for each in hard]
        least = recall_threshold(documents, 0.9, 0.8)
        kept += 0.3 * 0.5 * min(1.0, max(0.0, least) / 0.5) * (least <= 0.5) <= 0.1 + 1e-9
    assert kept / 300 >= 0.8


def test_weights_of_1_change_nothing_and_others_count_as_fewer_documents():
    documents = [[0.1 * (i % 10), 0.95] for i in range(200)]
    plain = recall_threshold(documents, 0.8, 0.9)
    assert recall_threshold(documents, 0.8, 0.9, [3.0] * 200) == plain
    easy = [1.0 if i % 10 > 3 else 0.1 for i in range(200)]
    assert recall_threshold(documents, 0.8, 0.9, easy) > plain
    few = [1.0] * 20 + [1e-6] * 180
    with pytest.raises(InputError, match="which count as 20 by their weights"):
        recall_threshold(documents, 0.9, 0.9, few)


def test_entities_that_the_model_cannot_find_are_one_error():
    with pytest.raises(InputError, match=r"^50.00% of the entities have the probability 0"):
        recall_threshold([[0.0, 0.9]] * 300, 0.9, 0.9)


def test_the_density_ratio_is_that_of_two_normal_distributions():
    random = numpy.random.default_rng(2)
    source, target = random.normal(0, 1, (3000, 1)), random.normal(0.5, 1, (6000, 1))
    ratio = density_ratio(source, target)
    expected = numpy.exp(0.5 * source[:, 0] - 0.125)
    assert numpy.abs(numpy.log(ratio / expected)).mean() < 0.1
    assert (ratio * source[:, 0]).mean() == pytest.approx(0.5, abs=0.1)


def test_features_are_by_document_and_token():
    nlp = random_nlp()
    ner = nlp.get_pipe("ner")
    docs = [nlp.make_doc("Ada met"), nlp.make_doc("BATH 7 ."), nlp.make_doc("Bob")]
    for doc in docs[:2]:
        doc.user_data["document"] = 1
    first, second = features(ner, docs)
    assert first[0] == pytest.approx(math.log(5)) and second[0] == 0
    truths = [enumerate_doc(ner, doc) for doc in docs]
    assert first[-5] == pytest.approx(sum(t.entropy for t in truths[:2]) / 5, abs=1e-5)
    assert first[-4:].tolist() == [0.2, 0.2, 0.2, 0.2]
    spans = sum(p * len(v) for v, p in zip(truths[2].values, truths[2].probabilities))
    assert second[1:-5].sum() == pytest.approx(spans, abs=1e-5)
