"""Layers with weights in int8 beside those that they were made of."""

from functools import partial

import pytest
import torch
from torch import nn

from spacy_psa.errors import InputError
from spacy_psa.modules import int8, span_scores
from spacy_psa.modules.characters import CharBiLSTM
from spacy_psa.modules.documents import DocumentMemory, SentenceContext
from spacy_psa.modules.factored_transformer import FactoredTransformer
from spacy_psa.modules.idcnn import IDCNN
from spacy_psa.modules.int8 import (
    Int8Linear,
    Int8LSTM,
    Int8Product,
    left_in_float32,
    quantize,
    quantize_like,
    to_int8,
)
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.self_attentive import SelfAttentiveBiLSTM
from spacy_psa.modules.span_scores import SpanScores
from spacy_psa.modules.tener import TENER
from spacy_psa.modules.transformer import PSATransformer, Transformer

PACKS = int8.packs


@pytest.fixture(params=["kernel", "torch"], autouse=True)
def path(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(int8.kernels, "available", lambda: False)
        monkeypatch.setattr(int8, "packs", lambda: False)


@pytest.fixture
def everything(monkeypatch):
    """Small layers are rounded too."""
    monkeypatch.setattr(int8, "LEAST_WORK", 0)


def test_rounding_is_at_most_half_a_step():
    x = torch.randn(40, 32, generator=torch.Generator().manual_seed(0))
    x[3] = 0
    q, scale = to_int8(x)
    assert q.dtype == torch.int8
    assert ((q * scale[:, None] - x).abs() <= 0.5001 * scale[:, None] + 1e-9).all()
    assert (q[3] == 0).all()


def close(module, *inputs):
    """The module in int8 gives nearly, and not exactly, what it gave."""
    module.eval()
    with torch.inference_mode():
        exact = module(*inputs)
        assert quantize(module)
        rounded = module(*inputs)
    assert not torch.equal(exact, rounded)
    assert (rounded - exact).norm() < 0.05 * exact.norm()
    return rounded


def test_a_linear_layer_is_close_to_its_own(everything):
    close(nn.Sequential(nn.Linear(64, 32)), torch.randn(20, 64))


LENGTHS = torch.tensor([12, 1, 57, 30])


@pytest.mark.parametrize(
    "make",
    [
        partial(BiLSTM, hidden=32),
        partial(TENER, heads=2, head_width=16),
        partial(Transformer, heads=2, head_width=16),
        partial(PSATransformer, heads=2, head_width=16, ffn_dim=32),
        partial(IDCNN, filters=32),
        partial(FactoredTransformer, width=32, heads=2, head_width=8, layers=2, ffn_dim=64),
        partial(FactoredTransformer, width=32, heads=2, head_width=8, layers=1, factored=False),
        partial(SelfAttentiveBiLSTM, hidden=20),
    ],
)
def test_an_encoder_is_close_to_its_own(make, everything):
    torch.manual_seed(0)
    encoder = make(64)
    assert close(encoder, torch.randn(100, 64), LENGTHS).shape == (100, encoder.output_width)
    assert not [kind for kind in left_in_float32(encoder) if kind == "small layers"]


def test_spans_of_long_sentences_are_scored(everything, monkeypatch):
    scores = SpanScores(16, labels=5, hidden=32)
    exact = close(scores, torch.randn(20, 16), torch.tensor([20]))
    monkeypatch.setattr(span_scores, "BLOCK", 64)
    with torch.inference_mode():
        again = scores(torch.zeros(20, 16), torch.tensor([20]))
    assert again.shape == exact.shape


def test_memory_of_a_document_is_read(everything):
    states = torch.randn(4, 16)
    close(DocumentMemory(16, width=8), states, torch.tensor([[2], [3], [0], [1]]))


def test_sentences_around_a_sentence_are_read(everything):
    context, lengths = SentenceContext(16, width=8), torch.tensor([2, 2])
    close(context, torch.randn(4, 16), lengths, torch.tensor([[0, 1], [1, 0]]))


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 300])
def test_any_number_of_rows_gives_the_sums_of_a_plain_product(rows):
    random = torch.Generator().manual_seed(rows)
    x, weight = (
        torch.randint(-127, 128, (n, 33), dtype=torch.int8, generator=random) for n in (rows, 17)
    )
    product = Int8Product()
    padded = torch.cat([x, x.new_full((product.places(rows) - rows, 33), 9)])
    exact = x.double() @ weight.double().t()
    assert torch.equal(product(padded, weight)[:rows].double(), exact)


def test_a_product_sees_weights_that_change_later():
    x, weight = torch.ones(80, 4, dtype=torch.int8), torch.ones(3, 4, dtype=torch.int8)
    product = Int8Product()
    assert (product(x, weight) == 4).all()
    weight.fill_(2)
    assert (product(x, weight) == 8).all()


def test_rows_may_be_parts_of_wider_rows(everything):
    torch.manual_seed(0)
    layer = Int8Linear(nn.Linear(16, 8))
    wide, out = torch.randn(70, 32), torch.zeros(70, 24)
    layer.write(wide[:, 16:], out[:, 8:16])
    assert torch.equal(out[:, 8:16], layer(wide[:, 16:].contiguous()))
    assert not out[:, :8].any() and not out[:, 16:].any()


def test_only_large_layers_change():
    layers = nn.ModuleDict(
        {
            "words": nn.Embedding(3, 8),
            "inner": nn.Sequential(nn.Linear(300, 300), nn.LayerNorm(300), nn.Linear(300, 9)),
            "characters": CharBiLSTM(20),
        }
    )
    quantize(layers)
    assert isinstance(layers["words"], nn.Embedding)
    kinds = [type(child) for child in layers["inner"]]
    assert kinds == [Int8Linear, nn.LayerNorm, nn.Linear]
    assert not any(isinstance(child, Int8LSTM) for child in layers["characters"].modules())


def test_loading_makes_the_layers_that_were_saved(everything, monkeypatch):
    first, second = (nn.Sequential(nn.Linear(20, 20), CharBiLSTM(20)) for _ in range(2))
    quantize(first)
    monkeypatch.setattr(int8, "LEAST_WORK", 100)
    quantize_like(second, first.state_dict())
    second.load_state_dict(first.state_dict())
    x = torch.randn(80, 20)
    assert torch.equal(first[0](x), second[0](x))


def test_a_gpu_is_refused():
    with pytest.raises(InputError, match="for the CPU"):
        Int8Linear(nn.Linear(4, 4))(torch.empty(2, 4, device="meta"))


@pytest.mark.parametrize(("times", "packs"), [(29.0, True), (31.0, False)])
def test_packed_weights_are_left_alone_where_their_product_is_very_slow(monkeypatch, times, packs):
    seconds = iter([1.0, times])  # of floats, and of packed weights
    monkeypatch.setattr(int8, "_seconds", lambda product: next(seconds))
    monkeypatch.setattr(int8, "_pack", lambda weight: weight)
    monkeypatch.setattr(
        int8, "_multiply_packed", lambda rows, packed, outputs: rows.float() @ packed.float().t()
    )
    assert PACKS.__wrapped__() is packs


def test_packed_products_whose_sums_saturate_are_not_taken(monkeypatch):
    def multiply(rows, weight, outputs):
        """As avx2 does it: unsigned rows, and sums of two products in 16 bits."""
        pairs = (rows.int() + 128)[:, None] * weight.int()
        sums = pairs.unflatten(2, (-1, 2)).sum(3).clamp(-(2**15), 2**15 - 1).sum(2)
        return (sums - 128 * weight.int().sum(1)).float()

    monkeypatch.setattr(int8, "_pack", lambda weight: weight)
    monkeypatch.setattr(int8, "_multiply_packed", multiply)
    monkeypatch.setattr(int8, "TOO_SLOW", 1e9)
    assert not PACKS.__wrapped__()
