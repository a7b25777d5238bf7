"""The vanilla Transformer against torch's own layer, and what all variants share."""

import math

import pytest
import torch
from torch import nn

from spacy_psa.modules import transformer
from spacy_psa.modules.sinusoids import SinusoidalPositions
from spacy_psa.modules.tener import TENER
from spacy_psa.modules.transformer import (
    EncoderLayer,
    MultiHeadAttention,
    PSATransformer,
    Transformer,
    attend,
    join_heads,
    split_heads,
)
from spacy_psa.ragged import pad, unpad
from tests.helpers.modules import EXACT, gradcheck, parameter_count, randomised
from tests.helpers.ragged import batch

WIDTH, HEADS = 6, 2
LENGTHS = [3, 1, 5]
DRY = {"dropout": 0.0, "input_dropout": 0.0, "output_dropout": 0.0}


def encoder(**options):
    sizes = {"heads": HEADS, "head_width": 3, "layers": 2, "ffn_dim": 8}
    return randomised(Transformer(4, **{**sizes, **options}))


def torchs_layer(layer, heads):
    """torch.nn.TransformerEncoderLayer with the weights of ours."""
    width, inner = layer.inner.in_features, layer.inner.out_features
    theirs = nn.TransformerEncoderLayer(
        width, heads, inner, dropout=0.0, activation="relu", batch_first=True, norm_first=False
    )
    projections = (layer.attention.query, layer.attention.key, layer.attention.value)
    with torch.no_grad():
        theirs.self_attn.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        theirs.self_attn.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
    for ours, other in (
        (layer.attention.output, theirs.self_attn.out_proj),
        (layer.inner, theirs.linear1),
        (layer.outer, theirs.linear2),
        (layer.attention_norm, theirs.norm1),
        (layer.feedforward_norm, theirs.norm2),
    ):
        other.load_state_dict(ours.state_dict())
    return theirs.double()


def run_torchs(encoder, x, lengths):
    """The whole encoder, with torch's layers on padded sentences."""
    h = SinusoidalPositions(encoder.output_width)(encoder.project(x), lengths)
    h = pad(h, lengths)
    padding = torch.arange(h.shape[1]) >= lengths[:, None]
    for layer in encoder.layers:
        h = torchs_layer(layer, layer.attention.heads)(h, src_key_padding_mask=padding)
    return unpad(h, lengths)


@pytest.mark.parametrize(("heads", "head_width"), [(1, 5), (2, 3), (4, 2)])
def test_the_encoder_equals_torchs(heads, head_width):
    module = encoder(heads=heads, head_width=head_width)
    x, lengths = batch(LENGTHS, 4)
    torch.testing.assert_close(module(x, lengths), run_torchs(module, x, lengths), **EXACT)


def test_gradients_equal_those_through_torchs_layers():
    module = encoder()
    x, lengths = batch(LENGTHS, 4)
    y = x.clone().requires_grad_()
    module(x.requires_grad_(), lengths).square().sum().backward()
    run_torchs(module, y, lengths).square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad, rtol=0, atol=1e-9)


def test_gradients_are_right():
    attention = randomised(MultiHeadAttention(4, 2))
    layer = randomised(EncoderLayer(attention, 4, 5))
    assert gradcheck(layer, *batch([2, 1], 4))


def test_the_order_of_words_matters_through_positions_alone():
    module = encoder()
    x, lengths = batch([4], 4)
    turned = module(x.flip(0), lengths).flip(0)
    assert not torch.allclose(module(x, lengths), turned)
    module.positions = None
    turned = module(x.flip(0), lengths).flip(0)
    torch.testing.assert_close(module(x, lengths), turned)


def test_the_only_token_of_a_sentence_attends_to_itself():
    attention = randomised(MultiHeadAttention(WIDTH, HEADS))
    x, lengths = batch([1], WIDTH)
    expected = attention.output(attention.value(x))
    torch.testing.assert_close(attention(x, lengths), expected)


def test_heads_are_slices():
    x, lengths = batch(LENGTHS, WIDTH)
    heads = split_heads(x, lengths, HEADS)
    assert heads.shape == (3, HEADS, 5, WIDTH // HEADS)
    torch.testing.assert_close(heads[0, 1, :3], x[:3, 3:])
    assert torch.equal(join_heads(heads, lengths), x)


# `attend`


def attend_loop(q, k, v, lengths, scale, bias, masked):
    out = torch.zeros_like(q)
    for b, n in enumerate(lengths.tolist()):
        for h in range(q.shape[1]):
            for i in range(n):
                seen = [j for j in range(n) if not (masked and i == j)]
                scores = [
                    scale * float(q[b, h, i] @ k[b, h, j]) + float(bias[b, h, i, j]) for j in seen
                ]
                total = sum(math.exp(s) for s in scores)
                for j, s in zip(seen, scores):
                    out[b, h, i] += math.exp(s) / total * v[b, h, j]
    return out


@pytest.mark.parametrize("step", [1, 2, 100])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_attend_equals_a_double_loop_however_it_is_cut(monkeypatch, step, masked, grad):
    q, k, v = (split_heads(*batch(LENGTHS, WIDTH, s), HEADS) for s in (1, 2, 3))
    bias = torch.randn(3, HEADS, 5, 5, dtype=torch.float64)
    lengths = torch.tensor(LENGTHS)
    expected = attend_loop(q, k, v, lengths, 0.3, bias, masked)
    row_bytes = 3 * HEADS * 5 * 8
    monkeypatch.setattr(transformer, "CHUNK_BYTES", step * row_bytes)
    asked = []

    def rows(start, stop):
        asked.append((start, stop))
        return bias[:, :, start:stop]

    with torch.set_grad_enabled(grad):
        out = attend(q, k, v, lengths, scale=0.3, bias=rows, masked=masked)
    assert asked[0] == (0, min(5, step))
    # Padded rows mean nothing.
    torch.testing.assert_close(join_heads(out, lengths), join_heads(expected, lengths), **EXACT)


@pytest.mark.parametrize("make", [Transformer, TENER], ids=lambda make: make.__name__)
def test_chunks_have_the_gradients_of_the_whole(monkeypatch, make):
    options = {"key_relative_bias": True} if make is TENER else {}
    module = randomised(make(4, heads=HEADS, head_width=3, layers=2, **options))
    gradients = []
    for size in (1 << 30, 1):
        monkeypatch.setattr(transformer, "CHUNK_BYTES", size)
        module.zero_grad()
        module(*batch(LENGTHS, 4)).square().sum().backward()
        gradients.append([p.grad.clone() for p in module.parameters()])
    torch.testing.assert_close(*gradients, **EXACT)


def test_chunks_with_dropout_have_the_gradients_of_what_they_computed(monkeypatch):
    """The weights that a chunk makes again for the backward pass drop the same pairs."""
    monkeypatch.setattr(transformer, "CHUNK_BYTES", 1)
    q, k, v = (split_heads(*batch(LENGTHS, WIDTH, s), HEADS) for s in (1, 2, 3))
    lengths = torch.tensor(LENGTHS)
    v.requires_grad_()
    torch.manual_seed(0)
    out = attend(q, k, v, lengths, scale=1.0, dropout=0.5)
    direction = torch.randn_like(v)
    (gradient,) = torch.autograd.grad(out.sum(), v)
    torch.manual_seed(0)
    with torch.no_grad():
        moved = attend(q, k, v + direction, lengths, scale=1.0, dropout=0.5)
    # The output is linear in v for one choice of what is dropped.
    torch.testing.assert_close((moved - out).sum(), (gradient * direction).sum())


def test_a_batch_of_tokens_alone_under_the_mask_is_zero_with_finite_gradients():
    lengths = torch.tensor([1, 1])
    parts = [split_heads(*batch(lengths, WIDTH, s), HEADS) for s in (1, 2, 3)]
    for part in parts:
        part.requires_grad_()
    out = attend(*parts, lengths, scale=1.0, masked=True)
    out.sum().backward()
    assert not out.any()
    assert all(part.grad is not None and not part.grad.any() for part in parts)


# Sizes and settings


def test_a_layer_has_the_parameters_of_the_paper():
    """Yan2019 section 6.1 counts 8,460 for its character encoder, with a linear layer of 930."""
    layer = EncoderLayer(MultiHeadAttention(30, 3), 30, 60)
    assert parameter_count(layer) == 8460 - 930


def test_the_feed_forward_part_is_twice_as_wide_unless_told():
    assert Transformer(4, heads=2, head_width=3, layers=1).layers[0].inner.out_features == 12


def test_dropout_is_active_in_training_only_and_everywhere_it_is_said():
    x, lengths = batch(LENGTHS, 4)
    for option in DRY:
        module = encoder(**{**DRY, option: 0.5})
        assert torch.equal(module(x, lengths), module(x, lengths))
        module.train()
        assert not torch.equal(module(x, lengths), module(x, lengths))
    for part in (0, 1):
        module = randomised(MultiHeadAttention(WIDTH, HEADS, dropout=0.5 * part)).train()
        assert torch.equal(*(module(*batch(LENGTHS, WIDTH)) for _ in "ab")) == (not part)


@pytest.mark.parametrize("make", [Transformer, TENER, PSATransformer])
def test_bfloat16_changes_digits_and_no_more(make):
    """Products have 8 bits; the output and all gradients are float32, and near."""
    torch.manual_seed(0)
    module = make(6, heads=2, head_width=8, layers=2, **DRY)
    lengths = torch.tensor([5, 1, 9])
    x = torch.randn(15, 6)
    found = []
    for precision in ("float32", "bfloat16"):
        module.precision = precision
        module.zero_grad()
        y = module(x, lengths)
        y.square().sum().backward()
        found.append([y.detach(), *(p.grad.clone() for p in module.parameters())])
    exact, rounded = found
    assert not torch.equal(exact[0], rounded[0])
    for ours, theirs in zip(rounded, exact, strict=True):
        assert ours.dtype == torch.float32
        assert (ours - theirs).norm() <= 0.05 * theirs.norm() + 1e-3
