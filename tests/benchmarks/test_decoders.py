"""Models scored with each of their decoders."""

import pytest

from benchmarks.decoders import DECODERS, PARTS, WAYS, measure, rates
from spacy_psa.corpora.docbin import write_docbin
from tests.helpers.pipelines import make_examples, make_nlp, train


def test_the_scores_are_those_of_the_decoders(tmp_path):
    nlp = make_nlp()
    examples = make_examples(nlp)
    train(nlp, steps=8, examples=examples)
    cut = {"dev": examples[:5], "test": examples[5:]}
    for part, some in cut.items():
        write_docbin([example.reference for example in some], tmp_path / f"{part}.spacy")
    found = measure(nlp, tmp_path)
    ner, temperature = nlp.get_pipe("ner"), found.pop("temperature")
    assert list(found) == list(WAYS) and temperature != ner.temperature == 1.0
    for name, scores in found.items():
        ner.decode = WAYS[name]
        ner.temperature = temperature if name == "calibrated" else 1.0
        for part in PARTS:
            assert scores[part] == pytest.approx(nlp.evaluate(cut[part])["ents_f"])
    assert found["viterbi"] != found["mbr"]
    speed = rates(nlp, tmp_path, rounds=2)
    assert sorted(speed) == sorted(DECODERS)
    assert all(len(of) == 2 and min(of) > 0 for of in speed.values())
