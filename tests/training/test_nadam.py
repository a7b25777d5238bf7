"""Nadam.v1 against torch.optim.NAdam and against Dozat's formula."""

import numpy
import pytest
import torch
from spacy.util import registry
from thinc.api import Linear
from torch import nn

from spacy_psa.training.optimizers import Nadam, nadam
from spacy_psa.training.schedules import inverse_decay

SETTINGS = {"learn_rate": 0.02, "beta1": 0.8, "beta2": 0.95, "eps": 1e-4}


def module(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def set_gradients(module, seed):
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def assert_equal(ours, theirs):
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-7)


def test_the_defaults_are_those_of_the_authors_code():
    optimizer = nadam()
    group = optimizer.make(module().parameters()).param_groups[0]
    assert (optimizer.learn_rate, group["betas"], group["eps"]) == (0.001, (0.9, 0.999), 1e-8)
    assert optimizer.averages is None
    assert (optimizer.grad_clip, optimizer.L2) == (0.0, 0.0)


def test_torch_modules_take_torchs_steps():
    ours, theirs, optimizer = module(), module(), nadam(**SETTINGS)
    reference = torch.optim.NAdam(theirs.parameters(), lr=0.02, betas=(0.8, 0.95), eps=1e-4)
    for seed in range(20):
        set_gradients(ours, seed)
        set_gradients(theirs, seed)
        optimizer.update_module(1, ours)
        reference.step()
        assert_equal(ours, theirs)


def thinc_and_torch():
    """A thinc and a torch layer of equal weights."""
    thinc, ours = Linear(2, 3).initialize(), nn.Linear(3, 2)
    with torch.no_grad():
        ours.weight.copy_(torch.from_numpy(thinc.get_param("W")))
        ours.bias.copy_(torch.from_numpy(thinc.get_param("b")))
    return thinc, ours


def give_gradients(thinc, ours, seed):
    set_gradients(ours, seed)
    thinc.inc_grad("W", ours.weight.grad.numpy().copy())
    thinc.inc_grad("b", ours.bias.grad.numpy().copy())


def test_thinc_parameters_take_torchs_steps():
    thinc, ours = thinc_and_torch()
    optimizer = nadam(**SETTINGS)
    reference = torch.optim.NAdam(ours.parameters(), lr=0.02, betas=(0.8, 0.95), eps=1e-4)
    for seed in range(20):
        give_gradients(thinc, ours, seed)
        thinc.finish_update(optimizer)
        reference.step()
        numpy.testing.assert_allclose(thinc.get_param("W"), ours.weight.detach(), atol=1e-6)
        numpy.testing.assert_allclose(thinc.get_param("b"), ours.bias.detach(), atol=1e-6)
        assert not thinc.get_grad("W").any() and not thinc.get_grad("b").any()


def test_a_step_is_the_formula():
    weight, optimizer = nn.Linear(1, 1, bias=False), nadam(0.1, 0.9, 0.999, 1e-3)
    nn.init.constant_(weight.weight, 1.0)
    expected, m, v, product = 1.0, 0.0, 0.0, 1.0
    for t, g in enumerate([1.0, -2.0, 0.5, 3.0, 0.0], 1):
        weight.weight.grad = torch.tensor([[g]])
        optimizer.update_module(1, weight)
        mu, following = (0.9 * (1 - 0.96 ** (0.004 * s) / 2) for s in (t, t + 1))
        product *= mu
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        look_ahead = (1 - mu) * g / (1 - product) + following * m / (1 - product * following)
        expected -= 0.1 * look_ahead / ((v / (1 - 0.999**t)) ** 0.5 + 1e-3)
        assert weight.weight.item() == pytest.approx(expected, abs=1e-6)


def test_the_learning_rate_follows_its_schedule():
    thinc, ours = thinc_and_torch()
    theirs = nn.Linear(3, 2)
    theirs.load_state_dict(ours.state_dict())
    optimizer = nadam(inverse_decay(0.1, 1.0, 2))
    reference = torch.optim.NAdam(theirs.parameters(), lr=0.0)
    for seed, rate in enumerate([0.1, 0.1, 0.05, 0.05, 0.1 / 3]):
        give_gradients(thinc, ours, seed)
        set_gradients(theirs, seed)
        optimizer.update_module(7, ours)
        thinc.finish_update(optimizer)
        optimizer.step_schedules()
        reference.param_groups[0]["lr"] = rate
        reference.step()
        assert_equal(ours, theirs)
        numpy.testing.assert_allclose(thinc.get_param("W"), theirs.weight.detach(), atol=1e-6)


def test_parameters_and_modules_have_moments_of_their_own():
    together = nadam(**SETTINGS)
    layers = [thinc_and_torch() for _ in range(2)]
    starts = [ours.weight.detach().clone() for _, ours in layers]
    for seed in range(3):
        for i, (thinc, ours) in enumerate(layers):
            give_gradients(thinc, ours, 10 * i + seed)
            thinc.finish_update(together)
            together.update_module(i, ours)
    for i, (thinc, ours) in enumerate(layers):
        alone = nn.Linear(3, 2)
        reference = torch.optim.NAdam(alone.parameters(), lr=0.02, betas=(0.8, 0.95), eps=1e-4)
        with torch.no_grad():
            alone.weight.copy_(starts[i])
        for seed in range(3):
            set_gradients(alone, 10 * i + seed)
            reference.step()
        torch.testing.assert_close(ours.weight, alone.weight, rtol=0, atol=1e-6)
        numpy.testing.assert_allclose(thinc.get_param("W"), alone.weight.detach(), atol=1e-6)


def test_thinc_and_torch_parameters_have_equal_averages():
    thinc, ours = thinc_and_torch()
    optimizer = nadam(**SETTINGS, use_averages=True)
    for seed in range(4):
        give_gradients(thinc, ours, seed)
        thinc.finish_update(optimizer)
        optimizer.update_module(7, ours)
        average = optimizer.averages[7, "weight"]
        numpy.testing.assert_allclose(optimizer.averages[thinc.id, "W"], average, atol=1e-6)
        assert not torch.equal(average, ours.weight)


def test_a_config_finds_the_optimizer():
    config = {"optimizer": {"@optimizers": "spacy-psa.Nadam.v1", "beta1": 0.5}}
    optimizer = registry.resolve(config)["optimizer"]
    assert isinstance(optimizer, Nadam)
    assert optimizer.make(module().parameters()).param_groups[0]["betas"] == (0.5, 0.999)
