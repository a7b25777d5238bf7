"""The compiled attention against its torch twin, which tests/modules/test_psa.py holds to loops."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from spacy_psa.kernels.attention import _pairs, attend, covers
from spacy_psa.modules.additive_attention import additive_attention
from tests.helpers.modules import with_gradients

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def inputs(lengths, width, rows, dtype, seed=0, scale=1.0):
    generator = torch.Generator().manual_seed(seed)

    def random(*shape):
        tensor = torch.randn(*shape, generator=generator, dtype=torch.float64)
        return (scale * tensor).to(dtype).requires_grad_()

    tokens = sum(lengths)
    return (
        random(tokens, width), random(tokens, width), random(width),
        random(tokens, rows), random(max(lengths)), random(tokens, width),
    )  # fmt: skip


def run(function, tensors, lengths, **options):
    return with_gradients(function(*tensors, torch.tensor(lengths), **options), tensors)


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 24), min_size=1, max_size=5),
    width=st.integers(1, 40),
    radius=st.integers(0, 6),
    activation=st.sampled_from(["tanh", "sigmoid"]),
    signed=st.booleans(),
    masked=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 99),
)
def test_kernel_equals_torch_forward_and_backward(
    lengths, width, radius, activation, signed, masked, dtype, seed
):
    rows = 2 * radius + 1 if signed else radius + 1
    tensors = inputs(lengths, width, rows, dtype, seed, scale=0.5)
    options = {"activation": activation, "signed": signed, "masked": masked, "band": 24}
    compiled = run(attend, tensors, lengths, **options)
    plain = run(additive_attention, tensors, lengths, **options)
    for ours, theirs in zip(compiled, plain, strict=True):
        tolerance = TOLERANCE[dtype] * max(1.0, theirs.abs().max().item())
        torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=0)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_equal_finite_differences(activation, signed, masked):
    lengths = [4, 1, 2]
    tensors = inputs(lengths, 3, 3, torch.float64)

    def function(*tensors):
        return attend(
            *tensors, torch.tensor(lengths),
            activation=activation, signed=signed, masked=masked, band=2,
        )  # fmt: skip

    assert torch.autograd.gradcheck(function, tensors)


@settings(max_examples=60)
@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=4), band=st.integers(0, 15))
def test_pairs_of_the_band_are_counted(lengths, band):
    expected = sum(abs(i - j) <= band for n in lengths for i in range(n) for j in range(n))
    assert _pairs(np.cumsum([0, *lengths]), band) == expected


@pytest.mark.parametrize("signed", [False, True])
def test_pairs_outside_the_band_have_no_weight(signed):
    lengths, band = [9, 2], 3
    tensors = inputs(lengths, 4, 5, torch.float64)
    options = {"activation": "tanh", "signed": signed, "masked": True}
    banded = run(attend, tensors, lengths, band=band, **options)
    cut = list(tensors)
    cut[4] = tensors[4].detach().clone()
    cut[4][band + 1 :] = -1e4
    cut[4].requires_grad_()
    full = run(additive_attention, cut, lengths, band=9, **options)
    torch.testing.assert_close(banded, full)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("scale", [15.0, 1e4])
def test_saturated_units_do_not_overflow(dtype, scale):
    lengths = [5, 3]
    a, c, w, table, distance, x = inputs(lengths, 8, 3, dtype, scale=0.5)
    tensors = ((a * scale).detach().requires_grad_(), c, w, table, distance, x)
    options = {"activation": "tanh", "signed": False, "masked": True, "band": 5}
    compiled = run(attend, tensors, lengths, **options)
    plain = run(additive_attention, tensors, lengths, **options)
    torch.testing.assert_close(compiled, plain, atol=10 * TOLERANCE[dtype], rtol=0)


@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 80.0), (torch.float64, 600.0)])
@pytest.mark.parametrize(("activation", "slope"), [("tanh", 2.0), ("sigmoid", 1.0)])
def test_the_kernel_covers_what_it_does_not_cut_to_another_sum(dtype, limit, activation, slope):
    def covered(a, c):
        rows = torch.tensor([[[0.0, 0.0], [0.0, z]] for z in (a, c)], dtype=dtype) / slope
        return covers(*rows, activation)

    for sign in (1, -1):
        assert covered(sign * limit, -sign * limit)
        assert covered(sign * 100 * limit, -sign * limit / 2)
        assert covered(-sign * limit / 2, sign * 100 * limit)
        assert not covered(sign * (limit + 1), -sign * (limit + 1))
        assert not covered(sign * (limit + 1), -sign * (limit - 1))
    large = torch.tensor([[100 * limit, 0.0]], dtype=dtype)
    assert covers(large, large.flip(1), activation), "large in different units"


def test_nan_stays_visible():
    tensors = inputs([3, 2], 4, 3, torch.float32)
    with torch.no_grad():
        tensors[0][1, 0] = torch.nan
    s = attend(
        *tensors, torch.tensor([3, 2]), activation="tanh", signed=False, masked=True, band=3
    )  # fmt: skip
    assert s[1].isnan().all()
    assert torch.isfinite(s[[0, 2, 3, 4]]).all()


def test_layout_of_the_inputs_does_not_matter():
    lengths = [4, 3]
    tensors = inputs(lengths, 6, 3, torch.float32)
    options = {"activation": "tanh", "signed": False, "masked": True, "band": 4}
    strided = [t.detach().T.contiguous().T.requires_grad_() if t.dim() == 2 else t for t in tensors]
    torch.testing.assert_close(
        run(attend, strided, lengths, **options), run(attend, tensors, lengths, **options)
    )
