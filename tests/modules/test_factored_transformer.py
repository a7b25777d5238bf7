"""The encoder of Kitaev2018 against plain loops over heads, tokens and halves."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from spacy_psa.errors import InputError
from spacy_psa.modules import transformer
from spacy_psa.modules.factored_transformer import (
    FactoredAttention,
    FactoredTransformer,
    SentenceDropout,
    SplitLinear,
)
from tests.helpers.modules import randomised
from tests.helpers.ragged import batch, one_by_one

LENGTHS = [3, 1, 5]
MODES = {
    "factored": {},
    "plain": {"factored": False},
    "concat": {"factored": False, "concat": True},
    "blocks": {"factored": True, "concat": False},
}
NO_DROPOUT = {"attention_dropout": 0.0, "relu_dropout": 0.0, "residual_dropout": 0.0}


def built(input_width=4, **options):
    """A small encoder."""
    sizes = {"width": 8, "heads": 2, "head_width": 6, "layers": 3, "ffn_dim": 10, "max_length": 9}
    return randomised(FactoredTransformer(input_width, **{**sizes, **options}), scale=0.6)


def matrix(layer):
    """The weights of a layer as one matrix, blocks of zeros where it has none."""
    if isinstance(layer, SplitLinear):
        return torch.block_diag(layer.content.weight, layer.position.weight)
    return layer.weight


def bias(layer):
    if isinstance(layer, SplitLinear):
        return torch.cat([layer.content.bias, layer.position.bias])
    return layer.bias


def units(attention, which, kinds, head):
    """The rows of a projection that one head has of one kind; content ones first."""
    rows = torch.arange(kinds * attention.heads * attention.head_width)
    if attention.factored:
        return rows.view(2, kinds, attention.heads, -1)[:, which, head].flatten()
    return rows.view(kinds, attention.heads, -1)[which, head]


def plain_attention(attention, x, source, allowed, content, position):
    """One sentence, (n, d) -> (n, d); each head's weights on their own, outputs summed."""
    heads, dk = attention.heads, attention.head_width
    both, values = matrix(attention.query_key), matrix(attention.value)
    output = matrix(attention.output)
    total = torch.zeros_like(x)
    for head in range(heads):
        w_q = both[units(attention, 0, 2, head)]
        w_k = both[units(attention, 1, 2, head)]
        w_v = values[units(attention, 0, 1, head)]
        w_o = output[:, units(attention, 0, 1, head)]
        for i in range(len(x)):
            places = [j for j in range(len(x)) if allowed(i, j)]
            scores = []
            for j in places:
                q, k = w_q @ source[i], w_k @ source[j]
                of_content = q[: dk // 2] @ k[: dk // 2] if content else 0.0
                of_position = q[dk // 2 :] @ k[dk // 2 :] if position else 0.0
                scores.append((of_content + of_position) / math.sqrt(dk))
            weights = torch.softmax(torch.as_tensor(scores, dtype=x.dtype), 0)
            seen = sum(w * (w_v @ x[j]) for w, j in zip(weights, places))
            total[i] += w_o @ seen
    return total


@torch.no_grad()
def plain(module, words, allowed=lambda i, j: True):
    """One sentence, (n, nI) -> (n + 2, d)."""
    if module.project is not None:
        words = words @ module.project.weight.T
    content = torch.cat([module.ends[:1], words, module.ends[1:]])
    last = len(module.positions) - 1
    p = torch.stack([module.positions[min(t, last)] for t in range(len(content))])
    y = torch.cat([content, p], 1) if module.concat else content + p
    if module.input_norm is not None:
        y = module.input_norm(y)
    for number, layer in enumerate(module.layers):
        attended = plain_attention(
            layer.attention,
            y,
            p if number < module.position_only else y,
            allowed,
            number not in module.disable_content,
            number not in module.disable_position,
        )
        y = layer.attention_norm(y + attended)
        hidden = torch.relu(y @ matrix(layer.inner).T + bias(layer.inner))
        y = layer.feedforward_norm(y + hidden @ matrix(layer.outer).T + bias(layer.outer))
    return y


def expected(module, x, lengths, **options):
    found = [plain(module, part, **options) for part in x.split(lengths.tolist())]
    return torch.cat(found if module.boundaries else [rows[1:-1] for rows in found])


@pytest.mark.parametrize("boundaries", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_each_mode_is_the_plain_loop(mode, boundaries):
    module = built(**MODES[mode], boundaries=boundaries)
    x, lengths = batch(LENGTHS, 4)
    torch.testing.assert_close(module(x, lengths), expected(module, x, lengths))


def test_position_only_layers_attend_by_the_embeddings_of_position():
    module, (x, lengths) = built(**MODES["plain"], position_only=2), batch(LENGTHS, 4)
    torch.testing.assert_close(module(x, lengths), expected(module, x, lengths))


def test_without_the_norm_of_the_input():
    module, (x, lengths) = built(input_norm=False), batch(LENGTHS, 4)
    torch.testing.assert_close(module(x, lengths), expected(module, x, lengths))


@pytest.mark.parametrize("width", [4, 7])
def test_only_inputs_of_another_width_than_the_content_are_projected(width):
    module, (x, lengths) = built(width), batch(LENGTHS, width)
    assert (module.project is None) == (width == 4)
    torch.testing.assert_close(module(x, lengths), expected(module, x, lengths))


@pytest.mark.parametrize("content", [set(), {0}, {1, 2}, {0, 1, 2}], ids=str)
@pytest.mark.parametrize("position", [set(), {0, 2}, {0, 1, 2}], ids=str)
def test_switches_leave_content_or_position_out_of_some_layers(content, position):
    module, (x, lengths) = built(), batch(LENGTHS, 4)
    untouched = module(x, lengths)
    module.disable_content, module.disable_position = content, position
    switched = module(x, lengths)
    torch.testing.assert_close(switched, expected(module, x, lengths))
    assert torch.equal(switched, untouched) == (not content and not position)
    module.disable_content = module.disable_position = set()
    assert torch.equal(module(x, lengths), untouched)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("relaxed", [True, False])
@pytest.mark.parametrize("window", [1, 2, 4])
def test_windows_bound_what_is_attended(window, relaxed, mode):
    module, (x, lengths) = built(**MODES[mode]), batch([8, 2, 1], 4)
    module.window, module.relaxed = window, relaxed
    found = module(x, lengths).split(lengths.tolist())
    for rows, words in zip(found, x.split(lengths.tolist())):
        last = len(words) + 1

        def allowed(i, j, last=last):
            free = {0, 1, last - 1, last} if relaxed else set()
            return abs(i - j) <= window or i in free or j in free

        torch.testing.assert_close(rows, plain(module, words, allowed)[1:-1])


def test_a_window_of_the_sentences_length_is_none():
    module, (x, lengths) = built(), batch(LENGTHS, 4)
    free = module(x, lengths)
    for relaxed in (True, False):
        module.window, module.relaxed = max(LENGTHS) + 1, relaxed
        torch.testing.assert_close(module(x, lengths), free)


def test_windows_in_chunks_are_windows(monkeypatch):
    module, (x, lengths) = built(window=2), batch([8, 3], 4)
    x.requires_grad_()
    whole = module(x, lengths)
    gradient = torch.autograd.grad(whole.square().sum(), x)
    monkeypatch.setattr(transformer, "CHUNK_BYTES", 1000)
    chunks = module(x, lengths)
    torch.testing.assert_close(chunks, whole)
    torch.testing.assert_close(torch.autograd.grad(chunks.square().sum(), x), gradient)


@pytest.mark.parametrize("bias", [True, False])
def test_split_linear_is_a_matrix_with_zero_blocks(bias):
    layer = SplitLinear(6, 8, bias=bias).double()
    x, _ = batch(LENGTHS, 6)
    dense = torch.block_diag(layer.content.weight, layer.position.weight)
    added = torch.cat([layer.content.bias, layer.position.bias]) if bias else None
    torch.testing.assert_close(layer(x), F.linear(x, dense, added))
    jacobian = torch.autograd.functional.jacobian(layer, x[:1])[0, :, 0]
    assert not jacobian[:4, 3:].any() and not jacobian[4:, :3].any()
    assert jacobian[:4, :3].all() and jacobian[4:, 3:].all()


def test_scores_of_factored_attention_are_sums_of_both_halves():
    """With one value visible a content value depends on position through weights alone."""
    torch.manual_seed(0)
    attention = FactoredAttention(8, 2, 4, factored=True).double().eval()
    x, length = batch([3], 8)
    jacobian = torch.autograd.functional.jacobian(lambda x: attention(x, length), x)
    assert jacobian[:, :4, :, 4:].abs().max() > 0  # through the weights
    uniform = torch.autograd.functional.jacobian(
        lambda x: attention(x, length, content=False, position=False), x
    )
    assert not uniform[:, :4, :, 4:].any() and not uniform[:, 4:, :, :4].any()


def test_factoring_halves_the_weights_of_the_layers():
    def size(**options):
        layers = FactoredTransformer(512, **options).layers
        return sum(p.numel() for p in layers.parameters() if p.dim() == 2)

    assert size() * 2 == size(factored=False) == 8 * (4 * 1024 * 512 + 2 * 1024 * 2048)


def test_longer_sentences_share_the_last_position():
    module, (x, lengths) = built(max_length=3), batch([7], 4)
    torch.testing.assert_close(module(x, lengths), expected(module, x, lengths))
    assert len(module.positions) == 5


@settings(max_examples=25)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.sampled_from(sorted(MODES)))
def test_a_sentence_is_encoded_alike_alone_and_in_a_batch(sizes, mode):
    module, (x, lengths) = built(**MODES[mode], window=2, boundaries=True), batch(sizes, 4)
    together = module(x, lengths)
    torch.testing.assert_close(together, one_by_one(module, x, lengths))
    assert torch.equal(module.out_lengths(lengths), lengths + 2)
    assert len(together) == int(module.out_lengths(lengths).sum())


@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_right_and_reach_every_parameter(mode):
    module, (x, lengths) = built(**MODES[mode], layers=2, boundaries=True), batch([2, 1], 4)
    x.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: module(x, lengths), (x,))
    module(x, lengths).square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in module.parameters())


def test_dropout_takes_a_feature_from_a_whole_sentence():
    torch.manual_seed(0)
    lengths = torch.tensor([4, 1, 6])
    dropout, x = SentenceDropout(0.5).train(), torch.ones(11, 200)
    out = dropout(x, lengths)
    assert set(out.unique().tolist()) == {0.0, 2.0}
    parts = [part.unique(dim=0) for part in out.split(lengths.tolist())]
    assert [len(part) for part in parts] == [1, 1, 1]
    assert not torch.equal(parts[0], parts[2])
    assert 0.4 < out.mean() / 2 < 0.6
    assert torch.equal(dropout.eval()(x, lengths), x)


@pytest.mark.parametrize("rate", NO_DROPOUT)
def test_each_dropout_acts_in_training_alone(rate):
    module = FactoredTransformer(4, width=8, heads=2, head_width=4, layers=1,
                                 ffn_dim=8, **{**NO_DROPOUT, rate: 0.5})  # fmt: skip
    x, lengths = batch(LENGTHS, 4, dtype=torch.float32)
    torch.manual_seed(0)
    assert not torch.equal(module.train()(x, lengths), module(x, lengths))
    assert torch.equal(module.eval()(x, lengths), module(x, lengths))


@pytest.mark.parametrize("mode", MODES)
def test_sixteen_bits_are_near_thirty_two(mode):
    """Outputs, as float32, and gradients of weights, which stay float32."""
    found = {}
    for precision in ("float32", "bfloat16"):
        torch.manual_seed(0)
        options = {"width": 64, "layers": 2, "window": 3, "precision": precision}
        module = FactoredTransformer(32, **options, **MODES[mode], **NO_DROPOUT)
        out = module(*batch(LENGTHS, 32, dtype=torch.float32))
        assert out.dtype == torch.float32
        out.square().sum().backward()
        found[precision] = out, module.ends.grad
    for full, half in zip(found["float32"], found["bfloat16"], strict=True):
        assert not torch.equal(full, half)
        torch.testing.assert_close(half, full, rtol=0.05, atol=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 7}, "width is 7: it must be even"),
        ({"head_width": 3}, "head_width is 3: it must be even"),
        ({"ffn_dim": 9}, "ffn_dim is 9: it must be even"),
        ({"width": 7, **MODES["concat"]}, "width is 7: it must be even"),
        ({"position_only": 1}, "position_only needs factored = false"),
        (
            {"position_only": 1, **MODES["concat"]},
            "position_only needs factored = false, and concat = false or null",
        ),
        ({"disable_content": [0], **MODES["plain"]}, "need factored = true"),
        ({"disable_position": [3]}, "has the layer 3: the layers are 0 to 2"),
        ({"disable_content": [-1]}, "has the layer -1: the layers are 0 to 2"),
        ({"position_only": -1, **MODES["plain"]}, "position_only is -1: it must be 0 or more"),
        (
            {"position_only": 4, **MODES["plain"]},
            "position_only is 4: it must be at most the number of layers, 3",
        ),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        built(**options)


def test_plain_encoders_take_odd_sizes():
    module, (x, lengths) = (
        built(width=7, head_width=3, ffn_dim=9, **MODES["plain"]),
        batch(LENGTHS, 4),
    )
    torch.testing.assert_close(module(x, lengths), expected(module, x, lengths))
