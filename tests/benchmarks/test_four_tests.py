"""A recogniser scored on four tests, by document."""

import pytest

from benchmarks.four_tests.score import TESTS, measure
from spacy_psa.corpora.docbin import write_docbin
from tests.helpers.pipelines import make_examples, make_nlp, train


def test_the_counts_of_documents_make_the_score(tmp_path):
    nlp = make_nlp()
    examples = make_examples(nlp)
    train(nlp, steps=4, examples=examples)
    docs = [example.reference for example in examples]
    for i, doc in enumerate(docs):
        doc.user_data["document"] = i // 3
    for part in TESTS.values():
        write_docbin(docs, tmp_path / f"{part}.spacy")
    found = measure(nlp, tmp_path)
    rows = [[int(n) for n in row.split()] for row in found["documents"]["clean"]]
    right, predicted, gold = map(sum, zip(*rows))
    assert len(rows) == len({doc.user_data["document"] for doc in docs})
    assert gold == sum(len(doc.ents) for doc in docs)
    assert found["f1"]["clean"] == pytest.approx(2 * right / (predicted + gold))
    assert found["f1"]["clean"] == pytest.approx(nlp.evaluate(examples)["ents_f"])
