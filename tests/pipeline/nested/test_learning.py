"""Label smoothing and rehearsal of `crf_spans`, compared with enumeration."""

import math

import pytest

from tests.helpers.nested_pipelines import example, make, nodes, train
from tests.helpers.pipelines import parameters, randomize, spans_of

LAYERS = pytest.mark.parametrize("layers", ["one", "label"])
GOLD = [(0, 3, "A"), (1, 3, "B")]


def untrained(layers):
    """A component whose weights are random, and an example."""
    nlp = make(layers=layers)
    known = example(nlp, "a b c", GOLD)
    nlp.initialize(lambda: [known])
    pipe = nlp.get_pipe("crf_spans")
    pipe.model.begin_update([known.predicted])  # the words get rows of their own
    randomize(pipe)
    return nlp, pipe, known


def every(pipe, doc):
    """Each set of spans of a doc with its log probability."""
    return {frozenset(spans_of(spans)): p for p, spans in pipe.kbest(doc, 10**5)}


@LAYERS
def test_label_smoothing_mixes_the_annotation_with_all_sets(layers):
    _, pipe, known = untrained(layers)
    sets = every(pipe, known.predicted)
    pipe._label_smoothing = 0.25
    loss, _ = pipe.get_loss([known], pipe.model.predict([known.predicted]))
    even = sum(sets.values()) / len(sets)
    assert loss == pytest.approx(-0.75 * sets[frozenset(GOLD)] - 0.25 * even, rel=1e-4)


def test_a_text_without_annotation_is_not_smoothed():
    _, pipe, known = untrained("one")
    pipe._label_smoothing = 0.5
    del known.reference.spans["sc"]
    loss, (gradient,) = pipe.get_loss([known], pipe.model.predict([known.predicted]))
    assert loss == pytest.approx(0, abs=1e-5) and abs(gradient).max() < 1e-6


@LAYERS
def test_the_loss_of_rehearsal_is_the_cross_entropy_by_enumeration(layers):
    nlp, pipe, known = untrained(layers)
    assert pipe.rehearse([known]) == {"crf_spans": 0.0}
    nlp.resume_training()
    asked = every(pipe, known.predicted)
    for weights in parameters(pipe):
        weights.data *= 0.9
    said = every(pipe, known.predicted)
    wanted = -sum(math.exp(p) * said[spans] for spans, p in asked.items())
    assert pipe.rehearse([known])["crf_spans"] == pytest.approx(wanted, rel=1e-3)


def test_rehearsal_brings_back_what_the_model_said():
    nlp = make()
    known = example(nlp, "University of Oslo", [(0, 3, "ORG"), (2, 3, "LOC")])
    train(nlp, [known])
    optimizer = nlp.resume_training()
    optimizer.learn_rate = 0.02
    other = example(nlp, "University of Oslo", [])
    for _ in range(20):
        nlp.update([other], sgd=optimizer)
    assert nodes(nlp("University of Oslo")) == []
    for _ in range(40):
        nlp.rehearse([known], sgd=optimizer)
    assert nodes(nlp("University of Oslo")) == [(0, 3, "ORG"), (2, 3, "LOC")]
