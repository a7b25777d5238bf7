"""The attention weights of encoders with layers and heads, against what they compute."""

import pytest
import torch

from spacy_psa.modules.tener import TENER, RelativeAttention
from spacy_psa.modules.transformer import (
    MultiHeadAttention,
    PSATransformer,
    Transformer,
    join_heads,
    split_heads,
)

LENGTHS = torch.tensor([4, 1, 3])
SIZES = {"heads": 2, "head_width": 6, "layers": 2}


def make(encoder, **options):
    torch.manual_seed(0)
    return encoder(8, **SIZES, **options).eval(), torch.randn(8, 8)


@pytest.mark.parametrize(
    ("encoder", "options"),
    [
        (TENER, {}),
        (TENER, {"scale": True, "key_relative_bias": True}),
        (Transformer, {}),
        (PSATransformer, {}),
    ],
)
def test_weights_are_shares_of_each_layer_and_head(encoder, options):
    module, x = make(encoder, **options)
    layers = [seen.attention for seen in module.inspect(x, LENGTHS)]
    assert [tuple(layer.shape) for layer in layers] == [(3, 2, 4, 4)] * 2
    for layer in layers:
        for sentence, length in enumerate(LENGTHS.tolist()):
            rows = layer[sentence, :, :length]
            assert (rows[..., length:] == 0).all() and (rows >= 0).all()
            if length > 1:  # alone, a token of PSA attends to nothing
                torch.testing.assert_close(rows.sum(-1), torch.ones(2, length))


@pytest.mark.parametrize("attention", [RelativeAttention, MultiHeadAttention])
def test_means_by_the_weights_are_what_the_attention_computes(attention):
    torch.manual_seed(1)
    module, x = attention(12, 2).eval(), torch.randn(8, 12)
    values = split_heads(module.value(x), LENGTHS, 2)
    means = join_heads(module.weights(x, LENGTHS) @ values, LENGTHS)
    expected = module.output(means) if attention is MultiHeadAttention else means
    torch.testing.assert_close(module(x, LENGTHS), expected)


def test_to_inspect_does_not_change_what_is_encoded():
    module, x = make(TENER)
    before = module(x, LENGTHS)
    module.inspect(x, LENGTHS)
    torch.testing.assert_close(module(x, LENGTHS), before, rtol=0, atol=0)
