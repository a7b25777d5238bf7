"""Adam.v1, AdamW.v1 and Nadam.v1 against torch's, and against the formulas of the papers."""

import numpy
import pytest
import torch
from spacy.util import registry
from torch import nn

from spacy_psa.errors import InputError
from spacy_psa.training.optimizers import AdaptiveOptimizer, adam, adamw, nadam
from spacy_psa.training.schedules import inverse_decay
from tests.helpers.optimizers import (
    assert_equal_layers,
    assert_equal_weights,
    set_equal_gradients,
    set_gradients,
    small_net,
    thinc_and_torch,
)

SETTINGS = {"learn_rate": 0.02, "beta1": 0.8, "beta2": 0.95, "eps": 1e-4}
# Ours, torch's, and the name in a config.
BOTH = pytest.mark.parametrize(
    ("make", "reference", "name"),
    [
        (adam, torch.optim.Adam, "Adam"),
        (adamw, torch.optim.AdamW, "AdamW"),
        (nadam, torch.optim.NAdam, "Nadam"),
    ],
    ids=["Adam", "AdamW", "Nadam"],
)


def of_torch(reference, module, rate=0.02):
    return reference(module.parameters(), lr=rate, betas=(0.8, 0.95), eps=1e-4)


@BOTH
def test_the_defaults_are_those_of_the_papers(make, reference, name):
    optimizer = make()
    group = optimizer.make(small_net().parameters()).param_groups[0]
    assert (optimizer.learn_rate, group["betas"], group["eps"]) == (0.001, (0.9, 0.999), 1e-8)
    assert optimizer.averages is None
    assert (optimizer.grad_clip, optimizer.L2) == (0.0, 0.0)


@BOTH
def test_torch_modules_take_torchs_steps(make, reference, name):
    ours, theirs, optimizer = small_net(), small_net(), make(**SETTINGS)
    expected = of_torch(reference, theirs)
    for seed in range(20):
        set_gradients(ours, seed)
        set_gradients(theirs, seed)
        optimizer.update_module(1, ours)
        expected.step()
        assert_equal_weights(ours, theirs)


@BOTH
def test_thinc_parameters_take_torchs_steps(make, reference, name):
    thinc, ours = thinc_and_torch()
    optimizer, expected = make(**SETTINGS), of_torch(reference, ours)
    for seed in range(20):
        set_equal_gradients(thinc, ours, seed)
        thinc.finish_update(optimizer)
        expected.step()
        assert_equal_layers(thinc, ours)
        assert not thinc.get_grad("W").any() and not thinc.get_grad("b").any()


@BOTH
def test_weight_decay_is_torchs(make, reference, name):
    (thinc, ours), (_, theirs) = thinc_and_torch(), thinc_and_torch()
    optimizer = make(**SETTINGS, weight_decay=0.2)
    expected = reference(
        theirs.parameters(), lr=0.02, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.2
    )
    for seed in range(10):
        set_equal_gradients(thinc, ours, seed)
        set_gradients(theirs, seed)
        thinc.finish_update(optimizer)
        optimizer.update_module(7, ours)
        expected.step()
        assert_equal_weights(ours, theirs)
        assert_equal_layers(thinc, theirs)


@BOTH
def test_a_weight_decay_below_zero_is_refused(make, reference, name):
    with pytest.raises(InputError, match=rf"{name}.v1: weight_decay is -1: use 0"):
        make(weight_decay=-1)


@BOTH
def test_the_learning_rate_follows_its_schedule(make, reference, name):
    thinc, ours = thinc_and_torch()
    theirs = nn.Linear(3, 2)
    theirs.load_state_dict(ours.state_dict())
    optimizer = make(**{**SETTINGS, "learn_rate": inverse_decay(0.1, 1.0, 2)})
    expected = of_torch(reference, theirs, rate=0.0)
    for seed, rate in enumerate([0.1, 0.1, 0.05, 0.05, 0.1 / 3]):
        set_equal_gradients(thinc, ours, seed)
        set_gradients(theirs, seed)
        optimizer.update_module(7, ours)
        thinc.finish_update(optimizer)
        optimizer.step_schedules()
        expected.param_groups[0]["lr"] = rate
        expected.step()
        assert_equal_weights(ours, theirs)
        assert_equal_layers(thinc, theirs)


@BOTH
def test_parameters_and_modules_have_moments_of_their_own(make, reference, name):
    together = make(**SETTINGS)
    layers = [thinc_and_torch(seed) for seed in range(2)]
    for seed in range(3):
        for i, (thinc, ours) in enumerate(layers):
            set_equal_gradients(thinc, ours, 10 * i + seed)
            thinc.finish_update(together)
            together.update_module(i, ours)
    for i, (thinc, ours) in enumerate(layers):
        _, alone = thinc_and_torch(i)
        expected = of_torch(reference, alone)
        for seed in range(3):
            set_gradients(alone, 10 * i + seed)
            expected.step()
        assert_equal_weights(ours, alone)
        assert_equal_layers(thinc, alone)


@BOTH
def test_thinc_and_torch_parameters_have_equal_averages(make, reference, name):
    thinc, ours = thinc_and_torch()
    optimizer = make(**SETTINGS, use_averages=True)
    for seed in range(4):
        set_equal_gradients(thinc, ours, seed)
        thinc.finish_update(optimizer)
        optimizer.update_module(7, ours)
        average = optimizer.averages[7, "weight"]
        numpy.testing.assert_allclose(optimizer.averages[thinc.id, "W"], average, atol=1e-6)
        assert not torch.equal(average, ours.weight)


@BOTH
def test_a_config_finds_the_optimizer(make, reference, name):
    settings = {"beta1": 0.5, "beta2": 0.98, "eps": 1e-9}
    config = {"@optimizers": f"spacy-psa.{name}.v1", **settings}
    optimizer = registry.resolve({"optimizer": config})["optimizer"]
    assert isinstance(optimizer, AdaptiveOptimizer)
    group = optimizer.make(small_net().parameters()).param_groups[0]
    assert (group["betas"], group["eps"]) == ((0.5, 0.98), 1e-9)


def test_adam_is_fused():
    assert adam().make(small_net().parameters()).param_groups[0]["fused"] is True


GRADIENTS = [1.0, -2.0, 0.5, 3.0, 0.0]


def weights_after(optimizer):
    """Of one weight of 1, after each update by the `GRADIENTS`."""
    layer = nn.Linear(1, 1, bias=False)
    nn.init.constant_(layer.weight, 1.0)
    for gradient in GRADIENTS:
        layer.weight.grad = torch.tensor([[gradient]])
        optimizer.update_module(1, layer)
        yield layer.weight.item()


def test_a_step_of_adam_is_the_formula():
    expected, m, v = 1.0, 0.0, 0.0
    found = weights_after(adam(0.1, 0.9, 0.98, 1e-3))
    for t, (g, weight) in enumerate(zip(GRADIENTS, found, strict=True), 1):
        m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g * g
        expected -= 0.1 * m / (1 - 0.9**t) / ((v / (1 - 0.98**t)) ** 0.5 + 1e-3)
        assert weight == pytest.approx(expected, abs=1e-6)


def test_a_step_of_nadam_is_the_formula():
    expected, m, v, product = 1.0, 0.0, 0.0, 1.0
    found = weights_after(nadam(0.1, 0.9, 0.999, 1e-3))
    for t, (g, weight) in enumerate(zip(GRADIENTS, found, strict=True), 1):
        mu, following = (0.9 * (1 - 0.96 ** (0.004 * s) / 2) for s in (t, t + 1))
        product *= mu
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        look_ahead = (1 - mu) * g / (1 - product) + following * m / (1 - product * following)
        expected -= 0.1 * look_ahead / ((v / (1 - 0.999**t)) ** 0.5 + 1e-3)
        assert weight == pytest.approx(expected, abs=1e-6)
