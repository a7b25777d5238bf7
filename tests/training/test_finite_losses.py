"""A loss that is infinite or not a number ends a training, or its step is left out."""

import json
from io import StringIO

import numpy
import pytest
import spacy
import torch
from spacy.training import Example
from thinc.api import Adam

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.spans import SpanLabeler
from spacy_psa.training.checkpoint import Checkpoints
from spacy_psa.training.finite_losses import IN_A_ROW, FiniteLosses
from tests.helpers.pipelines import hash_embed, make_examples, make_nlp, small_model, train
from tests.helpers.trainings import digests, killed_at, make_config, run

NAN, INFINITE = float("nan"), float("inf")


@pytest.fixture
def explode(monkeypatch):
    """Let the loss of some batches, counted from 0, be infinite or not a number."""
    get_loss = SpanLabeler.get_loss
    count = -1

    def begin_at(batch, *values):
        nonlocal count
        count = batch - 1

        def bad(self, examples, scores):
            nonlocal count
            count += 1
            loss, gradients = get_loss(self, examples, scores)
            if count in chosen:
                return chosen[count], [gradient * numpy.nan for gradient in gradients]
            return loss, gradients

        chosen = dict(values)
        monkeypatch.setattr(SpanLabeler, "get_loss", bad)

    return begin_at


@pytest.mark.parametrize("value", [NAN, INFINITE, -INFINITE])
def test_a_bad_loss_ends_the_training_and_names_the_batch(tmp_path, corpus, explode, value):
    explode(0, (12, value))
    with pytest.raises(InputError) as error:
        run(tmp_path, make_config(corpus))
    message = str(error.value)
    assert message.startswith(f"step 12: the loss of ner is {value} on 3 document(s): '")
    assert "--skip-bad-loss" in message and "\n" not in message
    assert len(spacy.load(tmp_path / "model-best")("Ada met Bob ."))
    assert Checkpoints(tmp_path).load()["step"] == 8


def test_a_training_goes_on_once_the_loss_is_mended(tmp_path, corpus, explode):
    config = make_config(corpus)
    explode(0)
    whole = digests(run(tmp_path / "whole", config))
    explode(0, (12, NAN))
    with pytest.raises(InputError, match="step 12"):
        run(tmp_path / "mended", config)
    explode(9)
    assert digests(run(tmp_path / "mended", config, resume=True)) == whole


def test_steps_with_a_bad_loss_are_left_out_and_counted(tmp_path, corpus, explode, capsys):
    explode(0, (0, NAN), (12, INFINITE), (13, NAN))
    run(tmp_path, make_config(corpus, "thinc"), skip_bad_loss=True)
    told = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in told[:3]] == ["step 0", "step 12", "step 13"]
    assert told[-1] == "3 step(s) were left out, whose loss was not finite"
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 8, 16, 24]
    assert all(numpy.isfinite(row["losses"].get("ner", 0.0)) for row in rows)
    model = spacy.load(tmp_path / "model-last").get_pipe("ner").model
    for node in model.walk():
        assert all(numpy.isfinite(node.get_param(name)).all() for name in node.param_names)


@pytest.mark.parametrize("optimizer", ["adam", "thinc"])
def test_a_training_that_left_out_steps_is_resumed(
    tmp_path, corpus, monkeypatch, explode, capsys, optimizer
):
    config, bad = make_config(corpus, optimizer), [(5, NAN), (20, NAN)]
    explode(0, *bad)
    whole = digests(run(tmp_path / "whole", config, skip_bad_loss=True))
    explode(0, *bad)
    with killed_at(monkeypatch, 16):
        run(tmp_path / "killed", config, skip_bad_loss=True)
    capsys.readouterr()
    explode(17, *bad)
    run(tmp_path / "killed", config, skip_bad_loss=True, resume=True)
    assert digests(tmp_path / "killed") == whole
    assert "2 step(s) were left out" in capsys.readouterr().err


def test_weights_that_are_ruined_end_the_training_after_some_steps(tmp_path, corpus, explode):
    explode(0, *((batch, NAN) for batch in range(3, 30)))
    with pytest.raises(InputError, match=f"step {2 + IN_A_ROW}.*lower the learning rate"):
        run(tmp_path, make_config(corpus), skip_bad_loss=True)


def weights(nlp):
    nodes = list(nlp.get_pipe("ner").model.walk())
    modules = [shim.module for node in nodes for shim in node.shims]
    arrays = [node.get_param(name).copy() for node in nodes for name in node.param_names]
    return arrays + [p.detach().numpy().copy() for m in modules for p in m.parameters()]


def test_no_weight_and_no_gradient_changes_in_a_step_that_is_left_out(explode):
    model = small_model()
    model["tok2vec"]["embed"]["*"]["hashes"] = hash_embed()
    nlp = make_nlp(model)
    train(nlp, steps=2)
    before, told = weights(nlp), StringIO()
    explode(0, (1, NAN))
    guard = FiniteLosses(nlp, skip=True, stderr=told)
    guard.begin(0)
    losses = {}
    examples = make_examples(nlp)
    for part in (examples[:4], examples[4:6], examples[6:]):  # an accumulated batch
        guard.update(part, losses=losses, sgd=False)
    for _, pipe in guard.pipeline:
        pipe.finish_update(Adam(0.1))
    assert all(numpy.array_equal(a, b) for a, b in zip(weights(nlp), before, strict=True))
    for node in nlp.get_pipe("ner").model.walk():
        assert not any(node.get_grad(n).any() for n in node.param_names if node.has_grad(n))
        for shim in node.shims:
            grads = [p.grad for p in shim.module.parameters() if p.grad is not None]
            assert not any(torch.any(grad) for grad in grads)
    assert told.getvalue().count("\n") == guard.left_out == 1
    guard.begin(1)
    assert guard.pipeline == nlp.pipeline


def test_documents_of_a_large_batch_are_not_all_named(explode):
    nlp = make_nlp()
    train(nlp, steps=0)
    explode(0, (0, NAN))
    guard = FiniteLosses(nlp, skip=False, stderr=StringIO())
    long = nlp.make_doc("word " * 100)
    examples = [*make_examples(nlp), Example(long, long)]
    with pytest.raises(InputError, match=r"on 9 document\(s\): 'Ada Lovelace .* and 4 more"):
        guard.update(examples, losses={}, sgd=False)
