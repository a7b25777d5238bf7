"""`accumulate_gradient` divides a batch into parts; the update is still that of the whole batch."""

import pytest

from tests.helpers.parsers import chart_model, make_listening_parser, make_parser, tree_examples
from tests.helpers.pipelines import hash_embed, make_examples, make_nlp, small_model
from tests.helpers.trainings import assert_parts_are_the_batch, pop_gradients, run
from tests.training.test_data_parallel import column, without_chance


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
    pop_gradients(nlp)
    assert_parts_are_the_batch(nlp, examples, parts)


def test_a_training_in_parts_is_that_of_whole_batches(tmp_path, corpus):
    config = without_chance(corpus, 6)
    config["components"]["ner"]["model"]["tok2vec"]["embed"] = hash_embed()
    whole = run(tmp_path / "whole", config)
    config["training"]["accumulate_gradient"] = 4
    parts = run(tmp_path / "parts", config)
    losses = [column(folder, lambda line: line["losses"]["ner"]) for folder in (whole, parts)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
