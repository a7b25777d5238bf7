"""TENER against its equations, written as plain loops."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_psa.modules import transformer
from spacy_psa.modules.sinusoids import SinusoidalPositions, sinusoids
from spacy_psa.modules.tener import TENER, RelativeAttention, relative_scores, relative_shift
from spacy_psa.modules.transformer import EncoderLayer
from tests.helpers.modules import EXACT, gradcheck, parameter_count, randomised
from tests.helpers.ragged import batch

WIDTH, HEADS = 8, 2
LENGTHS = [3, 1, 6]
SWITCHES = ("scale", "key_projection", "key_relative_bias")
COMBINATIONS = [
    dict(zip(SWITCHES, on)) for on in itertools.product([False, True], repeat=len(SWITCHES))
]


def dot(a, b):
    return sum(p * q for p, q in zip(a, b, strict=True))


def encoding(offset, dk):
    """R of Eq. 17."""
    angles = [offset / 10000 ** (2 * i / dk) for i in range((dk + 1) // 2)]
    return [f(angle) for angle in angles for f in (math.sin, math.cos)][:dk]


def attend_loop(module, x, lengths):
    """Eq. 16-19, head by head and pair by pair."""
    state = {name: value.tolist() for name, value in module.state_dict().items()}
    dk, outputs, start = module.head_width, [], 0
    for n in lengths.tolist():
        rows = x[start : start + n].tolist()
        start += n
        q, v = ([[dot(w, r) for w in state[f"{p}.weight"]] for r in rows] for p in
                ("query", "value"))  # fmt: skip
        k = rows
        if "key.weight" in state:
            k = [[dot(w, r) for w in state["key.weight"]] for r in rows]
        for t in range(n):
            token = []
            for h in range(module.heads):
                part = slice(h * dk, (h + 1) * dk)
                scores = []
                for j in range(n):
                    r = encoding(t - j, dk)
                    a = dot(q[t][part], k[j][part]) + dot(q[t][part], r)
                    a += dot(state["u"][h], k[j][part]) + dot(state["v"][h], r)
                    if module.key_relative_bias:
                        a += dot(k[j][part], encoding(j - t, dk))
                    scores.append(a * module.scale)
                weights = [math.exp(a) for a in scores]
                total = sum(weights)
                for c in range(dk):
                    token.append(dot(weights, [v[j][part][c] for j in range(n)]) / total)
            outputs.append(token)
    return torch.tensor(outputs, dtype=torch.float64)


@pytest.mark.parametrize("switches", COMBINATIONS, ids=str)
@pytest.mark.parametrize("chunk", [1 << 30, 3 * 2 * 6 * 8 * 2, 1], ids=["whole", "two", "one"])
def test_attention_equals_the_double_loop_however_it_is_cut(monkeypatch, switches, chunk):
    monkeypatch.setattr(transformer, "CHUNK_BYTES", chunk)
    module = randomised(RelativeAttention(WIDTH, HEADS, **switches))
    x, lengths = batch(LENGTHS, WIDTH)
    expected = attend_loop(module, x, lengths)
    torch.testing.assert_close(module(x, lengths), expected, **EXACT)
    with torch.no_grad():
        torch.testing.assert_close(module(x, lengths), expected, **EXACT)


@settings(max_examples=25)
@given(
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    heads=st.integers(1, 3),
    dk=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_attention_equals_the_double_loop_for_any_sizes(lengths, heads, dk, seed):
    module = randomised(RelativeAttention(heads * dk, heads, key_relative_bias=True), seed)
    x, lengths = batch(lengths, heads * dk, seed)
    torch.testing.assert_close(module(x, lengths), attend_loop(module, x, lengths), **EXACT)


@settings(max_examples=50)
@given(m=st.integers(1, 6), n=st.integers(1, 6))
def test_relative_shift_equals_a_loop(m, n):
    scores = torch.arange(2.0 * m * (m + n)).view(2, m, m + n)
    shifted = relative_shift(scores)
    assert shifted.shape == (2, m, n)
    for i, j in itertools.product(range(m), range(n)):
        assert torch.equal(shifted[:, i, j], scores[:, i, (m - 1) - i + j])


@settings(max_examples=50)
@given(st.data())
def test_relative_scores_of_any_rows_and_columns_are_those_of_their_offsets(data):
    n = data.draw(st.integers(1, 8))
    row, column = (data.draw(st.integers(0, n - 1)) for _ in "rc")
    rows = data.draw(st.integers(1, n - row))
    columns = data.draw(st.integers(1, n - column))
    table = sinusoids(torch.arange(n - 1, -n - 1, -1), 4)
    x, _ = batch([rows], 4)
    scores = relative_scores(x, table, row, column, columns)
    for i, j in itertools.product(range(rows), range(columns)):
        expected = dot(x[i].tolist(), encoding((row + i) - (column + j), 4))
        assert scores[i, j].item() == pytest.approx(expected, abs=1e-10)


def test_gradients_are_right():
    module = randomised(
        RelativeAttention(4, 2, scale=True, key_projection=True, key_relative_bias=True)
    )
    assert gradcheck(module, *batch([3, 1], 4))


# Properties 1 and 2 and Eq. 20 (Yan2019 section 3.2.1)


def position(t, width):
    """PE_t of Eq. 8-9."""
    lengths = torch.tensor([t + 1])
    zeros = torch.zeros(t + 1, width, dtype=torch.float64)
    return SinusoidalPositions(width)(zeros, lengths)[t]


@pytest.mark.parametrize("width", [2, 16, 128])
@pytest.mark.parametrize("k", [0, 1, 5, 40])
def test_property_1_the_product_of_positions_depends_on_their_distance_alone(width, k):
    expected = sum(math.cos(10000 ** (-2 * j / width) * k) for j in range(width // 2))
    for t in (0, 1, 7, 300):
        product = float(position(t, width) @ position(t + k, width))
        assert product == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("width", [2, 16, 128])
@pytest.mark.parametrize("k", [1, 5, 40])
def test_property_2_the_product_of_positions_knows_no_direction(width, k):
    for t in (40, 41, 300):
        before, at, after = (position(t + o, width) for o in (-k, 0, k))
        torch.testing.assert_close(at @ before, at @ after, rtol=0, atol=1e-9)


@pytest.mark.parametrize("width", [2, 16, 127])
def test_relative_encodings_of_opposite_offsets_differ_in_the_sign_of_the_sines(width):
    offsets = torch.arange(50)
    there, back = sinusoids(offsets, width), sinusoids(-offsets, width)
    torch.testing.assert_close(back[:, 0::2], -there[:, 0::2], rtol=0, atol=1e-12)
    torch.testing.assert_close(back[:, 1::2], there[:, 1::2], rtol=0, atol=1e-12)
    assert there[1:, 0].abs().min() > 0.001
    torch.testing.assert_close(
        there[7], torch.tensor(encoding(7, width), dtype=torch.float64), rtol=0, atol=1e-12
    )


def test_the_attention_knows_direction():
    """A token sees the same neighbour differently on its left and on its right."""
    module = randomised(RelativeAttention(WIDTH, HEADS))
    (word, neighbour), two = batch([2], WIDTH)
    left = module(torch.stack([neighbour, word]), two)[1]
    right = module(torch.stack([word, neighbour]), two)[0]
    assert not torch.allclose(left, right)


def test_places_do_not_matter_but_offsets():
    """Q, K and V of a sentence do not change where it stands in a longer one."""
    module = randomised(RelativeAttention(WIDTH, HEADS))
    module.query.weight.data.zero_()
    module.u.data.zero_()
    module.v.data.zero_()  # all attention is uniform, so only V is left
    x, lengths = batch([4], WIDTH)
    out = module(x, lengths)
    torch.testing.assert_close(out, module.value(x).mean(0).expand(4, -1))


# Parameters


def test_there_is_no_key_and_no_output_projection():
    names = {name for name, _ in RelativeAttention(WIDTH, HEADS).named_parameters()}
    assert names == {"query.weight", "value.weight", "u", "v"}


def test_the_switches_add_the_parameters_that_they_name_alone():
    plain = {*RelativeAttention(WIDTH, HEADS).state_dict()}
    for switch, more in (
        ("scale", set()),
        ("key_projection", {"key.weight"}),
        ("key_relative_bias", set()),
    ):
        assert {*RelativeAttention(WIDTH, HEADS, **{switch: True}).state_dict()} == plain | more


def test_u_and_v_are_of_each_head():
    module = RelativeAttention(WIDTH, HEADS)
    assert module.u.shape == module.v.shape == (HEADS, WIDTH // HEADS)
    assert module.u.any() and module.v.any()


def test_a_layer_has_the_parameters_of_the_paper():
    """Yan2019 section 6.1 counts 6,600 for its character encoder, with a linear layer of 930."""
    layer = EncoderLayer(RelativeAttention(30, 3), 30, 60)
    assert parameter_count(layer) == 6600 - 930


def test_layers_share_no_weights():
    module = TENER(4, heads=2, head_width=3, layers=2)
    first, second = (layer.attention.query.weight for layer in module.layers)
    assert not torch.equal(first, second)


# The encoder


def test_the_encoder_is_projection_and_layers_without_absolute_positions():
    module = randomised(TENER(4, heads=2, head_width=3, layers=2, scale=True))
    x, lengths = batch(LENGTHS, 4)
    expected = module.project(x)
    for layer in module.layers:
        assert layer.attention.scale == 3**-0.5
        assert layer.inner.out_features == 12
        attended = attend_loop(layer.attention, expected, lengths)
        h = layer.attention_norm(expected + attended)
        expected = layer.feedforward_norm(h + layer.outer(torch.relu(layer.inner(h))))
    assert module.output_width == 6
    torch.testing.assert_close(module(x, lengths), expected, **EXACT)


def test_the_only_token_of_a_sentence_attends_to_itself():
    module = randomised(RelativeAttention(WIDTH, HEADS))
    x, one = batch([1], WIDTH)
    x.requires_grad_()
    torch.testing.assert_close(module(x, one), module.value(x))
    module(x, one).sum().backward()
    assert x.grad.isfinite().all()


def test_dropout_is_active_in_training_only():
    module = randomised(RelativeAttention(WIDTH, HEADS, dropout=0.5))
    x, lengths = batch(LENGTHS, WIDTH)
    assert torch.equal(module(x, lengths), module(x, lengths))
    module.train()
    assert not torch.equal(module(x, lengths), module(x, lengths))
