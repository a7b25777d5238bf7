"""Clipping of each number in the gradients by SGD.v1, for torch's and thinc's parameters."""

import numpy
import pytest
import torch
from spacy.util import registry
from thinc.api import Linear
from torch import nn

from spacy_psa.errors import InputError
from spacy_psa.training.optimizers import sgd


def gradients(seed):
    random = numpy.random.default_rng(seed)
    return random.normal(0, 3, (2, 3)).astype("f"), random.normal(0, 3, 2).astype("f")


def layer():
    torch.manual_seed(0)
    return nn.Linear(3, 2)


def give(module, seed):
    module.weight.grad, module.bias.grad = map(torch.from_numpy, gradients(seed))


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("limit", [0.5, 2.0, 100.0])
def test_a_torch_module_is_updated_as_after_torchs_own_clipping(limit, momentum):
    ours, theirs = layer(), layer()
    optimizer = sgd(0.1, momentum, clip_value=limit)
    reference = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=momentum)
    for seed in range(5):
        give(ours, seed)
        give(theirs, seed)
        optimizer.update_module(1, ours)
        nn.utils.clip_grad_value_(theirs.parameters(), limit)
        reference.step()
        for p, q in zip(ours.parameters(), theirs.parameters()):
            torch.testing.assert_close(p, q, rtol=0, atol=1e-6)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_thinc_parameters_take_the_same_steps(momentum):
    thinc, ours = Linear(2, 3).initialize(), layer()
    with torch.no_grad():
        ours.weight.copy_(torch.from_numpy(thinc.get_param("W")))
        ours.bias.copy_(torch.from_numpy(thinc.get_param("b")))
    optimizer = sgd(0.1, momentum, clip_value=1.0)
    for seed in range(5):
        d_weight, d_bias = gradients(seed)
        assert abs(d_weight).max() > 1
        thinc.inc_grad("W", d_weight)
        thinc.inc_grad("b", d_bias)
        give(ours, seed)
        thinc.finish_update(optimizer)
        optimizer.update_module(7, ours)
        numpy.testing.assert_allclose(thinc.get_param("W"), ours.weight.detach(), atol=1e-6)
        numpy.testing.assert_allclose(thinc.get_param("b"), ours.bias.detach(), atol=1e-6)


def test_by_default_nothing_is_clipped():
    module = layer()
    before = module.bias.detach().clone()
    module.bias.grad = torch.tensor([1e6, -1e6])
    sgd(1.0, 0.0).update_module(1, module)
    torch.testing.assert_close(before - module.bias, torch.tensor([1e6, -1e6]))


def test_a_parameter_without_a_gradient_is_left_alone():
    module = layer()
    module.bias.grad = torch.tensor([9.0, -9.0])
    weight, bias = module.weight.detach().clone(), module.bias.detach().clone()
    sgd(1.0, 0.0, clip_value=5.0).update_module(1, module)
    assert torch.equal(module.weight, weight)
    torch.testing.assert_close(bias - module.bias, torch.tensor([5.0, -5.0]))


def test_a_limit_below_zero_is_refused():
    with pytest.raises(InputError, match=r"clip_value is -5"):
        sgd(clip_value=-5.0)


def test_a_config_sets_it():
    config = {"optimizer": {"@optimizers": "spacy-psa.SGD.v1", "clip_value": 5.0}}
    assert registry.resolve(config)["optimizer"].clip_value == 5.0
