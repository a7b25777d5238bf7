"""SWA.v1: the mean of the weights of the later part of a training, beside torch's own."""

import numpy
import pytest
import torch
from spacy.util import registry
from thinc.api import Adam, Linear
from torch.optim.swa_utils import AveragedModel

from spacy_psa.errors import InputError
from spacy_psa.training.optimizers import EqualShares, adamw, sgd, stochastic_weight_averaging
from tests.helpers.optimizers import (
    set_equal_gradients,
    set_gradients,
    small_net,
    thinc_and_torch,
)


@pytest.mark.parametrize("start", [0, 1, 7])
@pytest.mark.parametrize("make", [sgd, adamw], ids=lambda make: make.__name__)
def test_the_mean_is_that_of_torchs_averaged_model(make, start):
    module = small_net()
    optimizer = stochastic_weight_averaging(make(0.1), start)
    reference = AveragedModel(module)
    for step in range(20):
        set_gradients(module, step)
        optimizer.update_module(1, module)
        if step >= start:
            reference.update_parameters(module)
    for name, expected in reference.module.named_parameters():
        torch.testing.assert_close(optimizer.averages[1, name], expected.data)


@pytest.mark.parametrize("make", [sgd, adamw], ids=lambda make: make.__name__)
def test_thinc_parameters_are_averaged_as_torchs(make):
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


def test_until_the_start_the_average_is_the_present_weights():
    module, optimizer = small_net(), stochastic_weight_averaging(sgd(0.1), start=5)
    for step in range(6):
        set_gradients(module, step)
        optimizer.update_module(1, module)
        for name, parameter in module.named_parameters():
            assert torch.equal(optimizer.averages[1, name], parameter.data)


def test_the_steps_are_those_without_averages():
    averaged, plain = small_net(), small_net()
    with_averages, without = stochastic_weight_averaging(sgd(0.1), start=2), sgd(0.1)
    for step in range(6):
        for module, optimizer in ((averaged, with_averages), (plain, without)):
            set_gradients(module, step)
            optimizer.update_module(1, module)
    for p, q in zip(averaged.parameters(), plain.parameters(), strict=True):
        assert torch.equal(p, q)


def test_shares_are_equal():
    decay, held = EqualShares(start=3), 0.0
    for update, weight in enumerate([9.0, -9.0, 4.0, 1.0, 2.0, 6.0], 1):
        kept = decay(update)
        held = kept * held + (1 - kept) * weight
    assert held == pytest.approx(3.0)


def test_an_empty_parameter_is_left_alone():
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


def test_a_config_finds_it():
    inner = {"@optimizers": "spacy-psa.AdamW.v1", "learn_rate": 0.5}
    config = {"optimizer": {"@optimizers": "spacy-psa.SWA.v1", "start": 4, "optimizer": inner}}
    optimizer = registry.resolve(config)["optimizer"]
    assert (optimizer.learn_rate, optimizer.average_decay) == (0.5, EqualShares(4))


@pytest.mark.parametrize(
    ("optimizer", "start", "message"),
    [
        (sgd(0.1), -1, "SWA.v1: start is -1"),
        (Adam(0.1), 3, "SWA.v1: the optimizer is a thinc.optimizers.Optimizer: use one of spacy"),
    ],
)
def test_bad_settings_are_refused(optimizer, start, message):
    with pytest.raises(InputError, match=message):
        stochastic_weight_averaging(optimizer, start)
