"""The optimizers: torch's steps, for torch modules and for the parameters of thinc layers."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import pytest
import torch
from spacy.util import registry
from thinc.api import Adam, Linear, Optimizer
from torch import nn
from torch.optim.swa_utils import AveragedModel

from spacy_psa.errors import InputError
from spacy_psa.training.optimizers import (
    AdaptiveOptimizer,
    MomentumSGD,
    adam,
    adamw,
    nadam,
    sgd,
    stochastic_weight_averaging,
)
from spacy_psa.training.schedules import inverse_decay
from tests.helpers.optimizers import (
    assert_equal_layers,
    assert_equal_weights,
    set_equal_gradients,
    set_gradients,
    small_net,
    thinc_and_torch,
)


class Kind(NamedTuple):
    """One of our optimizers, and torch's, with equal settings."""

    name: str
    make: Callable[..., Any]
    reference: Callable[..., Any]
    ours: dict[str, Any]
    torchs: dict[str, Any]


BETAS = {"beta1": 0.8, "beta2": 0.95, "eps": 1e-4}, {"betas": (0.8, 0.95), "eps": 1e-4}
KINDS = [
    Kind("SGD", sgd, torch.optim.SGD, {"momentum": 0.9}, {"momentum": 0.9}),
    Kind("Adam", adam, torch.optim.Adam, *BETAS),
    Kind("AdamW", adamw, torch.optim.AdamW, *BETAS),
    Kind("Nadam", nadam, torch.optim.NAdam, *BETAS),
]
PLAIN = Kind("SGD", sgd, torch.optim.SGD, {"momentum": 0.0}, {})
EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def test_the_defaults_are_those_of_the_papers():
    optimizer = sgd()
    assert (optimizer.learn_rate, optimizer.momentum) == (0.015, 0.9)
    for make, decay in ((adam, 0.0), (adamw, 0.01), (nadam, 0.0)):
        optimizer = make()
        group = optimizer.make(small_net().parameters()).param_groups[0]
        assert (optimizer.learn_rate, group["betas"], group["eps"]) == (0.001, (0.9, 0.999), 1e-8)
        assert group["weight_decay"] == decay


@EACH
def test_no_average_is_kept_and_thinc_clips_nothing_by_default(kind):
    optimizer = kind.make()
    assert (optimizer.averages, optimizer.grad_clip, optimizer.L2) == (None, 0.0, 0.0)


@pytest.mark.parametrize("decay", [0.0, 0.2])
@pytest.mark.parametrize("kind", [*KINDS, PLAIN], ids=lambda kind: f"{kind.name}-{kind.ours}")
def test_torch_modules_and_thinc_parameters_take_torchs_steps(kind, decay):
    (thinc, ours), (_, theirs) = thinc_and_torch(), thinc_and_torch()
    optimizer = kind.make(learn_rate=0.02, weight_decay=decay, **kind.ours)
    settings = {"lr": 0.02, "weight_decay": decay, **kind.torchs}
    expected = kind.reference(theirs.parameters(), **settings)
    for seed in range(20):
        set_equal_gradients(thinc, ours, seed)
        set_gradients(theirs, seed)
        thinc.finish_update(optimizer)
        optimizer.update_module(7, ours)
        expected.step()
        assert_equal_weights(ours, theirs)
        assert_equal_layers(thinc, theirs)
        assert not thinc.get_grad("W").any() and not thinc.get_grad("b").any()


@EACH
def test_the_learning_rate_follows_its_schedule(kind):
    (thinc, ours), (_, theirs) = thinc_and_torch(), thinc_and_torch()
    optimizer = kind.make(learn_rate=inverse_decay(0.1, 1.0, 2), **kind.ours)
    expected = kind.reference(theirs.parameters(), lr=0.0, **kind.torchs)
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


@EACH
def test_parameters_and_modules_have_moments_of_their_own(kind):
    together = kind.make(learn_rate=0.02, **kind.ours)
    layers = [thinc_and_torch(seed) for seed in range(2)]
    for seed in range(3):
        for i, (thinc, ours) in enumerate(layers):
            set_equal_gradients(thinc, ours, 10 * i + seed)
            thinc.finish_update(together)
            together.update_module(i, ours)
    for i, (thinc, ours) in enumerate(layers):
        _, alone = thinc_and_torch(i)
        expected = kind.reference(alone.parameters(), lr=0.02, **kind.torchs)
        for seed in range(3):
            set_gradients(alone, 10 * i + seed)
            expected.step()
        assert_equal_weights(ours, alone)
        assert_equal_layers(thinc, alone)


@EACH
def test_averages_move_from_zero_to_the_weights_as_thincs_do(kind):
    thinc, ours = thinc_and_torch()
    optimizer = kind.make(**kind.ours, use_averages=True)
    expected = torch.zeros_like(ours.weight)
    for t in range(1, 6):
        set_equal_gradients(thinc, ours, t)
        thinc.finish_update(optimizer)
        optimizer.update_module(7, ours)
        expected = torch.lerp(ours.weight, expected, (1 + t) / (10 + t))
        average = optimizer.averages[7, "weight"]
        torch.testing.assert_close(average, expected, atol=1e-6, rtol=1e-6)
        numpy.testing.assert_allclose(optimizer.averages[thinc.id, "W"], average, atol=1e-6)
    before = ours.weight.detach().clone()
    average.zero_()
    assert torch.equal(ours.weight, before)


@EACH
def test_a_config_finds_the_optimizer(kind):
    config = {"@optimizers": f"spacy-psa.{kind.name}.v1", **kind.ours}
    optimizer = registry.resolve({"optimizer": config})["optimizer"]
    assert isinstance(optimizer, (MomentumSGD, AdaptiveOptimizer))
    assert isinstance(optimizer, Optimizer)
    group = optimizer.make(small_net().parameters()).param_groups[0]
    assert {name: group[name] for name in kind.torchs} == kind.torchs


@pytest.mark.parametrize("kind", KINDS[:3], ids=lambda kind: kind.name)
def test_a_step_of_a_module_is_fused(kind):
    assert kind.make().make(small_net().parameters()).param_groups[0]["fused"] is True


GRADIENTS = [1.0, -2.0, 0.5, 3.0, 0.0]


def weights_after(optimizer):
    """Of one weight of 1, after each update by the `GRADIENTS`."""
    layer = nn.Linear(1, 1, bias=False)
    nn.init.constant_(layer.weight, 1.0)
    for gradient in GRADIENTS:
        layer.weight.grad = torch.tensor([[gradient]])
        optimizer.update_module(1, layer)
        yield layer.weight.item()


def test_a_step_of_sgd_is_the_formula():
    expected, velocity = 1.0, 0.0
    for g, weight in zip(GRADIENTS, weights_after(sgd(0.1, 0.9)), strict=True):
        velocity = 0.9 * velocity + g
        expected -= 0.1 * velocity
        assert weight == pytest.approx(expected, abs=1e-6)


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


@EACH
def test_a_module_without_parameters_is_left_alone(kind):
    kind.make().update_module(1, nn.Tanh())


# Clipping of each number in the gradients, by SGD.v1


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("limit", [0.5, 2.0, 100.0])
def test_steps_are_those_after_torchs_own_clipping(limit, momentum):
    (thinc, ours), (_, theirs) = thinc_and_torch(), thinc_and_torch()
    optimizer = sgd(0.1, momentum, clip_value=limit, weight_decay=0.2)
    reference = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=momentum, weight_decay=0.2)
    for seed in range(5):
        set_equal_gradients(thinc, ours, seed, scale=3.0)
        set_gradients(theirs, seed, scale=3.0)
        assert abs(thinc.get_grad("W")).max() > 0.5
        thinc.finish_update(optimizer)
        optimizer.update_module(1, ours)
        nn.utils.clip_grad_value_(theirs.parameters(), limit)
        reference.step()
        assert_equal_weights(ours, theirs)
        assert_equal_layers(thinc, theirs)


def test_by_default_nothing_is_clipped():
    _, module = thinc_and_torch()
    before = module.bias.detach().clone()
    module.bias.grad = torch.tensor([1e6, -1e6])
    sgd(1.0, 0.0).update_module(1, module)
    torch.testing.assert_close(before - module.bias, torch.tensor([1e6, -1e6]))


def test_a_parameter_without_a_gradient_is_left_alone():
    _, module = thinc_and_torch()
    module.bias.grad = torch.tensor([9.0, -9.0])
    weight, bias = module.weight.detach().clone(), module.bias.detach().clone()
    sgd(1.0, 0.0, clip_value=5.0).update_module(1, module)
    assert torch.equal(module.weight, weight)
    torch.testing.assert_close(bias - module.bias, torch.tensor([5.0, -5.0]))


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (
            sgd,
            {"learn_rate": -0.1},
            "SGD.v1: learn_rate is -0.1: it must be 0 or more, or a schedule",
        ),
        (sgd, {"momentum": -2.0}, "SGD.v1: momentum is -2.0: it must be a number from 0"),
        (sgd, {"clip_value": -5.0}, "SGD.v1: clip_value is -5.0: it must be 0 for no limit"),
        (sgd, {"weight_decay": -0.1}, "SGD.v1: weight_decay is -0.1: it must be 0"),
        (adam, {"learn_rate": math.nan}, "Adam.v1: learn_rate is nan"),
        (adam, {"learn_rate": "NaN"}, "Adam.v1: learn_rate is 'NaN'"),
        (adamw, {"beta1": 1.5}, "AdamW.v1: beta1 is 1.5: it must be a number from 0"),
        (adamw, {"eps": -1.0}, "AdamW.v1: eps is -1.0: it must be 0 or more"),
        (nadam, {"beta2": -1.0}, "Nadam.v1: beta2 is -1.0: it must be a number from 0"),
        (nadam, {"weight_decay": -1}, "Nadam.v1: weight_decay is -1: it must be 0"),
    ],
)
def test_settings_that_are_not_possible_are_refused_at_once(make, settings, message):
    with pytest.raises(InputError, match=f"^{message}"):
        make(**settings)


def test_a_schedule_that_falls_below_zero_is_refused_in_its_step():
    _, module = thinc_and_torch()
    optimizer = sgd(iter([0.1, -0.1]), 0.0)
    optimizer.update_module(1, module)
    optimizer.step_schedules()
    with pytest.raises(InputError, match=r"^the learning rate is -0.1: correct the schedule"):
        optimizer.update_module(1, module)


# SWA.v1: the mean of the weights of the later part of a training

MADE = pytest.mark.parametrize("make", [sgd, adamw], ids=lambda make: make.__name__)


@pytest.mark.parametrize("start", [0, 1, 7])
@MADE
def test_the_mean_is_that_of_torchs_averaged_model(make, start):
    module, plain = small_net(), small_net()
    optimizer, without = stochastic_weight_averaging(make(0.1), start), make(0.1)
    reference = AveragedModel(module)
    for step in range(20):
        set_gradients(module, step)
        set_gradients(plain, step)
        optimizer.update_module(1, module)
        without.update_module(1, plain)
        if step >= start:
            reference.update_parameters(module)
        else:  # until the start, the average is the present weights
            for name, parameter in module.named_parameters():
                assert torch.equal(optimizer.averages[1, name], parameter.data)
    for name, expected in reference.module.named_parameters():
        torch.testing.assert_close(optimizer.averages[1, name], expected.data)
    for p, q in zip(module.parameters(), plain.parameters(), strict=True):
        assert torch.equal(p, q)


@MADE
def test_the_mean_of_thinc_parameters_is_that_of_torchs(make):
    thinc, ours = thinc_and_torch()
    optimizer = stochastic_weight_averaging(make(0.1), start=3)
    for step in range(9):
        set_equal_gradients(thinc, ours, step)
        thinc.finish_update(optimizer)
        optimizer.update_module(7, ours)
    for parameter, name in (("W", "weight"), ("b", "bias")):
        held = optimizer.averages[thinc.id, parameter]
        numpy.testing.assert_allclose(held, optimizer.averages[7, name].numpy(), atol=1e-6)
        assert abs(held - thinc.get_param(parameter)).max() > 1e-3


def test_an_empty_parameter_is_not_averaged():
    optimizer = stochastic_weight_averaging(sgd(0.1), start=0)
    weights, gradient = numpy.zeros((0, 2), dtype="f"), numpy.zeros((0, 2), dtype="f")
    optimizer((1, "W"), weights, gradient)
    assert optimizer.averages == {}


def test_evaluations_score_the_mean():
    layer = Linear(1, 1).initialize()
    optimizer = stochastic_weight_averaging(sgd(1.0, momentum=0.0), start=0)
    layer.set_param("W", numpy.zeros((1, 1), dtype="f"))
    for _ in range(3):  # the weight becomes -1, -2 and -3
        layer.set_grad("W", numpy.ones((1, 1), dtype="f"))
        layer.finish_update(optimizer)
    with layer.use_params(optimizer.averages):
        assert layer.get_param("W").item() == -2.0
    assert layer.get_param("W").item() == -3.0


def test_a_config_finds_the_average():
    inner = {"@optimizers": "spacy-psa.AdamW.v1", "learn_rate": 0.5}
    config = {"optimizer": {"@optimizers": "spacy-psa.SWA.v1", "start": 4, "optimizer": inner}}
    optimizer = registry.resolve(config)["optimizer"]
    assert optimizer.learn_rate == 0.5
    assert [optimizer.average_decay(n) for n in range(1, 8)] == [0, 0, 0, 0, 0, 1 / 2, 2 / 3]


@pytest.mark.parametrize(
    ("optimizer", "start", "message"),
    [
        (sgd(0.1), -1, "SWA.v1: start is -1"),
        (Adam(0.1), 3, "SWA.v1: the optimizer is a thinc.optimizers.Optimizer: use one of spacy"),
    ],
)
def test_an_average_that_is_not_possible_is_refused(optimizer, start, message):
    with pytest.raises(InputError, match=message):
        stochastic_weight_averaging(optimizer, start)
