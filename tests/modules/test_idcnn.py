"""Iterated dilated convolutions against torch's, sentence by sentence."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from spacy_psa.errors import InputError
from spacy_psa.modules.idcnn import IDCNN, DilatedConvolution, neighbours
from tests.helpers.modules import EXACT, gradcheck, parameter_count, randomised
from tests.helpers.ragged import batch

LENGTHS = [4, 1, 9]
DRY = {"input_dropout": 0.0, "block_dropout": 0.0, "output_dropout": 0.0}


def conv1d(convolution, x):
    """One sentence (n, width) by torch's convolution with zeros around."""
    padding = convolution.kernel_size // 2 * convolution.dilation
    return F.conv1d(
        x.T[None],
        convolution.weight,
        convolution.bias,
        padding=padding,
        dilation=convolution.dilation,
    )[0].T


@settings(max_examples=30)
@given(
    lengths=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    kernel_size=st.sampled_from([1, 3, 5]),
    dilation=st.integers(1, 4),
)
def test_a_convolution_equals_torchs_on_each_sentence(lengths, kernel_size, dilation):
    convolution = randomised(DilatedConvolution(3, 4, kernel_size, dilation))
    x, n = batch(lengths, 3)
    expected = torch.cat([conv1d(convolution, part) for part in x.split(lengths)])
    out = convolution(x, neighbours(n, kernel_size, dilation))
    torch.testing.assert_close(out, expected, **EXACT)


@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_the_block_is_applied_again_and_again_with_the_same_weights(iterations):
    module = randomised(IDCNN(3, filters=5, dilations=(1, 2, 1), iterations=iterations))
    x, lengths = batch(LENGTHS, 3)
    expected = []
    for part in x.split(LENGTHS):
        h = torch.relu(conv1d(module.input, part))
        for _ in range(iterations):
            for convolution in module.block:
                h = torch.relu(conv1d(convolution, h))
        expected.append(h)
    torch.testing.assert_close(module(x, lengths), torch.cat(expected), **EXACT)


def test_iterations_add_no_parameters():
    once, often = (IDCNN(3, filters=5, iterations=i) for i in (1, 6))
    assert {k: v.shape for k, v in once.state_dict().items()} == {
        k: v.shape for k, v in often.state_dict().items()
    }
    assert parameter_count(once) == 5 * (3 * 3 + 1) + 3 * 5 * (5 * 3 + 1)


@pytest.mark.parametrize(
    ("kernel_size", "dilations", "iterations"),
    [(3, (1, 2, 1), 1), (3, (1, 2, 1), 2), (3, (1, 1, 2), 2), (5, (1, 2), 1), (1, (3,), 2)],
)
def test_a_token_sees_as_far_as_the_convolutions_reach_and_no_farther(
    kernel_size, dilations, iterations
):
    """Weights above 0 and inputs above 0, so that nothing is lost in relu."""
    reach = kernel_size // 2 * (1 + iterations * sum(dilations))
    n, middle = 2 * reach + 5, reach + 2
    module = IDCNN(2, 3, kernel_size, dilations, iterations).double()
    for parameter in module.parameters():
        torch.nn.init.constant_(parameter, 0.1)
    x = torch.rand(n, 2, dtype=torch.float64) + 0.1
    x.requires_grad_()
    module.eval()(x, torch.tensor([n]))[middle].sum().backward()
    seen = x.grad.abs().sum(1).nonzero().flatten()
    assert seen.min() == middle - reach and seen.max() == middle + reach


def test_the_block_starts_as_the_identity():
    module = IDCNN(3, filters=5, iterations=3).double().eval()
    x, lengths = batch(LENGTHS, 3)
    first = torch.cat([conv1d(module.input, part) for part in x.split(LENGTHS)])
    torch.testing.assert_close(module(x, lengths), torch.relu(first))
    assert module.input.weight.any()


def test_gradients_are_right():
    assert gradcheck(randomised(IDCNN(2, filters=3)), *batch([3, 1], 2))


@pytest.mark.parametrize("option", ["input_dropout", "block_dropout", "output_dropout"])
def test_each_dropout_is_active_in_training_only(option):
    module = randomised(IDCNN(3, filters=20, **{**DRY, option: 0.5}))
    x, lengths = batch(LENGTHS, 3)
    assert torch.equal(module(x, lengths), module(x, lengths))
    module.train()
    assert not torch.equal(module(x, lengths), module(x, lengths))


def test_the_last_application_of_the_block_has_no_block_dropout():
    module = randomised(IDCNN(3, filters=20, **{**DRY, "block_dropout": 0.5}, iterations=1)).train()
    x, lengths = batch(LENGTHS, 3)
    assert torch.equal(module(x, lengths), module(x, lengths))


@pytest.mark.parametrize(
    ("option", "value", "advice"),
    [
        ("filters", 0, "it must be 1 or more"),
        ("kernel_size", 2, "it must be odd"),
        ("kernel_size", 0, "it must be 1 or more"),
        ("dilations", [1, 0], "they must be 1 or more"),
        ("iterations", 0, "it must be 1 or more"),
    ],
)
def test_architectures_that_cannot_be_are_refused(option, value, advice):
    with pytest.raises(InputError, match=re.escape(f"{option} is {value}: {advice}")):
        IDCNN(3, **{option: value})
