"""The compiled gates against torch's, in values, gradients and at the ends of the range."""

import pytest
import torch

from spacy_psa.kernels import available

if not available():
    pytest.skip("numba does not work here", allow_module_level=True)

from spacy_psa.kernels.gates import tanh
from spacy_psa.modules import lstm
from spacy_psa.modules.lstm import BiLSTM


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tanh_and_its_gradient(dtype):
    x = torch.cat([torch.linspace(-12, 12, 4001), torch.tensor([-1e4, 0.0, 1e4])]).to(dtype)
    ours, exact = x.clone().requires_grad_(), x.double().requires_grad_()
    ours_tanh, expected = tanh(ours * 1), torch.tanh(exact)
    torch.testing.assert_close(ours_tanh.double(), expected, atol=3e-7, rtol=0)
    ours_tanh.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(ours.grad.double(), exact.grad, atol=1e-6, rtol=0)


@pytest.mark.parametrize("train", [True, False])
def test_a_bilstm_is_that_of_plain_torch_steps(train, monkeypatch):
    def run():
        torch.manual_seed(0)
        layer = BiLSTM(7, 5, input_dropout=0.0, output_dropout=0.0)
        lengths = torch.tensor([4, 1, 9, 4])
        x = torch.randn(18, 7, requires_grad=train)
        with torch.set_grad_enabled(train):
            out = layer(x, lengths)
        if train:
            out.square().sum().backward()
            return [out.detach(), x.grad, *(p.grad for p in layer.parameters())]
        return [out]

    compiled = run()
    monkeypatch.setattr(lstm, "_compiled", lambda x: False)
    for ours, plain in zip(compiled, run(), strict=True):
        torch.testing.assert_close(ours, plain, atol=2e-6, rtol=1e-5)
