"""Dropout: shares, independence, the gradient, and what sets the mask."""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_psa.modules.dropout import Dropout, drop

N = 100_000


@pytest.fixture(params=[True, False], ids=["kernels", "torch"])
def kernels(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr("spacy_psa.modules.dropout.kernels.available", lambda: False)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("rate", [0.05, 0.5, 0.9])
def test_a_share_is_dropped_and_the_mean_stays(rate, dtype):
    torch.manual_seed(0)
    y = drop(torch.ones(N, dtype=dtype), rate)
    assert y.dtype == dtype
    assert (y == 0).double().mean().item() == pytest.approx(rate, abs=5 * 0.5 / N**0.5)
    kept = torch.tensor(1 / (1 - rate), dtype=torch.float64).to(dtype)
    torch.testing.assert_close(y[y != 0].unique(), kept[None])


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("apart", [1, 2, 16, 300, 600])
def test_elements_are_dropped_independently(apart):
    torch.manual_seed(1)
    kept = (drop(torch.ones(N), 0.5) != 0).double()
    both = (kept[:-apart] * kept[apart:]).mean().item()
    assert both == pytest.approx(0.25, abs=5 * 0.43 / N**0.5)


def test_two_masks_are_independent():
    torch.manual_seed(2)
    first, second = ((drop(torch.ones(N), 0.5) != 0).double() for _ in range(2))
    assert (first * second).mean().item() == pytest.approx(0.25, abs=5 * 0.43 / N**0.5)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@example(rate=1 - 1e-12, size=5, seed=0)
@given(rate=st.floats(0.0, 1.0), size=st.integers(0, 5), seed=st.integers(0, 9))
def test_the_gradient_has_the_mask_of_the_result(dtype, rate, size, seed):
    torch.manual_seed(seed)
    x = torch.randn(size, 3, dtype=dtype).t().requires_grad_()
    y = drop(x, rate)
    (g,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(y, x * g)


@pytest.mark.usefixtures("kernels")
def test_the_seed_sets_the_mask():
    def masks(seed):
        torch.manual_seed(seed)
        return torch.stack([drop(torch.ones(50), 0.5), drop(torch.ones(50), 0.5)])

    assert masks(3).equal(masks(3))
    assert not masks(3).equal(masks(4))
    assert not masks(3)[0].equal(masks(3)[1])


@pytest.mark.usefixtures("kernels")
def test_the_ends_of_the_range():
    x = torch.randn(4, requires_grad=True)
    assert drop(x, 0.0) is x
    gone = drop(x, 1.0)
    gone.sum().backward()
    assert not gone.any() and not x.grad.any()
    assert drop(torch.ones(N), 1e-12).eq(1).all()


def test_the_module_drops_in_training_alone():
    layer, x = Dropout(0.5), torch.ones(64)
    assert not layer(x).all()
    assert layer.eval()(x) is x
