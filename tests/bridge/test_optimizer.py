"""Updates of torch layers by thinc's optimizers and by ours, averages, and clipping."""

import numpy
import pytest
import torch
from thinc.api import Adam, Linear, NumpyOps, Optimizer, RAdam, chain, with_array
from torch import nn

from spacy_psa.bridge.optimizer import clip_gradients, scale_down
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.training.optimizers import sgd
from tests.helpers.layers import (
    ENCODERS,
    SMALL,
    WIDTH,
    Affine,
    arrays,
    assert_close,
    bare_layer,
    layer,
    module_of,
    same,
    step,
    weights_of,
)
from tests.helpers.waiting import waits


@pytest.mark.parametrize("optimizer", [Adam(0.1), sgd(0.1)], ids=["thinc", "ours"])
def test_an_update_forgets_its_gradients(optimizer):
    model, X = layer(), arrays([3])
    step(model, X, optimizer)
    assert all(p.grad is None for p in module_of(model).parameters())
    held = weights_of(model)
    model.finish_update(optimizer)
    assert same(weights_of(model), held)


def adam_by_hand(weights, gradients, rate, beta1=0.9, beta2=0.999, eps=1e-8):
    m1, m2 = 0.0, 0.0
    for t, g in enumerate(gradients, 1):
        m1 = beta1 * m1 + (1 - beta1) * g
        m2 = beta2 * m2 + (1 - beta2) * g * g
        corrected = rate * (1 - beta2**t) ** 0.5 / (1 - beta1**t)
        weights = weights - corrected * m1 / (numpy.sqrt(m2) + eps)
    return weights


def test_an_update_by_thincs_adam_follows_its_formula():
    model, X = layer(), arrays([3, 2])
    optimizer = Adam(0.01, grad_clip=0.0, L2=0.0)
    start, seen = weights_of(model), []
    for seed in range(3):
        _, backprop = model.begin_update(X)
        backprop(arrays([3, 2], 6, seed))
        seen.append([p.grad.numpy().copy() for p in module_of(model).parameters()])
        model.finish_update(optimizer)
    for i, weights in enumerate(weights_of(model)):
        expected = adam_by_hand(start[i], [gradients[i] for gradients in seen], 0.01)
        numpy.testing.assert_allclose(weights, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", [Adam, RAdam, sgd], ids=lambda make: make.__name__)
def test_parameters_without_dimensions_learn(make):
    model, X = layer(Affine), arrays([8])
    optimizer = make(0.1)
    start = module_of(model).gain.item()
    losses = []
    for _ in range(30):
        Y = model.predict(X)
        losses.append(float((Y[0] ** 2).sum()))
        step(model, X, optimizer, [Y[0] / len(Y[0])])
    assert losses[-1] < 0.7 * losses[0]
    gain = module_of(model).gain
    assert gain.shape == () and gain.item() != start


@pytest.mark.parametrize("optimizer", [Adam(0.1), sgd(0.1)], ids=["thinc", "ours"])
def test_a_module_without_parameters_can_be_trained_around(optimizer):
    make, settings = ENCODERS["nothing"]
    model, X = layer(make, **settings), arrays([3])
    step(model, X, optimizer)
    assert same(model.predict(X), X)


@pytest.mark.parametrize("optimizer", [Adam(0.1), sgd(0.1)], ids=["thinc", "ours"])
def test_a_parameter_without_a_gradient_stays(optimizer):
    model = layer(Affine)
    module_of(model).shift.requires_grad_(False)
    before = weights_of(model)
    step(model, arrays([3]), optimizer)
    gain, shift = weights_of(model)
    assert gain != before[0] and numpy.array_equal(shift, before[1])


# Our optimizer over torch and thinc layers, beside torch's own over torch modules alone


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_equals_torchs_step_for_step_in_a_mixed_model(momentum):
    lstm = layer()
    model = chain(lstm, with_array(Linear(2, 6))).initialize(X=arrays([2]))
    linear = model.layers[1].layers[0]
    torch_lstm = BiLSTM(WIDTH, **SMALL)
    torch_lstm.load_state_dict(module_of(lstm).state_dict())
    torch_linear = nn.Linear(6, 2)
    with torch.no_grad():
        torch_linear.weight.copy_(torch.from_numpy(linear.get_param("W")))
        torch_linear.bias.copy_(torch.from_numpy(linear.get_param("b")))
    parameters = [*torch_lstm.parameters(), *torch_linear.parameters()]

    ours = sgd(0.05, momentum=momentum)
    theirs = torch.optim.SGD(parameters, lr=0.05, momentum=momentum)
    for seed in range(5):
        X, dY = arrays([3, 2], seed=seed), arrays([3, 2], 2, seed=10 + seed)
        step(model, X, ours, dY)
        theirs.zero_grad()
        states = torch_lstm(torch.from_numpy(numpy.concatenate(X)), torch.tensor([3, 2]))
        torch_linear(states).backward(torch.from_numpy(numpy.concatenate(dY)))
        theirs.step()
        got = [*weights_of(lstm), linear.get_param("W"), linear.get_param("b")]
        assert_close(got, [p.detach() for p in parameters], atol=2e-6)


def test_momentum_starts_again_when_other_weights_are_loaded():
    model, other, X = layer(), layer(seed=1), arrays([3])
    optimizer = sgd(0.1, momentum=0.9)
    step(model, X, optimizer)
    model.from_bytes(other.to_bytes())
    step(model, X, optimizer)
    step(other, X, sgd(0.1, momentum=0.9))
    assert_close(weights_of(model), weights_of(other))


# Averages


def averaging(kind) -> Optimizer:
    return sgd(0.1, use_averages=True) if kind == "ours" else Adam(0.1, use_averages=True)


@pytest.mark.parametrize("kind", ["thinc", "ours"])
def test_averages_follow_thincs_formula(kind):
    model, X, optimizer, ops = layer(Affine), arrays([5]), averaging(kind), NumpyOps()
    expected = [numpy.zeros(p.size, dtype="float32") for p in weights_of(model)]
    for t in range(1, 8):
        step(model, X, optimizer)
        for average, weights in zip(expected, weights_of(model), strict=True):
            ops.update_averages(average, weights.reshape(-1), t)
    names = [name for name, _ in module_of(model).named_parameters()]
    got = [numpy.asarray(optimizer.averages[model.shims[0].id, n]).reshape(-1) for n in names]
    assert_close(got, expected)


@pytest.mark.parametrize("kind", ["thinc", "ours"])
@pytest.mark.parametrize("fails", [False, True])
def test_averages_take_the_weights_place_and_give_it_back(kind, fails):
    model, X, optimizer = layer(), arrays([5]), averaging(kind)
    for _ in range(3):
        step(model, X, optimizer)
    trained, prediction = weights_of(model), model.predict(X)
    names = [name for name, _ in module_of(model).named_parameters()]
    averages = [
        numpy.array(optimizer.averages[model.shims[0].id, n]).reshape(w.shape)
        for n, w in zip(names, trained, strict=True)
    ]
    try:
        with model.use_params(optimizer.averages):
            assert_close(weights_of(model), averages)
            assert not same(model.predict(X), prediction)
            saved = model.to_bytes()
            if fails:
                raise KeyError("evaluation failed")
    except KeyError:
        assert fails
    assert same(weights_of(model), trained)
    assert same(model.predict(X), prediction)
    assert_close(weights_of(layer().from_bytes(saved)), averages)


def test_averages_leave_another_models_weights_alone():
    model, other, optimizer = layer(), layer(seed=1), averaging("ours")
    step(model, arrays([3]), optimizer)
    before = weights_of(other)
    with other.use_params(optimizer.averages):
        assert same(weights_of(other), before)


def test_averages_can_be_used_before_initialization():
    with bare_layer().use_params({}):
        pass


# The norm of all gradients


def mixed_gradients(model):
    """Gradients of the torch layer and of the thinc layer above it, as float64."""
    lstm, linear = model.layers[0], model.layers[1].layers[0]
    found = [p.grad.numpy() for p in module_of(lstm).parameters()]
    return [numpy.array(g, "float64") for g in (*found, *map(linear.get_grad, "Wb"))]


@pytest.mark.parametrize("share", [0.25, 0.999, 1.001, 10.0])
def test_clipping_bounds_the_joint_norm_of_torch_and_thinc_gradients(share):
    model = chain(layer(), with_array(Linear(2, 6))).initialize(X=arrays([2]))
    _, backprop = model.begin_update(arrays([3, 1]))
    backprop(arrays([3, 1], 2, seed=1))
    before = mixed_gradients(model)
    norm = sum((g**2).sum() for g in before) ** 0.5
    clip_gradients([model], share * norm)
    assert_close(mixed_gradients(model), [min(1.0, share) * g for g in before])


@pytest.mark.parametrize("share", [0.25, 1.001])
def test_on_a_gpu_gradients_are_scaled_down_without_waiting(share):
    gradients = [torch.randn(3, 2), torch.randn(4)]
    before = [g.clone() for g in gradients]
    norm = nn.utils.get_total_norm(gradients)
    limit = share * float(norm)
    assert waits(lambda: scale_down(gradients, norm, limit), norm, *gradients) == []
    for ours, g in zip(gradients, before, strict=True):
        torch.testing.assert_close(ours, min(1.0, share) * g)
    gradients = [torch.zeros(2)]
    scale_down(gradients, torch.tensor(0.0), 1.0)
    assert gradients[0].tolist() == [0.0, 0.0]


def test_clipping_without_gradients_does_nothing():
    for each in (layer(), bare_layer()):
        clip_gradients([each], 1.0)


def test_frozen_parameters_have_no_averages():
    module = nn.Linear(2, 1)
    module.weight.requires_grad_(False)
    optimizer = sgd(0.5, use_averages=True)
    module(torch.ones(1, 2)).sum().backward()
    optimizer.update_module(0, module)
    assert list(optimizer.averages) == [(0, "bias")]
