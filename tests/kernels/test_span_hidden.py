"""The compiled hidden layer of spans against its torch twin."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from spacy_psa.kernels.span_hidden import span_hidden
from spacy_psa.modules.span_scores import span_hidden as plain
from tests.helpers.modules import with_gradients

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def inputs(lengths, width, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    shapes = (sum(lengths) + len(lengths), width), (width,), (width,), (width,)
    return [
        torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        for shape in shapes
    ]


def run(function, lengths, tensors):
    fenceposts, *rest = tensors
    return with_gradients(function(fenceposts, torch.tensor(lengths), *rest, 1e-5), tensors)


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 20), min_size=1, max_size=5),
    width=st.integers(8, 40),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 99),
)
def test_kernel_equals_torch_forward_and_backward(lengths, width, dtype, seed):
    tensors = inputs(lengths, width, dtype, seed)
    compiled, expected = (run(f, lengths, tensors) for f in (span_hidden, plain))
    for ours, theirs in zip(compiled, expected, strict=True):
        # Where a span is almost zero the norm divides by almost nothing.
        tolerance = 20 * TOLERANCE[dtype] * max(1.0, theirs.abs().max().item())
        torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=0)


def test_fenceposts_that_are_alike_have_a_gradient():
    tensors = [torch.zeros(4, 3), torch.zeros(3), torch.ones(3), torch.zeros(3)]
    found = run(span_hidden, [3], [tensor.requires_grad_() for tensor in tensors])
    assert all(part.isfinite().all() for part in found)


def test_fenceposts_in_columns_of_a_wider_tensor_are_taken():
    wide = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    rest = [torch.zeros(4), torch.ones(4), torch.zeros(4), 1e-5]
    every_second = wide[:, ::2]
    torch.testing.assert_close(
        span_hidden(every_second, torch.tensor([4]), *rest),
        plain(every_second, torch.tensor([4]), *rest),
    )


def test_what_is_not_a_number_stays_so():
    fenceposts = torch.full((3, 4), torch.nan)
    out = span_hidden(
        fenceposts, torch.tensor([2]), torch.zeros(4), torch.ones(4), torch.zeros(4), 1e-5
    )
    assert out.isnan().all()
