"""Rates by group: the steps of each group are those of torch at the rate of that group."""

from copy import deepcopy

import numpy
import pytest
import torch
from thinc.api import Linear, PyTorchWrapper, fix_random_seed
from torch import nn

from spacy_psa.errors import InputError
from spacy_psa.training.checkpoint import load_optimizer_state, optimizer_state
from spacy_psa.training.optimizers import Rates, adam, adamw
from tests.helpers.optimizers import assert_equal_weights, set_gradients, small_net
from tests.helpers.pipelines import make_examples, make_nlp, parameters


class Tagger(nn.Module):
    """A head over a BERT of two layers with random weights."""

    def __init__(self):
        transformers = pytest.importorskip("transformers", reason="needs the extra `transformers`")
        super().__init__()
        sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 8}
        config = transformers.BertConfig(vocab_size=9, num_hidden_layers=2, **sizes)
        torch.manual_seed(0)
        self.net = transformers.BertModel(config)
        self.head = nn.Linear(8, 3)


def rate_of(name, rates, decay=1.0):
    """The factor of a parameter of `Tagger`, written out."""
    if name.startswith("net."):
        above = 2 if "embeddings" in name else 1 if "layer.0" in name else 0
        return rates["pretrained"] * decay**above
    return rates["*"]


@pytest.mark.parametrize("decay", [1.0, 0.5])
@pytest.mark.parametrize(("make", "kind"), [(adam, torch.optim.Adam), (adamw, torch.optim.AdamW)])
def test_each_group_takes_torchs_steps_at_its_own_rate(make, kind, decay):
    ours, theirs = Tagger(), Tagger()
    rates = {"pretrained": 0.5, "*": 20.0}
    optimizer = make(0.01, weight_decay=0.1, rates=rates, layer_decay=decay)
    groups = [
        {
            "params": [p],
            "lr": 0.01 * rate_of(name, rates, decay),
            "weight_decay": 0.1 if p.ndim > 1 else 0.0,
        }
        for name, p in theirs.named_parameters()
    ]
    expected = kind(groups)
    for seed in range(3):
        set_gradients(ours, seed)
        set_gradients(theirs, seed)
        optimizer.update_module(1, ours)
        expected.step()
    assert_equal_weights(ours, theirs)


def test_the_first_pattern_that_matches_counts():
    rates = Rates({"Net.*.bias": 0.0, "pretrained": 2.0, "Net.*": 3.0})
    assert rates.factor("Net.a.bias", pretrained=True) == 0.0
    assert rates.factor("Net.a.weight", pretrained=True) == 2.0
    assert rates.factor("Net.a.weight") == 3.0
    assert rates.factor("Other.weight") == 1.0


@pytest.mark.filterwarnings("error")
def test_a_pattern_that_counts_for_no_parameter_is_named_once():
    net = small_net()
    optimizer = adamw(0.01, rates={"pretraind": 1.0, "*": 20.0, "*.bias": 0.0})
    set_gradients(net, 0)
    optimizer.update_module(1, net)
    with pytest.warns(UserWarning) as warnings:
        optimizer.step_schedules()
    named = sorted(str(w.message).split(";")[0] for w in warnings)
    assert named == [
        f"rates: the pattern '{p}' counts for no parameter" for p in ("*.bias", "pretraind")
    ]
    optimizer.step_schedules()


def test_one_rate_for_all_is_the_rate_without_groups():
    """To the bit, since biases have no weight decay here in either."""
    plain, grouped = small_net(), small_net()
    optimizers = adam(0.01), adam(0.01, rates={"*": 1.0})
    for seed in range(3):
        for net, optimizer in zip((plain, grouped), optimizers, strict=True):
            set_gradients(net, seed)
            optimizer.update_module(1, net)
    for p, q in zip(plain.parameters(), grouped.parameters(), strict=True):
        assert torch.equal(p, q)


def test_torch_modules_of_other_packages_are_pretrained_and_thincs_layers_are_not():
    rates = {"pretrained": 1.0, "*": 10.0}
    torchs, thincs = PyTorchWrapper(small_net()), Linear(2, 3).initialize()
    for model, factor in ((torchs, 1.0), (thincs, 10.0)):
        optimizer = adamw(0.001, rates=rates, weight_decay=0.0)
        if model is thincs:
            weights = model.get_param("W")
            model.inc_grad("W", numpy.ones_like(weights))
        else:
            [*_, (_, parameter)] = model.shims[0]._model.named_parameters()
            weights = parameter.detach().numpy()
            set_gradients(model.shims[0]._model, 0)
        before = weights.copy()
        model.finish_update(optimizer)
        # Adam's first step is as long as the rate.
        numpy.testing.assert_allclose(abs(weights - before), 0.001 * factor, rtol=1e-3)


def test_a_saved_optimizer_continues_with_its_groups():
    def training():
        nlp = make_nlp()
        examples = make_examples(nlp)
        optimizer = adamw(0.01, rates={"LabelPair.*": 10.0, "*": 1.0}, layer_decay=0.9)
        fix_random_seed(0)
        nlp.initialize(lambda: examples)
        return nlp, optimizer, examples

    (nlp, optimizer, examples), (other, restored, _) = training(), training()
    nlp.update(examples, sgd=optimizer)
    other.from_bytes(nlp.to_bytes())
    load_optimizer_state(other, restored, deepcopy(optimizer_state(nlp, optimizer)))
    scales = {g["scale"] for made in restored.by_module.values() for g in made.param_groups}
    assert scales == {1.0, 10.0}
    for pipeline, sgd in ((nlp, optimizer), (other, restored)):
        fix_random_seed(1)  # of dropout
        pipeline.update(examples, sgd=sgd)
    ours, theirs = (parameters(pipeline.get_pipe("ner")) for pipeline in (nlp, other))
    assert all(torch.equal(p, q) for p, q in zip(ours, theirs, strict=True))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rates": {"*": -1.0}}, "AdamW.v1: rates: \\* is -1.0: it must be 0 or more"),
        ({"rates": {"*": "fast"}}, "AdamW.v1: rates: \\* is 'fast'"),
        ({"layer_decay": 1.5}, "AdamW.v1: layer_decay is 1.5: it must be a number from 0 to 1"),
    ],
)
def test_factors_that_are_not_possible_are_an_error(settings, message):
    with pytest.raises(InputError, match=message):
        adamw(0.1, **settings)
