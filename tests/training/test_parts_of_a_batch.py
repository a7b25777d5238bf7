"""`accumulate_gradient` divides a batch into parts; the update is still that of the whole batch."""

from io import StringIO

import numpy
import pytest
from spacy.training.loop import subdivide_batch

from spacy_psa.bridge.optimizer import torch_modules
from spacy_psa.training.checkpoint import nodes_by_place
from spacy_psa.training.finite_losses import FiniteLosses
from tests.helpers.parsers import chart_model, make_listening_parser, make_parser, tree_examples
from tests.helpers.pipelines import hash_embed, make_examples, make_nlp, small_model
from tests.helpers.trainings import run
from tests.training.test_data_parallel import column, without_chance


def gradients(nlp):
    """Those of all parameters, which are gone afterwards."""
    found = []
    for node in nodes_by_place(nlp).values():
        for name in node.param_names:
            if node.has_grad(name):
                found.append(node.get_grad(name).copy())
                node.get_grad(name)[...] = 0
        for module in torch_modules(node):
            found += [p.grad.numpy().copy() for p in module.parameters() if p.grad is not None]
            module.zero_grad()
    return found


def entities():
    nlp = make_nlp(small_model(embed=hash_embed()), reduction="mean")
    return nlp, make_examples(nlp)


def trees(listening):
    make = make_listening_parser if listening else make_parser
    nlp = make(chart_model(tag_hidden=8), tag_weight=2.0)
    examples = [*tree_examples(nlp)]
    examples[1].reference.spans.clear()  # a sentence without a tree
    return nlp, examples


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize(
    "made", [entities, lambda: trees(False), lambda: trees(True)], ids=["ner", "parser", "listener"]
)
def test_the_gradient_of_the_parts_is_that_of_the_batch(made, parts):
    nlp, examples = made()
    nlp.initialize(lambda: examples)
    nlp.update(examples, losses={}, sgd=False)  # words get their rows
    gradients(nlp)
    expected_losses, losses = {}, {}
    nlp.update(examples, losses=expected_losses, sgd=False)
    expected = gradients(nlp)
    guard = FiniteLosses(nlp, skip=False, stderr=StringIO())
    guard.batch = examples
    for part in subdivide_batch(examples, parts):
        guard.update(part, losses=losses, sgd=False)
    assert losses == pytest.approx(expected_losses, rel=1e-5)
    for found, wanted in zip(gradients(nlp), expected, strict=True):
        numpy.testing.assert_allclose(found, wanted, atol=1e-5)


def test_a_training_in_parts_is_that_of_whole_batches(tmp_path, corpus):
    config = without_chance(corpus, 6)
    config["components"]["ner"]["model"]["tok2vec"]["embed"] = hash_embed()
    whole = run(tmp_path / "whole", config)
    config["training"]["accumulate_gradient"] = 4
    parts = run(tmp_path / "parts", config)
    losses = [column(folder, lambda line: line["losses"]["ner"]) for folder in (whole, parts)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
