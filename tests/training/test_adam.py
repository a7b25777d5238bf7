"""Adam.v1 against torch.optim.Adam and the formula of the paper that named it."""

import numpy
import pytest
import torch
from spacy.util import registry
from thinc.api import Linear
from torch import nn

from spacy_psa.training.optimizers import Adam, adam
from spacy_psa.training.schedules import inverse_decay

SETTINGS = {"learn_rate": 0.02, "beta1": 0.8, "beta2": 0.95, "eps": 1e-4}


def module():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def set_gradients(module, seed):
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def thinc_and_torch():
    thinc, ours = Linear(2, 3).initialize(), nn.Linear(3, 2)
    with torch.no_grad():
        ours.weight.copy_(torch.from_numpy(thinc.get_param("W")))
        ours.bias.copy_(torch.from_numpy(thinc.get_param("b")))
    return thinc, ours


def test_torch_modules_take_torchs_steps():
    ours, theirs, optimizer = module(), module(), adam(**SETTINGS)
    reference = torch.optim.Adam(theirs.parameters(), lr=0.02, betas=(0.8, 0.95), eps=1e-4)
    for seed in range(20):
        set_gradients(ours, seed)
        set_gradients(theirs, seed)
        optimizer.update_module(1, ours)
        reference.step()
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-6)


def test_thinc_parameters_take_torchs_steps_by_the_schedule():
    thinc, ours = thinc_and_torch()
    optimizer = adam(inverse_decay(0.1, 1.0, 2), 0.8, 0.95, 1e-4)
    reference = torch.optim.Adam(ours.parameters(), lr=0.0, betas=(0.8, 0.95), eps=1e-4)
    for seed, rate in enumerate([0.1, 0.1, 0.05, 0.05, 0.1 / 3]):
        set_gradients(ours, seed)
        thinc.inc_grad("W", ours.weight.grad.numpy().copy())
        thinc.inc_grad("b", ours.bias.grad.numpy().copy())
        thinc.finish_update(optimizer)
        optimizer.step_schedules()
        reference.param_groups[0]["lr"] = rate
        reference.step()
        numpy.testing.assert_allclose(thinc.get_param("W"), ours.weight.detach(), atol=1e-6)
        numpy.testing.assert_allclose(thinc.get_param("b"), ours.bias.detach(), atol=1e-6)
        assert not thinc.get_grad("W").any()


def test_a_step_is_the_formula():
    weight, optimizer = nn.Linear(1, 1, bias=False), adam(0.1, 0.9, 0.98, 1e-3)
    nn.init.constant_(weight.weight, 1.0)
    expected, m, v = 1.0, 0.0, 0.0
    for t, g in enumerate([1.0, -2.0, 0.5, 3.0, 0.0], 1):
        weight.weight.grad = torch.tensor([[g]])
        optimizer.update_module(1, weight)
        m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g * g
        expected -= 0.1 * m / (1 - 0.9**t) / ((v / (1 - 0.98**t)) ** 0.5 + 1e-3)
        assert weight.weight.item() == pytest.approx(expected, abs=1e-6)


def test_averages_are_kept_where_asked_for():
    ours, optimizer = module(), adam(**SETTINGS, use_averages=True)
    set_gradients(ours, 0)
    optimizer.update_module(7, ours)
    assert optimizer.averages[7, "0.weight"].shape == (4, 3)
    assert adam().averages is None


def test_a_config_finds_the_optimizer():
    config = {"optimizer": {"@optimizers": "spacy-psa.Adam.v1", "beta2": 0.98, "eps": 1e-9}}
    optimizer = registry.resolve(config)["optimizer"]
    assert isinstance(optimizer, Adam)
    group = optimizer.make(module().parameters()).param_groups[0]
    assert (group["betas"], group["eps"], group["fused"]) == ((0.9, 0.98), 1e-9, True)
    assert (optimizer.grad_clip, optimizer.L2) == (0.0, 0.0)
