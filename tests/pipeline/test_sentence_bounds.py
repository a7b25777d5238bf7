"""Each component looks for the boundaries of a doc once in a prediction."""

import importlib
import pkgutil
from collections import Counter

import pytest
from spacy.tokens import Doc

import spacy_psa
from spacy_psa.sentences import sentence_bounds
from tests.helpers.parsers import make_parser, train_parser
from tests.helpers.tasks import make_task_nlp, train_tasks
from tests.helpers.trees import BRACKETS, tree_doc

LABELERS = ["crf_ner", "crf_tagger", "crf_chunker"]


@pytest.fixture
def asked(monkeypatch):
    """How often the boundaries of a doc were looked for, by its first word."""
    counts = Counter()

    def spy(doc):
        counts[doc[0].text] += 1
        return sentence_bounds(doc)

    for found in pkgutil.walk_packages(spacy_psa.__path__, "spacy_psa."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        if getattr(module, "sentence_bounds", None) is sentence_bounds:
            monkeypatch.setattr(module, "sentence_bounds", spy)
    return counts


def docs_of(nlp):
    """Of one sentence, and of two."""
    bounded = Doc(nlp.vocab, words=["Run", "!", "dogs", "bark"], sent_starts=[1, 0, 1, 0])
    return [Doc(nlp.vocab, words=["Ann", "saw", "dogs"]), bounded]


@pytest.mark.parametrize("factory", LABELERS)
@pytest.mark.parametrize("name", ["predict", "distribution", "analyses"])
def test_a_labeler_looks_once(asked, factory, name):
    nlp = make_task_nlp(factory)
    train_tasks(nlp, steps=0)
    ask = getattr(nlp.get_pipe(factory), name)
    docs = docs_of(nlp)
    asked.clear()
    ask(docs)
    assert asked == {"Ann": 1, "Run": 1}


@pytest.mark.parametrize("name", ["predict", "distribution", "analyses"])
def test_the_parser_looks_once(asked, name):
    nlp = make_parser()
    train_parser(nlp)
    docs = [tree_doc(nlp.vocab, *BRACKETS[:2], key="gold"), tree_doc(nlp.vocab, BRACKETS[5])]
    asked.clear()
    getattr(nlp.get_pipe("parser"), name)(docs)
    assert asked == {"Ada": 1, "Leeds": 1}
