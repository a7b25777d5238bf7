"""Torch modules as thinc layers: values, gradients and widths."""

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from spacy_psa.bridge.layers import head_layer, join_rows
from spacy_psa.bridge.shim import TorchShim
from spacy_psa.modules.chain_potentials import Emission, EmissionTransition, LabelPair
from tests.helpers.layers import (
    ENCODERS,
    WIDTH,
    arrays,
    assert_close,
    bare_layer,
    layer,
    module_of,
    same,
    weights_of,
)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("sizes", [[3, 1, 5], [2], [0, 3, 0, 0, 1, 0]], ids=str)
def test_a_layer_equals_its_module_on_the_flat_batch(name, sizes):
    make, settings = ENCODERS[name]
    model, X = layer(make, **settings), arrays(sizes)
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


@settings(max_examples=25)
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
    make, settings = ENCODERS[name]
    model, X = layer(make, **settings), arrays(sizes)
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
    make, settings = ENCODERS[name]
    model = layer(make, **settings)
    X = [STRIDES[view](x) for x in arrays([3, 1, 4])]
    Y, backprop = model.begin_update(X)
    dX = backprop([STRIDES[view](y) for y in Y])
    plain, plain_backprop = model.begin_update([numpy.array(x, order="C") for x in X])
    assert_close(Y, plain)
    assert_close(dX, plain_backprop([numpy.array(STRIDES[view](y), order="C") for y in plain]))


class Scaled(nn.Embedding):
    """Vectors of rows, times factors."""

    def forward(self, rows, factors):
        return super().forward(rows) * factors


def test_run_shim_returns_gradients_of_float_inputs_only():
    shim = TorchShim(Scaled, {"num_embeddings": 5, "embedding_dim": 2})
    shim.build()
    torch.nn.init.ones_(shim.module.weight)
    factors = torch.full((3, 1), 3.0, requires_grad=True)
    output, backprop = shim.run((torch.tensor([1, 2, 2]), factors), True)
    assert output.tolist() == [[3.0, 3.0]] * 3
    d_rows, d_factors = backprop(numpy.full((3, 2), 2.0, dtype="float32"))
    assert d_rows is None and d_factors.tolist() == [[4.0]] * 3
    assert shim.module.weight.grad[:, 0].tolist() == [0, 6, 12, 0, 0]


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


# Initialization


def test_an_encoder_finds_its_width_and_tells_its_own():
    model = bare_layer()
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
    model = bare_layer()
    with pytest.raises(ValueError, match=r"BiLSTM has no weights yet.*initialize"):
        model.predict(arrays([2]))


def test_arrays_on_the_cpu_are_joined_by_a_copy():
    whole = numpy.arange(12, dtype="float32").reshape(6, 2)
    parts = numpy.split(whole, [1, 4])
    joined = join_rows(numpy, parts)
    assert numpy.array_equal(joined, whole) and not numpy.shares_memory(joined, whole)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_parts_of_an_array_on_a_gpu_are_joined_without_a_copy():
    import cupy

    whole = cupy.arange(12, dtype="float32").reshape(6, 2)
    parts = cupy.split(whole, [1, 4])
    assert join_rows(cupy, parts).data.ptr == whole.data.ptr
    for others in (parts[:0:-1], [parts[0], parts[2]], [parts[0], cupy.ones((3, 2), "float32")]):
        joined = join_rows(cupy, others)
        assert joined.data.ptr != others[0].data.ptr
        assert cupy.array_equal(joined, cupy.concatenate(others))
