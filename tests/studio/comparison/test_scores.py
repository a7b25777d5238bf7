"""Scores, intervals and significance, compared with those of spaCy and of experiments."""

import numpy
import pytest
from spacy.scorer import get_ner_prf
from spacy.training import Example

from spacy_psa.scoring.sentence_counts import entity_counts
from spacy_psa.scoring.statistics import (
    bootstrap_interval,
    paired_interval,
    sentence_p_value,
)
from spacy_psa.studio.comparison.scores import count_table, score_rows, significance
from tests.helpers.compared import FIRST, GOLD, SECOND, marked_docs, rules
from tests.helpers.pipelines import entities, text_docs

LABELS = ["LOC", "ORG", "PER"]


@pytest.fixture
def examples():
    """The predictions of two pipelines with their references."""
    predictions = []
    for nlp in (rules(FIRST), rules(SECOND)):
        references = marked_docs(GOLD, nlp.vocab)
        docs = [nlp(doc) for doc in text_docs(nlp, [doc.text for doc in references])]
        predictions.append([Example(*pair) for pair in zip(docs, references)])
    return predictions


@pytest.fixture
def table(examples):
    """The counts of the entities of two pipelines."""
    gold = [entities(example.reference) for example in examples[0]]
    models = [[entities(example.predicted) for example in own] for own in examples]
    return count_table(gold, models, LABELS)


def test_scores_are_those_that_were_counted_by_hand(table):
    rows = {row["label"]: row for row in score_rows(table, LABELS)}
    assert [model["counts"] for model in rows[None]["models"]] == [[2, 5, 4], [2, 3, 4]]
    first = {name: rows[None]["models"][0][name]["value"] for name in "prf"}
    assert first == pytest.approx({"p": 2 / 5, "r": 2 / 4, "f": 4 / 9})
    assert rows[None]["difference"]["value"] == pytest.approx(4 / 9 - 4 / 7)
    assert rows["ORG"]["gold"] == 0
    assert rows["ORG"]["models"][1]["counts"] == [0, 1, 0]


def test_scores_are_those_of_spacy(table, examples):
    rows = score_rows(table, LABELS)
    for model, own in enumerate(examples):
        theirs = get_ner_prf(own)
        for row in rows:
            wanted = theirs["ents_per_type"].get(row["label"], {"p": 0, "r": 0, "f": 0})
            if row["label"] is None:
                wanted = {name: theirs[f"ents_{name}"] for name in "prf"}
            assert {name: row["models"][model][name]["value"] for name in "prf"} == pytest.approx(
                wanted
            )


def test_intervals_and_significance_are_those_of_experiments(table, examples):
    first, second = (numpy.array([entity_counts(own)], dtype=float) for own in examples)
    row = score_rows(table, LABELS)[0]
    assert row["models"][0]["f"]["interval"] == pytest.approx(bootstrap_interval(first))
    assert row["models"][1]["f"]["interval"] == pytest.approx(bootstrap_interval(second))
    assert row["difference"]["interval"] == pytest.approx(paired_interval(first, second))
    assert significance(table) == sentence_p_value(first, second)


def test_one_model_has_no_difference(table):
    assert score_rows(table[:1], LABELS)[0]["difference"] is None
    assert significance(table[:1]) is None
