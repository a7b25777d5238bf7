"""SGD.v1, a thinc optimizer that updates torch modules in one step, and clips their gradients."""

import math

import pytest
import torch
from spacy.util import registry
from thinc.api import Optimizer
from torch import nn

from spacy_psa.errors import InputError
from spacy_psa.training.optimizers import MomentumSGD, adam, adamw, nadam, sgd
from spacy_psa.training.schedules import inverse_decay
from tests.helpers.optimizers import (
    assert_equal_layers,
    assert_equal_weights,
    set_equal_gradients,
    set_gradients,
    small_net,
    thinc_and_torch,
)


def loss_of(module, seed):
    generator = torch.Generator().manual_seed(seed)
    return (module(torch.randn(5, 3, generator=generator)) ** 2).sum()


def run(module, update, steps):
    """The weights after each of several updates of one module."""
    seen = []
    for seed in range(steps):
        module.zero_grad()
        loss_of(module, seed).backward()
        update()
        seen.append([p.detach().clone() for p in module.parameters()])
    return seen


def assert_equal_runs(left, right):
    for ours, theirs in zip(left, right, strict=True):
        for p, q in zip(ours, theirs, strict=True):
            torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-7)


def test_the_paper_settings_are_the_defaults():
    optimizer = sgd()
    assert (optimizer.learn_rate, optimizer.momentum) == (0.015, 0.9)
    assert optimizer.averages is None
    assert (optimizer.grad_clip, optimizer.L2) == (0.0, 0.0)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_sgd_equals_torchs_sgd(momentum):
    ours, theirs = small_net(), small_net()
    optimizer = sgd(0.1, momentum)
    reference = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=momentum)
    assert_equal_runs(
        run(ours, lambda: optimizer.update_module(1, ours), 6), run(theirs, reference.step, 6)
    )


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_weight_decay_is_that_of_torchs_sgd_for_torch_and_thinc_parameters(momentum):
    (thinc, ours), (_, theirs) = thinc_and_torch(), thinc_and_torch()
    optimizer = sgd(0.1, momentum, clip_value=1.0, weight_decay=0.2)
    reference = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=momentum, weight_decay=0.2)
    for seed in range(5):
        set_equal_gradients(thinc, ours, seed, scale=3.0)
        set_gradients(theirs, seed, scale=3.0)
        thinc.finish_update(optimizer)
        optimizer.update_module(7, ours)
        nn.utils.clip_grad_value_(theirs.parameters(), 1.0)
        reference.step()
        assert_equal_weights(ours, theirs)
        assert_equal_layers(thinc, theirs)


def test_a_weight_decay_below_zero_is_refused():
    with pytest.raises(InputError, match=r"SGD.v1: weight_decay is -0.1: use 0"):
        sgd(weight_decay=-0.1)


def test_the_velocity_is_v_equals_m_v_plus_g():
    weight = nn.Linear(1, 1, bias=False)
    nn.init.constant_(weight.weight, 1.0)
    optimizer = sgd(0.1, 0.9)
    expected, velocity = 1.0, 0.0
    for gradient in (1.0, -2.0, 0.5):
        weight.weight.grad = torch.tensor([[gradient]])
        optimizer.update_module(1, weight)
        velocity = 0.9 * velocity + gradient
        expected -= 0.1 * velocity
        assert weight.weight.item() == pytest.approx(expected, abs=1e-6)


def test_thinc_parameters_take_the_same_steps():
    """A thinc layer and a torch layer with equal weights and gradients stay equal."""
    thinc, ours = thinc_and_torch()
    optimizer = sgd(0.1, 0.9)
    for seed in range(5):
        set_equal_gradients(thinc, ours, seed)
        thinc.finish_update(optimizer)
        optimizer.update_module(7, ours)
        assert_equal_layers(thinc, ours)
    assert not thinc.get_grad("W").any()


def test_the_learning_rate_follows_its_schedule():
    ours, theirs = small_net(), small_net()
    optimizer = sgd(inverse_decay(0.1, 1.0, 2), 0.9)
    reference = torch.optim.SGD(theirs.parameters(), lr=0.0, momentum=0.9)
    rates = iter([0.1, 0.1, 0.05, 0.05, 0.1 / 3])

    def our_step():
        optimizer.update_module(1, ours)
        optimizer.step_schedules()

    def their_step():
        reference.param_groups[0]["lr"] = next(rates)
        reference.step()

    assert_equal_runs(run(ours, our_step, 5), run(theirs, their_step, 5))


def trained_alone(seed, steps):
    trained, optimizer = small_net(seed), sgd(0.1, 0.9)
    return run(trained, lambda: optimizer.update_module(1, trained), steps)[-1]


def test_modules_have_velocities_of_their_own():
    left, right = small_net(0), small_net(1)
    optimizer = sgd(0.1, 0.9)
    for seed in range(4):
        for key, m in ((1, left), (2, right)):
            m.zero_grad()
            loss_of(m, seed).backward()
            optimizer.update_module(key, m)
    for seed, together in ((0, left), (1, right)):
        alone = trained_alone(seed, steps=4)
        assert_equal_runs([list(together.parameters())], [alone])


def test_a_module_without_parameters_is_left_alone():
    sgd().update_module(1, nn.Tanh())


def test_averages_move_from_zero_to_the_weights_as_thincs_do():
    weight = nn.Linear(1, 1, bias=False)
    optimizer = sgd(0.1, 0.0, use_averages=True)
    expected = 0.0
    for t in range(1, 6):
        weight.weight.grad = torch.ones(1, 1)
        optimizer.update_module(3, weight)
        decay = (1 + t) / (10 + t)
        expected = decay * expected + (1 - decay) * weight.weight.item()
        assert optimizer.averages[3, "weight"].item() == pytest.approx(expected, abs=1e-6)


def test_averages_are_no_part_of_the_weights():
    weight = nn.Linear(2, 2)
    optimizer = sgd(0.1, use_averages=True)
    weight.weight.grad = torch.ones(2, 2)
    optimizer.update_module(3, weight)
    before = weight.weight.detach().clone()
    optimizer.averages[3, "weight"].zero_()
    assert torch.equal(weight.weight, before)


def test_a_config_finds_the_optimizer():
    settings = {"momentum": 0.5, "clip_value": 5.0}
    config = {"optimizer": {"@optimizers": "spacy-psa.SGD.v1", **settings}}
    optimizer = registry.resolve(config)["optimizer"]
    assert isinstance(optimizer, MomentumSGD) and isinstance(optimizer, Optimizer)
    assert (optimizer.momentum, optimizer.clip_value) == (0.5, 5.0)


# Clipping of each number in the gradients


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("limit", [0.5, 2.0, 100.0])
def test_a_torch_module_is_updated_as_after_torchs_own_clipping(limit, momentum):
    (_, ours), (_, theirs) = thinc_and_torch(), thinc_and_torch()
    optimizer = sgd(0.1, momentum, clip_value=limit)
    reference = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=momentum)
    for seed in range(5):
        set_gradients(ours, seed, scale=3.0)
        set_gradients(theirs, seed, scale=3.0)
        optimizer.update_module(1, ours)
        nn.utils.clip_grad_value_(theirs.parameters(), limit)
        reference.step()
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=0, atol=1e-6)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_clipped_thinc_parameters_take_the_same_steps(momentum):
    thinc, ours = thinc_and_torch()
    optimizer = sgd(0.1, momentum, clip_value=1.0)
    for seed in range(5):
        set_equal_gradients(thinc, ours, seed, scale=3.0)
        assert abs(thinc.get_grad("W")).max() > 1
        thinc.finish_update(optimizer)
        optimizer.update_module(7, ours)
        assert_equal_layers(thinc, ours)


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


def test_a_limit_below_zero_is_refused():
    with pytest.raises(InputError, match=r"clip_value is -5"):
        sgd(clip_value=-5.0)


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (sgd, {"learn_rate": -0.1}, "SGD.v1: learn_rate is -0.1: use 0 or more, or a schedule"),
        (sgd, {"momentum": -2.0}, "SGD.v1: momentum is -2.0: it must be a number from 0"),
        (adam, {"learn_rate": math.nan}, "Adam.v1: learn_rate is nan"),
        (adam, {"learn_rate": "NaN"}, "Adam.v1: learn_rate is 'NaN'"),
        (adamw, {"beta1": 1.5}, "AdamW.v1: beta1 is 1.5: it must be a number from 0"),
        (adamw, {"eps": -1.0}, "AdamW.v1: eps is -1.0: it must be 0 or more"),
        (nadam, {"beta2": -1.0}, "Nadam.v1: beta2 is -1.0: it must be a number from 0"),
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
