"""The figures of rankings of errors, and damage of a seed."""

import numpy
import pytest
from sklearn.metrics import average_precision_score

from benchmarks.find_errors.measure import areas, damaged
from tests.helpers.pipelines import entities, make_examples, make_nlp


@pytest.mark.parametrize("levels", [5, 1000])
def test_the_area_of_a_draw_is_the_average_precision_of_its_documents(levels):
    generator = numpy.random.default_rng(levels)
    documents = generator.integers(6, size=200)
    scores = generator.integers(levels, size=200) / levels
    wrong = generator.random(200) < 0.2 + 0.3 * scores
    drawn = numpy.array([[1, 1, 1, 1, 1, 1], [3, 0, 1, 2, 0, 0]])
    expected = [average_precision_score(wrong, scores, sample_weight=w[documents]) for w in drawn]
    assert areas(wrong, scores, documents, drawn) == pytest.approx(expected)


def test_damage_is_of_a_share_of_the_entities_and_a_seed_gives_the_same():
    docs = [example.reference for example in make_examples(make_nlp())]
    before = [entities(doc) for doc in docs]
    after = [[entities(doc) for doc in damaged(docs, 0.5, seed)] for seed in (1, 1, 2)]
    assert [entities(doc) for doc in docs] == before
    assert after[0] == after[1] != after[2]
