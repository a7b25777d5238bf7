"""SGD.v1, a thinc optimizer that updates torch modules in one step."""

import numpy
import pytest
import torch
from spacy.util import registry
from thinc.api import Linear, Optimizer
from torch import nn

from spacy_psa.training.optimizers import MomentumSGD, sgd
from spacy_psa.training.schedules import inverse_decay


def module(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


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
    ours, theirs = module(), module()
    optimizer = sgd(0.1, momentum)
    reference = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=momentum)
    assert_equal_runs(
        run(ours, lambda: optimizer.update_module(1, ours), 6), run(theirs, reference.step, 6)
    )


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
    thinc, ours = Linear(2, 3).initialize(), nn.Linear(3, 2)
    with torch.no_grad():
        ours.weight.copy_(torch.from_numpy(thinc.get_param("W")))
        ours.bias.copy_(torch.from_numpy(thinc.get_param("b")))
    optimizer = sgd(0.1, 0.9)
    for seed in range(5):
        random = numpy.random.default_rng(seed)
        d_weight, d_bias = random.random((2, 3), "float32"), random.random(2, "float32")
        thinc.inc_grad("W", d_weight)
        thinc.inc_grad("b", d_bias)
        ours.weight.grad, ours.bias.grad = map(torch.from_numpy, (d_weight.copy(), d_bias.copy()))
        thinc.finish_update(optimizer)
        optimizer.update_module(7, ours)
        numpy.testing.assert_allclose(thinc.get_param("W"), ours.weight.detach(), atol=1e-6)
        numpy.testing.assert_allclose(thinc.get_param("b"), ours.bias.detach(), atol=1e-6)
    assert not thinc.get_grad("W").any()


def test_the_learning_rate_follows_its_schedule():
    ours, theirs = module(), module()
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
    trained, optimizer = module(seed), sgd(0.1, 0.9)
    return run(trained, lambda: optimizer.update_module(1, trained), steps)[-1]


def test_modules_have_velocities_of_their_own():
    left, right = module(0), module(1)
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
    config = {"optimizer": {"@optimizers": "spacy-psa.SGD.v1", "momentum": 0.5}}
    optimizer = registry.resolve(config)["optimizer"]
    assert isinstance(optimizer, MomentumSGD) and isinstance(optimizer, Optimizer)
    assert optimizer.momentum == 0.5
