"""Torch modules as thinc layers: values, gradients, training, and what is saved and loaded."""

import pickle
from io import BytesIO
from pathlib import Path

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from thinc.api import Adam, Linear, Model, NumpyOps, Optimizer, RAdam, chain, with_array
from torch import nn

from spacy_psa.bridge.layers import head_layer, run_shim, torch_layer
from spacy_psa.bridge.optimizer import clip_gradients
from spacy_psa.bridge.shim import TorchShim
from spacy_psa.errors import InputError
from spacy_psa.modules.chain_potentials import Emission, EmissionTransition, LabelPair
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.psa_bilstm import PSABiLSTM
from spacy_psa.modules.word_table import WordTable
from spacy_psa.training.optimizers import sgd

WIDTH = 4
DRY = {"lstm_input_dropout": 0.0, "lstm_output_dropout": 0.0, "dropout": 0.0}
ENCODERS = {
    "bilstm": (BiLSTM, {"hidden": 3}),
    "psa": (PSABiLSTM, {"hidden": 3, **DRY}),
    "nothing": (PSABiLSTM, {"bottom": "none", "middle": "none", "top": "none"}),
}


class Affine(nn.Module):
    """y = gain x + shift, gain of 0 dimensions; remembers nothing."""

    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(2.0))
        self.shift = nn.Parameter(torch.arange(float(width)))
        self.output_width = width

    def forward(self, x, lengths):
        return self.gain * x + self.shift


def arrays(sizes, width=WIDTH, seed=0):
    random = numpy.random.default_rng(seed)
    return [random.standard_normal((size, width), dtype="float32") for size in sizes]


def layer(make=BiLSTM, seed=0, **arguments) -> Model:
    """An initialized node whose parameters are all random."""
    torch.manual_seed(seed)
    if make is BiLSTM:
        arguments.setdefault("hidden", 3)
    model = torch_layer("layer", make, **arguments).initialize(X=arrays([2]))
    for parameter in module_of(model).parameters():
        nn.init.normal_(parameter)
    return model


def module_of(model) -> nn.Module:
    return model.shims[0].module


def weights_of(model) -> list[numpy.ndarray]:
    return [p.detach().numpy().copy() for p in module_of(model).parameters()]


def same(left, right) -> bool:
    return all(map(numpy.array_equal, left, right))


def assert_close(left, right, atol=1e-6):
    for a, b in zip(left, right, strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-5, atol=atol)


def step(model, X, optimizer, dY=None):
    """One update that follows the gradient dY, or the output itself (a quadratic)."""
    Y, backprop = model.begin_update(X)
    backprop(Y if dY is None else dY)
    model.finish_update(optimizer)


# Values and gradients


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("sizes", [[3, 1, 5], [2], [0, 3, 0, 0, 1, 0]], ids=str)
def test_a_layer_equals_its_module_on_the_flat_batch(name, sizes):
    make, arguments = ENCODERS[name]
    model, X = layer(make, **arguments), arrays(sizes)
    Y, backprop = model.begin_update(X)
    dY = arrays(sizes, model.get_dim("nO"), seed=1)
    dX = backprop(dY)

    flat = torch.from_numpy(numpy.concatenate(X)).requires_grad_()
    parameters = list(module_of(model).parameters())
    got = [p.grad.clone() for p in parameters]
    output = module_of(model)(flat, torch.tensor([n for n in sizes if n]))
    seed = torch.from_numpy(numpy.concatenate(dY))
    expected, *gradients = torch.autograd.grad(output, [flat, *parameters], seed)
    assert [y.shape for y in Y] == [(n, model.get_dim("nO")) for n in sizes]
    assert [d.shape for d in dX] == [(n, WIDTH) for n in sizes]
    assert_close([numpy.concatenate(Y)], [output.detach()])
    assert_close([numpy.concatenate(dX)], [expected])
    assert_close(got, gradients)
    assert_close(model.predict(X), Y)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_empty_docs_change_nothing_for_the_others(sizes):
    model, X = layer(), arrays(sizes)
    Y, backprop = model.begin_update(X)
    dX = backprop(Y)
    for x, y, dx in zip(X, Y, dX, strict=True):
        alone, back = model.begin_update([x])
        assert_close([y, dx], [alone[0], back(alone)[0]])


@pytest.mark.parametrize("is_train", [True, False])
def test_docs_that_are_all_empty_pass_through(is_train):
    model, X = layer(), arrays([0, 0])
    Y, backprop = model(X, is_train)
    assert [y.shape for y in Y] == [(0, 6)] * 2
    assert [d.shape for d in backprop(Y)] == [(0, WIDTH)] * 2
    assert all(y.dtype == "float32" for y in Y)
    assert all(p.grad is None for p in module_of(model).parameters())


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("sizes", [[3, 1], [3]], ids=str)
def test_inputs_and_gradients_are_left_as_they_were(name, sizes):
    make, arguments = ENCODERS[name]
    model, X = layer(make, **arguments), arrays(sizes)
    before = [x.copy() for x in X]
    Y, backprop = model.begin_update(X)
    dY = arrays(sizes, model.get_dim("nO"), seed=1)
    given_gradients = [d.copy() for d in dY]
    dX = backprop(dY)
    assert same(X, before) and same(dY, given_gradients)
    for array in (*Y, *dX):
        array += 1
    assert same(X, before) and same(dY, given_gradients)


STRIDES = {
    "rows reversed": lambda x: x[::-1],
    "columns reversed": lambda x: x[:, ::-1],
    "every second row": lambda x: numpy.repeat(x, 2, 0)[::2],
    "fortran order": numpy.asfortranarray,
    "read-only": lambda x: numpy.frombuffer(x.tobytes(), dtype="float32").reshape(x.shape),
}


@pytest.mark.parametrize("name", ["bilstm", "psa"])
@pytest.mark.parametrize("view", STRIDES)
def test_any_memory_layout_is_taken(name, view):
    make, arguments = ENCODERS[name]
    model = layer(make, **arguments)
    X = [STRIDES[view](x) for x in arrays([3, 1, 4])]
    Y, backprop = model.begin_update(X)
    dX = backprop([STRIDES[view](y) for y in Y])
    plain, plain_backprop = model.begin_update([numpy.array(x, order="C") for x in X])
    assert_close(Y, plain)
    assert_close(dX, plain_backprop([numpy.array(STRIDES[view](y), order="C") for y in plain]))


def test_run_shim_gives_gradients_of_float_inputs_only():
    model = Model("table", lambda *_: None, shims=[TorchShim(WordTable, {"rows": 5, "width": 2})])
    model.shims[0].build()
    pretrained = torch.ones(3, 2, requires_grad=True)
    output, backprop = run_shim(model, (torch.tensor([1, 2, 2]), pretrained), True)
    assert output.tolist() == [[1.0, 1.0]] * 3
    d_rows, d_pretrained = backprop(numpy.full((3, 2), 2.0, dtype="float32"))
    assert d_rows is None and d_pretrained.tolist() == [[2.0, 2.0]] * 3
    assert module_of(model).table.weight.grad[:, 0].tolist() == [0, 2, 4, 0, 0]


# Training and prediction


def test_dropout_is_active_in_training_and_not_in_prediction():
    model, X = layer(hidden=30, output_dropout=0.5), arrays([5])
    calm = model.predict(X)[0]
    assert calm.all()
    dropped = model.begin_update(X)[0][0]
    assert 0.3 < (dropped == 0).mean() < 0.7
    assert numpy.array_equal(model.predict(X)[0], calm)  # training has left no trace
    assert not numpy.array_equal(model.begin_update(X)[0][0], dropped)


def test_prediction_keeps_no_graph_and_says_so():
    model, X = layer(), arrays([2])
    Y, backprop = model(X, False)
    with pytest.raises(ValueError, match="prediction"):
        backprop(Y)
    output, _ = model.shims[0]((torch.from_numpy(X[0]), torch.tensor([2])), False)
    assert not output.requires_grad and output.is_inference()


def test_gradients_add_up_until_the_update():
    model, first, second = layer(), arrays([3, 2]), arrays([1, 4], seed=1)
    batches = {"first": [first], "second": [second], "both": [first, second]}
    gradients = {}
    for name, parts in batches.items():
        for X in parts:
            Y, backprop = model.begin_update(X)
            backprop(Y)
        gradients[name] = [p.grad.clone() for p in module_of(model).parameters()]
        module_of(model).zero_grad()
    sums = [a + b for a, b in zip(gradients["first"], gradients["second"], strict=True)]
    assert_close(gradients["both"], sums, atol=1e-5)


def test_two_batches_may_be_backpropagated_in_any_order():
    model = layer()
    (Y1, back1), (Y2, back2) = (model.begin_update(arrays([2], seed=s)) for s in (1, 2))
    late, early = back2(Y2), back1(Y1)
    for seed, d in ((1, early), (2, late)):
        Y, backprop = model.begin_update(arrays([2], seed=seed))
        assert_close(d, backprop(Y))


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
    make, arguments = ENCODERS["nothing"]
    model, X = layer(make, **arguments), arrays([3])
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
    torch_lstm = BiLSTM(WIDTH, 3)
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
    with torch_layer("lstm", BiLSTM, hidden=3).use_params({}):
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
    assert clip_gradients(model, share * norm) == pytest.approx(norm, rel=1e-5)
    assert_close(mixed_gradients(model), [min(1.0, share) * g for g in before])


def test_clipping_without_gradients_does_nothing():
    assert clip_gradients(layer(), 1.0) == 0.0
    assert clip_gradients(torch_layer("lstm", BiLSTM, hidden=3), 1.0) == 0.0


# Initialization


def test_an_encoder_finds_its_width_and_tells_its_own():
    model = torch_layer("lstm", BiLSTM, hidden=3)
    assert not model.has_dim("nI") and not model.has_dim("nO")
    model.initialize(X=arrays([2], width=7))
    assert (model.get_dim("nI"), model.get_dim("nO")) == (7, 6)
    assert module_of(model).layers[0].input_size == 7


def test_initializing_again_keeps_the_weights():
    model = layer()
    before = weights_of(model)
    model.initialize(X=arrays([2]))
    assert same(weights_of(model), before)


@pytest.mark.parametrize("make", [LabelPair, EmissionTransition, Emission])
def test_a_head_takes_its_labels_from_the_node(make):
    model = head_layer("head", make)
    model.set_dim("nO", 3)
    model.initialize(X=arrays([2]))
    module = module_of(model)
    X = arrays([0, 2, 0, 1, 0])
    expected = module(torch.from_numpy(numpy.concatenate(X)), torch.tensor([2, 1])).detach()
    assert expected.shape == (3, 3 if make is Emission else 9)
    Y = model.predict(X)
    assert [len(y) for y in Y] == [0, 2, 0, 1, 0]
    assert_close([numpy.concatenate(Y)], [expected])


def test_an_uninitialized_layer_says_what_to_do():
    model = torch_layer("lstm", BiLSTM, hidden=3)
    with pytest.raises(ValueError, match=r"BiLSTM has no weights yet.*initialize"):
        model.predict(arrays([2]))


# Serialisation


@pytest.mark.parametrize("name", ENCODERS)
def test_a_layer_can_be_loaded_before_it_was_initialized(name):
    make, arguments = ENCODERS[name]
    model, X = layer(make, **arguments), arrays([3, 0, 1])
    fresh = torch_layer("layer", make, **arguments).from_bytes(model.to_bytes())
    assert same(fresh.predict(X), model.predict(X))
    assert fresh.shims[0].cfg == model.shims[0].cfg
    assert fresh.get_dim("nO") == model.get_dim("nO")
    assert fresh.to_bytes() == model.to_bytes()
    fresh.initialize(X=X)
    assert same(fresh.predict(X), model.predict(X))


def test_an_uninitialized_layer_is_saved_as_such():
    fresh = torch_layer("layer", BiLSTM, hidden=3)
    again = torch_layer("layer", BiLSTM, hidden=3).from_bytes(fresh.to_bytes())
    assert again.shims[0]._model is None
    again.initialize(X=arrays([2]))
    assert len(again.predict(arrays([2]))[0]) == 2


def test_a_layer_goes_to_disk_and_back(tmp_path):
    model, X = layer(PSABiLSTM, hidden=3), arrays([3])
    model.to_disk(tmp_path / "model")
    fresh = torch_layer("layer", PSABiLSTM, hidden=3).from_disk(tmp_path / "model")
    assert same(fresh.predict(X), model.predict(X))


DUPLICATES = {"copy": lambda m: m.copy(), "pickle": lambda m: pickle.loads(pickle.dumps(m))}


@pytest.mark.parametrize("how", DUPLICATES)
@pytest.mark.parametrize("trained", [False, True])
def test_a_duplicate_is_equal_and_lives_its_own_life(how, trained):
    model, X = layer(), arrays([3])
    if trained:
        step(model, X, sgd(0.1))
    Y = model.predict(X)
    double = DUPLICATES[how](model)
    assert same(double.predict(X), Y)
    step(model, X, sgd(0.1))
    assert same(double.predict(X), Y) and not same(model.predict(X), Y)
    held = model.predict(X)
    step(double, X, sgd(0.1))
    assert same(model.predict(X), held) and not same(double.predict(X), Y)


def test_a_layer_without_weights_can_be_duplicated():
    model = torch_layer("layer", BiLSTM, hidden=3)
    for double in (model.copy(), pickle.loads(pickle.dumps(model))):
        double.initialize(X=arrays([2]))
    assert model.shims[0]._model is None


def message(**changes) -> bytes:
    """What a shim of `layer()` would save, changed."""
    shim = layer().shims[0]
    content = {"make": "BiLSTM", "arguments": shim.cfg, "state": shim.module.state_dict()}
    buffer = BytesIO()
    torch.save({**content, **changes}, buffer)
    return buffer.getvalue()


def renamed() -> bytes:
    state = module_of(layer()).state_dict()
    return message(state={f"old.{name}": value for name, value in state.items()})


WRONG = {
    "nothing": lambda: (b"", "damaged"),
    "noise": lambda: (b"\x93NUMPY" * 99, "damaged"),
    "cut short": lambda: (message()[:-200], "damaged"),
    "a flipped byte in the middle": lambda: (flipped(message()), "damaged"),
    "a flipped bit in the weights": lambda: (weights_flipped(message()), "check sum"),
    "not our message": lambda: (saved([1, 2, 3]), "damaged"),
    "a part missing": lambda: (saved({"make": "BiLSTM"}), "damaged"),
    "another module": lambda: (layer(Affine).shims[0].to_bytes(), "belong to Affine"),
    "other sizes": lambda: (message(arguments={"width": 5, "hidden": 3}), "do not fit"),
    "other names": lambda: (renamed(), "do not fit"),
    "other options": lambda: (message(arguments={"width": 4, "depth": 3}), "do not fit"),
}


def saved(content) -> bytes:
    buffer = BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def weights_flipped(data: bytes) -> bytes:
    weights = module_of(layer()).layers[0].weight_hh_l0.detach().numpy().tobytes()
    at = data.index(weights)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def flipped(data: bytes) -> bytes:
    """Damage to the pickle that names the tensors, in the archive's first record."""
    at = data.index(b"arguments")
    return data[:at] + b"\xff" + data[at + 1 :]


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("initialized", [True, False])
def test_bad_bytes_are_one_clear_error_and_change_nothing(case, initialized):
    data, reason = WRONG[case]()
    model = layer() if initialized else torch_layer("layer", BiLSTM, hidden=3)
    shim = model.shims[0]
    module, arguments = shim._model, dict(shim.cfg)
    before = weights_of(model) if initialized else None
    with pytest.raises(InputError, match=reason) as error:
        shim.from_bytes(data)
    assert "\n" not in str(error.value) and "BiLSTM" in str(error.value)
    assert shim._model is module and shim.cfg == arguments
    if initialized:
        assert same(weights_of(model), before)


class Malicious:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_loading_runs_no_code_from_the_file(tmp_path):
    trap = tmp_path / "trap"
    harmful = {
        "in the weights": message(state=Malicious(trap)),
        "in the arguments": message(arguments={"width": Malicious(trap)}),
        "alone": pickle.dumps(Malicious(trap), protocol=2),
    }
    torch.load(BytesIO(harmful["in the weights"]), weights_only=False)
    assert trap.exists()  # so the trap works
    trap.unlink()
    for place, data in harmful.items():
        with pytest.raises(InputError, match="damaged"):
            layer().shims[0].from_bytes(data)
        assert not trap.exists(), place
