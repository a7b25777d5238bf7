"""Position-aware attention and fusion against the papers' formulas, written as plain loops."""

import copy
import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_psa.kernels import available
from spacy_psa.modules import psa
from spacy_psa.modules.additive_attention import ACTIVATIONS, CHUNK_BYTES
from spacy_psa.modules.products import Distinct
from spacy_psa.modules.psa import ContextFusion, PositionAwareAttention
from tests.helpers.modules import randomised, with_gradients
from tests.helpers.ragged import batch, one_by_one

SWITCHES = ("use_psi", "use_mask", "use_token_bias", "use_gaussian")
VERSIONS = ("journal", "arxiv")
SIGMA = {"tanh": math.tanh, "relu": lambda z: max(z, 0.0), "sigmoid": lambda z: 1 / (1 + e(-z))}
e = math.exp


@pytest.fixture(params=["kernel", "torch"], autouse=True)
def path(request, monkeypatch):
    """Every test runs on the compiled kernel and on plain torch."""
    if request.param == "kernel" and not available():
        pytest.skip("numba does not work here")
    monkeypatch.setattr(psa, "available", lambda: request.param == "kernel")


def single(module, scale=0.7):
    """With random weights of the type that the kernels are for."""
    return randomised(module, scale=scale, dtype=torch.float32)


def tokens(lengths, width):
    return batch(lengths, width, dtype=torch.float32)


def off_diagonal(n):
    return [(i, j) for i in range(n) for j in range(n) if i != j]


# Algorithm 1 of Wei2020, one sentence, numbers and loops only


def dot(u, v):
    return sum(p * q for p, q in zip(u, v, strict=True))


def matvec(matrix, v):
    return [dot(row, v) for row in matrix]


def position_bias(p, x_i, i, j, k, version, on):
    if version == "journal":
        alpha = 1 / (1 + e(-p["mix"])) if "mix" in p else None
        gaussian, token = (alpha, 1 - alpha) if "mix" in p else (None, None)
    elif "mix" in p:
        total = sum(e(t) for t in p["mix"])
        _, token, gaussian = (e(t) / total for t in p["mix"])
    bias = 0.0
    if on["use_psi"] and on["use_gaussian"]:
        bias += gaussian * -((i - j) ** 2) / (2 * (k / 2) ** 2)
    if on["use_psi"] and on["use_token_bias"]:
        if version == "journal":
            r_c = p["distances"][min(abs(i - j), k)]
            bias += token * (dot(x_i, r_c) + dot(p["global_score"], r_c) + p["global_bias"])
        else:
            bias += token * dot(x_i, p["distances"][max(-k, min(k, i - j)) + k])
    if on["use_psi"] and on["use_mask"] and i == j:
        bias = -math.inf
    return bias


def attend_loop(p, x, k, version, on, sigma):
    attention, outputs = [], []
    for i, x_i in enumerate(x):
        scores = []
        for j, x_j in enumerate(x):
            a, c = matvec(p["query.weight"], x_i), matvec(p["key.weight"], x_j)
            hidden = [sigma(s + t + b) for s, t, b in zip(a, c, p["query.bias"], strict=True)]
            scores.append(dot(p["score"], hidden) + position_bias(p, x_i, i, j, k, version, on))
        weights = [e(f) for f in scores]
        total = sum(weights)
        weights = [w / total if total else 0.0 for w in weights]
        attention.append(weights)
        outputs.append([sum(w * x_j[d] for w, x_j in zip(weights, x, strict=True))
                        for d in range(len(x_i))])  # fmt: skip
    return attention, outputs


def fuse_loop(p, x, s):
    result = []
    for x_i, s_i in zip(x, s, strict=True):
        inner = [math.tanh(z + b) for z, b in zip(matvec(p["inner.weight"], s_i), p["inner.bias"])]
        context = [math.tanh(z) for z in matvec(p["outer.weight"], inner)]
        hidden = [
            math.tanh(u + v)
            for u, v in zip(
                matvec(p["gate_input.weight"], x_i), matvec(p["gate_context.weight"], context)
            )
        ]
        gate = [1 / (1 + e(-z)) for z in matvec(p["gate.weight"], hidden)]
        result.append([g * u + (1 - g) * v for g, u, v in zip(gate, x_i, context, strict=True)])
    return result


def numbers(module, prefix=""):
    state = module.state_dict()
    return {name.removeprefix(prefix): value.tolist() for name, value in state.items()}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("off", [c for n in range(5) for c in itertools.combinations(SWITCHES, n)])
def test_layer_equals_algorithm_1_for_every_switch(version, off):
    on = {name: name not in off for name in SWITCHES}
    layer = single(ContextFusion(3, window=2, version=version, **on))
    x, lengths = tokens([1, 5, 2], 3)
    result = layer(x, lengths)
    attention = layer.inspect(x, lengths).attention
    p = numbers(layer)
    inner = numbers(layer.attention)
    start = 0
    for b, n in enumerate(lengths.tolist()):
        rows = x[start : start + n].tolist()
        weights, s = attend_loop(inner, rows, 2, version, on, math.tanh)
        torch.testing.assert_close(attention[b, :n, :n], torch.tensor(weights), atol=1e-5, rtol=0)
        expected = torch.tensor(fuse_loop(p, rows, s))
        torch.testing.assert_close(result[start : start + n], expected, atol=1e-5, rtol=0)
        start += n


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("activation", SIGMA)
def test_attention_equals_double_loop_for_every_activation(version, activation):
    layer = single(PositionAwareAttention(4, window=3, version=version, activation=activation))
    x, lengths = tokens([6], 4)
    on = dict.fromkeys(SWITCHES, True)
    weights, s = attend_loop(numbers(layer), x.tolist(), 3, version, on, SIGMA[activation])
    torch.testing.assert_close(layer(x, lengths), torch.tensor(s), atol=1e-5, rtol=0)
    torch.testing.assert_close(layer.weights(x, lengths)[0], torch.tensor(weights))


def test_three_tokens_by_hand():
    """d = 1, f_ij = tanh((x_i + x_j) / 2) for x = 0, 1, 2.

    Row 0: tanh .5 = .46212, tanh 1 = .76159, so a = 1/(1+e^.29947) = .42569 on 1, .57431 on 2.
    Row 1: tanh .5 = .46212, tanh 1.5 = .90515, so .39102 on 0, .60898 on 2.
    Row 2: tanh 1 = .76159, tanh 1.5 = .90515, so .46417 on 0, .53583 on 1.
    """
    layer = PositionAwareAttention(1, use_token_bias=False, use_gaussian=False)
    with torch.no_grad():
        layer.query.weight.fill_(0.5)
        layer.key.weight.fill_(0.5)
        layer.score.fill_(1.0)
    s = layer(torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([3]))
    torch.testing.assert_close(
        s, torch.tensor([[1.57431], [1.21796], [0.53583]]), atol=2e-5, rtol=0
    )


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [0, 1, 5, 20, 39, 41, 45, 70, 90, 150, 290, 310, 650, 1e4])
def test_large_parts_with_a_small_sum_keep_their_attention(size, dtype, activation):
    """W1 x + b is ±size and W2 x is ∓size in two units, and in a third one only W1 x is large."""
    layer = single(PositionAwareAttention(3, use_psi=False, activation=activation)).to(dtype)
    with torch.no_grad():
        layer.query.weight.copy_(torch.eye(3))
        layer.query.bias.copy_(torch.tensor([size, -size, size]))
        layer.key.weight.copy_(torch.eye(3))
        layer.score.copy_(torch.tensor([2.0, -1.0, 0.5]))
    # Eighths, whose sums with the sizes are exact.
    x = torch.tensor([[0, 3, 5], [-9, 1, 4], [7, -2, -8], [12, 0, 3], [-4, 6, -1]], dtype=dtype) / 8
    constant = torch.tensor([-size, size, 0.0], dtype=dtype)
    hook = layer.key.register_forward_hook(lambda module, inputs, output: output + constant)
    found = with_gradients(layer(x.requires_grad_(), torch.tensor([3, 2])), layer_inputs(layer, x))
    hook.remove()

    exact = copy.deepcopy(layer).double()
    y = x.detach().double().requires_grad_()
    q, k = exact.query(y), exact.key(y) + constant.double()
    rows = []
    for of in (slice(0, 3), slice(3, 5)):
        hidden = ACTIVATIONS[activation](q[of, None] + k[None, of])
        rows.append(torch.softmax(hidden @ exact.score, 1) @ y[of])
    expected = with_gradients(torch.cat(rows), layer_inputs(exact, y))
    for ours, theirs in zip(found, expected, strict=True):
        tolerance = 2e-5 if dtype == torch.float32 else 1e-10
        torch.testing.assert_close(ours.double(), theirs, atol=tolerance, rtol=tolerance)


def layer_inputs(layer, x):
    return [x, layer.query.weight, layer.query.bias, layer.key.weight, layer.score]


def test_one_large_bias_against_opposite_keys():
    layer = PositionAwareAttention(2, use_psi=False)
    with torch.no_grad():
        layer.query.weight.zero_()
        layer.query.bias.copy_(torch.tensor([45.0, 0.0]))
        layer.key.weight.copy_(torch.tensor([[-1.0, 1.0], [0.0, 0.0]]))
        layer.score.copy_(torch.tensor([3.0, 0.0]))
        x = torch.tensor([[45.0, v] for v in (-2.0, -1.0, 0.0, 1.0, 2.0)])
        lengths = torch.tensor([5])
        torch.testing.assert_close(layer(x, lengths), layer.weights(x, lengths)[0] @ x)
        assert layer(x, lengths)[0, 1].item() == pytest.approx(1.5743, abs=1e-4)


# The position bias


@settings(max_examples=20)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5), version=st.sampled_from(VERSIONS)
)
def test_rows_sum_to_one_over_the_sentence_and_the_diagonal_is_zero(lengths, version):
    layer = single(PositionAwareAttention(4, window=3, version=version))
    attention = layer.weights(*tokens(lengths, 4))
    for b, n in enumerate(lengths):
        sums = torch.full((n,), float(n > 1))
        torch.testing.assert_close(attention[b, :n, :n].sum(1), sums)
        assert (attention[b, :n, :n].diagonal() == 0).all()
        assert (attention[b, n:] == 0).all() and (attention[b, :, n:] == 0).all()


def test_forward_is_the_weighted_sum_of_the_inputs_themselves():
    layer = single(PositionAwareAttention(4))
    x, lengths = tokens([7], 4)
    torch.testing.assert_close(layer(x, lengths), layer.weights(x, lengths)[0] @ x)


def test_gaussian_bias_enters_the_scores_with_weight_alpha():
    layer = PositionAwareAttention(2, use_token_bias=False)
    layer.score.data.zero_()
    log = layer.weights(*tokens([11], 2))[0].log()
    assert (log[0, 10] - log[0, 1]).item() == pytest.approx(0.5 * (-2.0 + 0.02), abs=1e-5)


def token_bias_only(version, window=3):
    layer = single(PositionAwareAttention(2, window=window, version=version))
    layer.gaussian = False
    layer.score.data.zero_()
    return layer


def test_journal_distances_are_unsigned_and_clipped():
    log = token_bias_only("journal").weights(*tokens([12], 2))[0].log().detach()
    for i, j in off_diagonal(12):
        mirrored = 2 * i - j
        if 0 <= mirrored < 12:
            assert log[i, j] == pytest.approx(log[i, mirrored].item(), abs=1e-5)
    torch.testing.assert_close(log[0, 3:], log[0, 3].expand(9))
    assert abs(log[0, 2] - log[0, 3]) > 1e-3


def test_arxiv_distances_are_signed_and_clipped():
    layer = token_bias_only("arxiv")
    x, lengths = tokens([9], 2)
    log = layer.weights(x, lengths)[0].log()
    assert all(abs(log[i, i - 1] - log[i, i + 1]) > 1e-3 for i in range(1, 8))
    torch.testing.assert_close(log[8, :6], log[8, 5].expand(6))  # i-j >= 3
    torch.testing.assert_close(log[0, 3:], log[0, 3].expand(6))  # i-j <= -3
    with torch.no_grad():  # the row of i-j = +1 speaks for j = i-1 alone
        layer.distances[3 + 1] += 1.0
    odds = layer.weights(x, lengths)[0].log() - log
    for i in range(1, 9):
        others = [odds[i, j].item() for j in range(9) if j not in (i, i - 1)]
        assert max(others) - min(others) < 1e-5
        assert abs(odds[i, i - 1] - others[0]) > 1e-3


@pytest.mark.parametrize("version", VERSIONS)
def test_weights_of_the_biases_start_neutral_and_learn(version):
    layer = PositionAwareAttention(4, version=version)
    gaussian, token = layer.shares()
    start = 0.5 if version == "journal" else 1 / 3
    assert gaussian.item() == pytest.approx(start) and token.item() == pytest.approx(start)
    x, lengths = tokens([6, 3], 4)
    layer(x, lengths).square().sum().backward()
    assert (layer.mix.grad != 0).all()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("extreme", [-200.0, 200.0])
def test_the_mask_is_not_scaled(version, extreme):
    layer = PositionAwareAttention(4, version=version)
    with torch.no_grad():
        layer.mix.view(-1)[0] = extreme  # α, or α1 of M: 0 or 1
    x, lengths = tokens([6, 1], 4)
    attention = layer.weights(x, lengths)
    assert (attention.diagonal(dim1=1, dim2=2) == 0).all()
    assert torch.isfinite(layer(x, lengths)).all() and torch.isfinite(attention).all()


# Ragged batches


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("lengths", [[1], [1, 1], [1, 4, 1]])
def test_one_token_sentences_are_finite_with_finite_gradients(version, lengths):
    layer = ContextFusion(4, version=version)
    x, lengths = tokens(lengths, 4)
    x.requires_grad_()
    s = layer.attention(x, lengths)
    assert (s[0] == 0).all()
    layer(x, lengths).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in [x, *layer.parameters()])


@settings(max_examples=20)
@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_a_sentence_does_not_depend_on_its_batch(lengths):
    layer = single(ContextFusion(4, window=3), scale=0.5)
    x, sizes = tokens(lengths, 4)
    alone = one_by_one(layer, x, sizes)
    torch.testing.assert_close(layer(x, sizes), alone, atol=1e-6, rtol=0)


def test_rows_worked_on_in_chunks_change_nothing(monkeypatch):
    layer = randomised(PositionAwareAttention(5, window=2, activation="relu"), scale=0.7)
    x, lengths = batch([13, 4], 5)
    x.requires_grad_()
    whole = layer(x, lengths), layer.weights(x, lengths)
    grads = torch.autograd.grad(whole[0].square().sum(), [x, *layer.parameters()])
    monkeypatch.setitem(CHUNK_BYTES, "cpu", 3 * 2 * 13 * 5 * 8)  # three rows
    chunked = layer(x, lengths), layer.weights(x, lengths)
    torch.testing.assert_close(chunked, whole)
    again = torch.autograd.grad(chunked[0].square().sum(), [x, *layer.parameters()])
    torch.testing.assert_close(again, grads)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_long_document_is_read_in_a_band(version):
    """n² scores of 30,000 tokens would take 3.6 GB; a token needs its surroundings only."""
    layer = single(PositionAwareAttention(2, window=4, version=version))
    layer.mix.data.zero_()
    x, lengths = tokens([30_000], 2)
    with torch.no_grad():
        s = layer(x, lengths)
        part = layer(x[14_800:15_200], torch.tensor([400]))
    torch.testing.assert_close(s[14_950:15_050], part[150:250], atol=1e-6, rtol=0)


@settings(max_examples=60)
@given(
    share=st.floats(1e-3, 1),
    spread=st.floats(0, 300),
    window=st.integers(1, 30),
    longest=st.integers(1, 10**6),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_reach_leaves_out_what_cannot_matter_and_nothing_else(
    share, spread, window, longest, dtype
):
    tolerance = math.log(1e-20 if dtype == torch.float64 else 1e-12)

    def outside(distance):
        """Log of all weight beyond, at most, next to the nearest neighbour's."""
        bias = share * (1 - distance**2) / (2 * (window / 2) ** 2)
        return bias + spread + math.log(longest)

    band = psa.reach(share, spread, window, longest, dtype)
    assert band == longest or outside(band) <= tolerance + 1e-6
    assert outside(band - 1) > tolerance - 1e-6
    assert band > 3 * window or band == longest  # what the shortcut for short batches relies on


@pytest.mark.parametrize(("share", "spread"), [(0.0, 1.0), (0.5, math.inf), (0.5, math.nan)])
def test_reach_is_everything_when_no_bound_holds(share, spread):
    assert psa.reach(share, spread, 10, 5000, torch.float32) == 5000


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_banded_equals_unbanded(activation, monkeypatch):
    layer = single(PositionAwareAttention(3, window=1, activation=activation), scale=0.3)
    layer.mix.data.fill_(3.0)
    x, lengths = tokens([300, 20], 3)
    x.requires_grad_()
    assert layer._band(layer._parts(Distinct(x), 300), 300) < 20
    banded = layer(x, lengths)
    grads = torch.autograd.grad(banded.square().sum(), [x, *layer.parameters()])
    monkeypatch.setattr(layer, "_band", lambda parts, longest: longest)
    full = layer(x, lengths)
    again = torch.autograd.grad(full.square().sum(), [x, *layer.parameters()])
    torch.testing.assert_close(banded, full, atol=1e-6, rtol=0)
    torch.testing.assert_close(grads, again, atol=2e-4, rtol=1e-5)


# The fusion layer


def test_gate_is_a_proper_fraction_and_can_be_inspected():
    layer = single(ContextFusion(4))
    x, lengths = tokens([5, 2], 4)
    attention, gate = layer.inspect(x, lengths)
    assert attention.shape == (2, 5, 5) and gate.shape == (7, 4)
    assert ((gate > 0) & (gate < 1)).all()
    torch.testing.assert_close(attention, layer.attention.weights(x, lengths))


@pytest.mark.parametrize(("logit", "identity"), [(100.0, True), (-100.0, False)])
def test_an_open_gate_gives_the_input_a_closed_one_the_context(logit, identity):
    layer = single(ContextFusion(4))
    layer.gate.register_forward_hook(lambda *_: torch.full((7, 4), logit))
    x, lengths = tokens([5, 2], 4)
    context = torch.tanh(layer.outer(torch.tanh(layer.inner(layer.attention(x, lengths)))))
    torch.testing.assert_close(layer(x, lengths), x if identity else context)


def test_dropout_is_on_the_attention_output_in_training_only():
    layer = single(ContextFusion(4, dropout=1.0))
    x, lengths = tokens([5], 4)
    kept = layer(x, lengths)
    layer.attention.register_forward_hook(lambda *_: torch.zeros(5, 4))
    without = layer(x, lengths)
    layer.attention._forward_hooks.clear()
    torch.testing.assert_close(layer.train()(x, lengths), without)
    assert not torch.allclose(kept, without)


# Parameters


def test_parameter_counts_of_the_papers():
    def count(**options):
        return sum(p.numel() for p in ContextFusion(d, window=r, **options).parameters())

    d, r = 6, 3
    # W1, W2, Wz1, Wz2, Wf1, Wf2, Wf3; w, b, bz; then v, R, b0 and α, or W3 and three weights
    assert count() == 7 * d**2 + 4 * d + (r + 1) * d + 2
    assert count(version="arxiv") == 7 * d**2 + 3 * d + (2 * r + 1) * d + 3
    plain = 7 * d**2 + 3 * d
    for version, mix, token in (("journal", 1, d + (r + 1) * d + 1), ("arxiv", 3, (2 * r + 1) * d)):
        assert count(version=version, use_psi=False) == plain
        assert count(version=version, use_token_bias=False, use_gaussian=False) == plain
        assert count(version=version, use_mask=False) == plain + mix + token
        assert count(version=version, use_gaussian=False) == plain + mix + token
        assert count(version=version, use_token_bias=False) == plain + mix


def test_attention_has_no_value_matrix():
    assert set(PositionAwareAttention(4).state_dict()) == {
        "query.weight", "query.bias", "key.weight", "score",
        "distances", "global_score", "global_bias", "mix",
    }  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_every_parameter_learns(version):
    """Except the two that cancel as the paper has them: b0, and R_0 under the mask."""
    layer = ContextFusion(4, window=3, version=version, dropout=0.0)
    x, lengths = tokens([7, 3], 4)
    layer(x, lengths).square().sum().backward()
    for name, parameter in layer.named_parameters():
        if name == "attention.global_bias":
            assert abs(parameter.grad) < 1e-5
        elif name == "attention.distances":
            masked = 3 if version == "arxiv" else 0
            used = [row for row in range(len(parameter)) if row != masked]
            assert (parameter.grad[used] != 0).all() and (parameter.grad[masked] == 0).all()
        else:
            assert (parameter.grad != 0).all(), name


def test_weights_start_glorot_and_biases_zero():
    d, r = 64, 10
    torch.manual_seed(0)
    for name, parameter in ContextFusion(d).named_parameters():
        fans = {"attention.score": d + 1, "attention.global_score": d + 1}
        fan = fans.get(name, d + r + 1 if "distances" in name else 2 * d)
        if name.endswith(("bias", "mix")):
            assert (parameter == 0).all(), name
        else:
            bound = math.sqrt(6 / fan)
            assert 0.85 * bound < parameter.abs().max() <= bound, name
