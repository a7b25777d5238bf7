"""Layers with weights in int8 beside those that they were made of."""

import pytest
import torch
from torch import nn

from spacy_psa.errors import InputError
from spacy_psa.modules import int8
from spacy_psa.modules.int8 import Int8Linear, Int8LSTM, quantize, to_int8
from spacy_psa.modules.lstm import BiLSTM


@pytest.fixture(params=["kernel", "torch"], autouse=True)
def path(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(int8.kernels, "available", lambda: False)


def test_rounding_is_at_most_half_a_step():
    x = torch.randn(40, 32, generator=torch.Generator().manual_seed(0))
    x[3] = 0
    q, scale = to_int8(x)
    assert q.dtype == torch.int8
    assert ((q * scale[:, None] - x).abs() <= 0.5001 * scale[:, None] + 1e-9).all()
    assert (q[3] == 0).all()


def test_a_linear_layer_is_close_to_its_own():
    torch.manual_seed(0)
    linear, x = nn.Linear(64, 32), torch.randn(20, 64)
    with torch.inference_mode():
        exact, rounded = linear(x), Int8Linear(linear)(x)
    assert not torch.equal(exact, rounded)
    torch.testing.assert_close(rounded, exact, atol=0.03, rtol=0)


def test_an_lstm_is_close_to_its_own():
    torch.manual_seed(0)
    layer, x, lengths = BiLSTM(64, 32), torch.randn(30, 64), torch.tensor([12, 1, 17])
    layer.eval()
    with torch.inference_mode():
        exact = layer(x, lengths)
        quantize(layer)
        rounded = layer(x, lengths)
    assert any(isinstance(child, Int8LSTM) for child in layer.modules())
    assert not torch.equal(exact, rounded)
    torch.testing.assert_close(rounded, exact, atol=0.03, rtol=0)


def test_only_linear_layers_and_lstms_change():
    layers = nn.ModuleDict(
        {"words": nn.Embedding(3, 8), "inner": nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8))}
    )
    quantize(layers)
    assert isinstance(layers["words"], nn.Embedding)
    assert [type(child) for child in layers["inner"]] == [Int8Linear, nn.LayerNorm]


def test_a_gpu_is_refused():
    with pytest.raises(InputError, match="for the CPU"):
        Int8Linear(nn.Linear(4, 4))(torch.empty(2, 4, device="meta"))
