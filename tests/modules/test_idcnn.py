"""Iterated dilated convolutions against torch's, sentence by sentence."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from spacy_psa.errors import InputError
from spacy_psa.modules.idcnn import IDCNN, DilatedConvolution, neighbours

LENGTHS = torch.tensor([4, 1, 9])


def batch(width=3, lengths=LENGTHS, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(int(lengths.sum()), width, generator=generator, dtype=torch.float64)


def randomised(module, seed=0):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)
    return module.double().eval()


def conv1d(convolution, x):
    """One sentence (n, width) by torch's convolution with zeros around."""
    padding = convolution.size // 2 * convolution.dilation
    return F.conv1d(
        x.T[None],
        convolution.weight,
        convolution.bias,
        padding=padding,
        dilation=convolution.dilation,
    )[0].T


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    size=st.sampled_from([1, 3, 5]),
    dilation=st.integers(1, 4),
)
def test_a_convolution_equals_torchs_on_each_sentence(lengths, size, dilation):
    lengths = torch.tensor(lengths)
    convolution = randomised(DilatedConvolution(3, 4, size, dilation))
    x = batch(3, lengths)
    expected = torch.cat([conv1d(convolution, part) for part in x.split(lengths.tolist())])
    out = convolution(x, neighbours(lengths, size, dilation))
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_the_block_is_applied_again_and_again_with_the_same_weights(iterations):
    module = randomised(IDCNN(3, kernels=5, dilations=(1, 2, 1), iterations=iterations))
    x = batch()
    expected = []
    for part in x.split(LENGTHS.tolist()):
        h = torch.relu(conv1d(module.input, part))
        for _ in range(iterations):
            for convolution in module.block:
                h = torch.relu(conv1d(convolution, h))
        expected.append(h)
    torch.testing.assert_close(module(x, LENGTHS), torch.cat(expected), rtol=0, atol=1e-10)


def test_iterations_add_no_parameters():
    once, often = (IDCNN(3, kernels=5, iterations=i) for i in (1, 6))
    assert {k: v.shape for k, v in once.state_dict().items()} == {
        k: v.shape for k, v in often.state_dict().items()
    }
    assert sum(p.numel() for p in once.parameters()) == 5 * (3 * 3 + 1) + 3 * 5 * (5 * 3 + 1)


@pytest.mark.parametrize(
    ("size", "dilations", "iterations"),
    [(3, (1, 2, 1), 1), (3, (1, 2, 1), 2), (3, (1, 1, 2), 2), (5, (1, 2), 1), (1, (3,), 2)],
)
def test_a_token_sees_as_far_as_the_convolutions_reach_and_no_farther(size, dilations, iterations):
    """Weights above 0 and inputs above 0, so that nothing is lost in relu."""
    reach = size // 2 * (1 + iterations * sum(dilations))
    n, middle = 2 * reach + 5, reach + 2
    module = IDCNN(2, kernels=3, size=size, dilations=dilations, iterations=iterations).double()
    for parameter in module.parameters():
        torch.nn.init.constant_(parameter, 0.1)
    x = torch.rand(n, 2, dtype=torch.float64) + 0.1
    x.requires_grad_()
    module.eval()(x, torch.tensor([n]))[middle].sum().backward()
    seen = x.grad.abs().sum(1).nonzero().flatten()
    assert seen.min() == middle - reach and seen.max() == middle + reach


def test_no_sentence_sees_another():
    module = randomised(IDCNN(3, kernels=5))
    x = batch()
    alone = [module(part, torch.tensor([len(part)])) for part in x.split(LENGTHS.tolist())]
    torch.testing.assert_close(module(x, LENGTHS), torch.cat(alone), rtol=0, atol=1e-10)


def test_the_block_starts_as_the_identity():
    module = IDCNN(3, kernels=5, iterations=3).double().eval()
    x = batch()
    first = torch.cat([conv1d(module.input, part) for part in x.split(LENGTHS.tolist())])
    torch.testing.assert_close(module(x, LENGTHS), torch.relu(first))
    assert module.input.weight.any()


def test_gradients_are_right():
    lengths = torch.tensor([3, 1])
    module = randomised(IDCNN(2, kernels=3))
    names = [name for name, _ in module.named_parameters()]

    def run(x, *parameters):
        return torch.func.functional_call(module, dict(zip(names, parameters)), (x, lengths))

    x = batch(2, lengths).requires_grad_()
    assert torch.autograd.gradcheck(run, (x, *module.parameters()), fast_mode=True)


@pytest.mark.parametrize("option", ["input_dropout", "block_dropout", "output_dropout"])
def test_each_dropout_is_active_in_training_only(option):
    module = randomised(IDCNN(3, kernels=20, **{option: 0.5}))
    x = batch()
    assert torch.equal(module(x, LENGTHS), module(x, LENGTHS))
    module.train()
    assert not torch.equal(module(x, LENGTHS), module(x, LENGTHS))


def test_the_last_application_of_the_block_has_no_block_dropout():
    module = randomised(IDCNN(3, kernels=20, block_dropout=0.5, iterations=1)).train()
    x = batch()
    assert torch.equal(module(x, LENGTHS), module(x, LENGTHS))


@pytest.mark.parametrize(
    "options",
    [{"kernels": 0}, {"size": 2}, {"size": 0}, {"dilations": (1, 0)}, {"iterations": 0}],
    ids=str,
)
def test_architectures_that_cannot_be_are_refused(options):
    with pytest.raises(InputError, match="take 1 or more, and an odd size"):
        IDCNN(3, **options)
