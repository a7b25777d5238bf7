"""The Transformer with PSA's position bias, and that bias by itself."""

import itertools
import math

import pytest
import torch
from torch import nn

from spacy_psa.modules import transformer
from spacy_psa.modules.position_bias import PositionBias
from spacy_psa.modules.sinusoids import SinusoidalPositions
from spacy_psa.modules.transformer import MultiHeadAttention, PSATransformer
from tests.helpers.modules import EXACT, gradcheck, randomised
from tests.helpers.ragged import batch

WIDTH, HEADS = 6, 2
LENGTHS = [3, 1, 5]
PARTS = ("use_mask", "use_token_bias", "use_gaussian")
CHOICES = [
    {"version": version, **dict(zip(PARTS, on))}
    for version in ("journal", "arxiv")
    for on in itertools.product([False, True], repeat=3)
]


@torch.no_grad()
def attend_loop(attention, x, psi):
    """softmax_j(q_i·k_j / sqrt(dk) + Ψ_ij) v_j, one sentence (n, d), pair by pair."""
    n, d = x.shape
    dk = d // attention.heads
    q, k, v = attention.query(x), attention.key(x), attention.value(x)
    out = torch.zeros(n, d, dtype=x.dtype)
    for h, i in itertools.product(range(attention.heads), range(n)):
        part = slice(h * dk, (h + 1) * dk)
        scores = {
            j: float(q[i, part] @ k[j, part]) / math.sqrt(dk) + float(psi[i, j])
            for j in range(n)
            if psi[i, j] != -math.inf
        }
        total = sum(math.exp(s) for s in scores.values())
        for j, score in scores.items():
            out[i, part] += math.exp(score) / total * v[j, part]
    return attention.output(out)


@pytest.mark.parametrize("options", CHOICES, ids=str)
@pytest.mark.parametrize("chunk", [1 << 30, 1], ids=["whole", "row by row"])
def test_psi_is_added_to_the_scaled_scores_of_every_head(monkeypatch, options, chunk):
    monkeypatch.setattr(transformer, "CHUNK_BYTES", chunk)
    bias = PositionBias(WIDTH, window=2, **options)
    attention = randomised(MultiHeadAttention(WIDTH, HEADS, psi=bias))
    x, lengths = batch(LENGTHS, WIDTH)
    psi = bias.psi(x, lengths)
    sentences = x.split(LENGTHS)
    expected = torch.cat([attend_loop(attention, part, psi[b]) for b, part in enumerate(sentences)])
    torch.testing.assert_close(attention(x, lengths), expected, **EXACT)


def encoder(**options):
    sizes = {"heads": HEADS, "head_width": 3, "layers": 2, "ffn_dim": 8, "window": 2}
    return randomised(PSATransformer(4, **{**sizes, **options}))


def test_each_layer_has_a_psi_that_reads_its_own_input():
    module = encoder()
    x, lengths = batch(LENGTHS, 4)
    h = module.project(x)
    for layer in module.layers:
        psi = layer.attention.psi.psi(h, lengths)
        parts = h.split(LENGTHS)
        attended = torch.cat(
            [attend_loop(layer.attention, part, psi[b]) for b, part in enumerate(parts)]
        )
        y = layer.attention_norm(h + attended)
        h = layer.feedforward_norm(y + layer.outer(torch.relu(layer.inner(y))))
    torch.testing.assert_close(module(x, lengths), h, **EXACT)
    assert module.layers[0].attention.psi is not module.layers[1].attention.psi


def test_absolute_positions_take_the_place_of_psi():
    sizes = {"heads": HEADS, "head_width": 3, "layers": 2, "ffn_dim": 8}
    module = randomised(PSATransformer(4, position="absolute", **sizes))
    assert isinstance(module.positions, SinusoidalPositions)
    assert not [name for name, _ in module.named_parameters() if "psi" in name]
    vanilla = transformer.Transformer(4, **sizes).double().eval()
    vanilla.load_state_dict(module.state_dict())
    x, lengths = batch(LENGTHS, 4)
    assert torch.equal(module(x, lengths), vanilla(x, lengths))
    assert encoder().positions is None


def test_the_sizes_of_the_paper_are_the_defaults():
    module = PSATransformer(300, layers=1)
    (layer,) = module.layers
    assert module.output_width == layer.attention.query.out_features == 512
    assert (layer.attention.heads, layer.attention.scale) == (8, 64**-0.5)
    assert layer.inner.out_features == 1024
    assert layer.attention.psi.window == 10


def test_matrices_start_by_glorots_rule_and_biases_at_zero():
    torch.manual_seed(0)
    for module in PSATransformer(30, heads=2, head_width=16, ffn_dim=64).modules():
        if isinstance(module, nn.Linear):
            bound = math.sqrt(6 / (module.in_features + module.out_features))
            assert 0.9 * bound < module.weight.abs().max() <= bound
            assert not module.bias.any()
        if isinstance(module, nn.LayerNorm):
            assert (module.weight == 1).all()


def test_a_token_alone_has_no_context_under_the_mask():
    attention = randomised(MultiHeadAttention(WIDTH, HEADS, psi=PositionBias(WIDTH)))
    x, lengths = batch([1], WIDTH)
    out = attention(x.requires_grad_(), lengths)
    torch.testing.assert_close(out, attention.output.bias[None])
    out.sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("version", ["journal", "arxiv"])
def test_gradients_are_right(version):
    module = randomised(MultiHeadAttention(4, 2, psi=PositionBias(4, window=2, version=version)))
    assert gradcheck(module, *batch([3, 1, 2], 4))
