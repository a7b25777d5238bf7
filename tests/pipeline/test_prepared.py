"""An update with examples that were read before is the one that reads them itself."""

from functools import partial

import pytest
import torch
from spacy.util import fix_random_seed

from spacy_psa.bridge.optimizer import torch_modules
from spacy_psa.pipeline.prepared import Prepared
from tests.helpers import nested_pipelines
from tests.helpers.whole_pipelines import examples_of, make_whole


def gradients(nlp, update):
    """The losses and the gradients of an update."""
    fix_random_seed(0)
    losses = {}
    update(losses)
    nodes = [node for _, pipe in nlp.pipeline for node in pipe.model.walk()]
    modules = [module for node in nodes for module in torch_modules(node)]
    found = [p.grad for module in modules for p in module.parameters() if p.grad is not None]
    for module in modules:
        module.zero_grad()
    for node in nodes:
        for name in node.param_names:
            if node.has_grad(name):
                found.append(torch.from_numpy(node.get_grad(name).copy()))
                node.set_grad(name, 0 * node.get_grad(name))
    return losses, found


def whole(listening=False):
    nlp = make_whole(listening)
    return nlp, examples_of(nlp)


def nested():
    nlp = nested_pipelines.make()
    examples = [nested_pipelines.example(nlp, *each) for each in nested_pipelines.SENTENCES]
    nested_pipelines.train(nlp, examples, steps=1)
    return nlp, examples


@pytest.mark.parametrize("make", [whole, partial(whole, True), nested])
def test_losses_and_gradients_are_the_same_to_the_bit(make, monkeypatch):
    nlp, examples = make()

    def usual(losses):
        nlp.update(examples, losses=losses, sgd=False)

    gradients(nlp, usual)  # which gives rows to new words
    losses, expected = gradients(nlp, usual)
    prepared = Prepared(nlp, examples)
    for _, pipe in nlp.pipeline:
        if hasattr(pipe, "_read_gold"):
            monkeypatch.setattr(pipe, "_read_gold", lambda _: pytest.fail("read again"))
    ours, found = gradients(nlp, lambda losses: prepared.update(nlp, 0.0, losses, ()))
    assert losses and ours == losses
    assert len(found) == len(expected) and all(map(torch.equal, found, expected))
    assert all(copy.predicted is not eg.predicted for copy, eg in zip(prepared, examples))


def test_components_that_do_not_learn_read_nothing():
    nlp, examples = whole()
    prepared = Prepared(nlp, examples, exclude=["tagger"])
    assert prepared.gold.keys() == {"ner", "chunker", "parser"}
    losses = {}
    prepared.update(nlp, 0.0, losses, ["tagger"])
    assert losses.keys() == prepared.gold.keys()
