"""Stacked BiLSTMs: directions apart (Li2019 section 3.2) and crossed (6.2)."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.self_attentive import SelfAttentiveBiLSTM
from tests.helpers.modules import EXACT, randomised, with_gradients
from tests.helpers.ragged import batch

WIDTH, HIDDEN = 3, 2
LENGTHS = [4, 1, 6, 3]
DRY = {"input_dropout": 0.0, "output_dropout": 0.0}


def double(separate, layers=2, seed=0):
    return randomised(BiLSTM(WIDTH, HIDDEN, layers, separate, **DRY), seed, scale=0.7)


def tokens(lengths, seed=1):
    x, lengths = batch(lengths, WIDTH, seed)
    return x.requires_grad_(), lengths


def read(layer, suffix, sentence):
    """One direction over one sentence, step by step."""
    w_ih, w_hh, b_ih, b_hh = (
        getattr(layer, f"{name}_l0{suffix}")
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    h = c = sentence.new_zeros(HIDDEN)
    states = []
    for x in sentence.flip(0) if suffix else sentence:
        i, f, g, o = (w_ih @ x + b_ih + w_hh @ h + b_hh).chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        states.append(h)
    return torch.stack(states[::-1] if suffix else states)


def step_by_step(module, x, lengths):
    """H of Li2019 section 3.2, or of 6.2 where the module is not separate."""
    found = []
    for sentence in x.split(lengths.tolist()):
        left = right = sentence
        for layer in module.layers:
            if not module.separate and layer is not module.layers[0]:
                left = right = torch.cat([left, right], 1)
            left, right = read(layer, "", left), read(layer, "_reverse", right)
        found.append(torch.cat([left, right], 1))
    return torch.cat(found)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("separate", [True, False], ids=["separate", "cross"])
def test_states_and_gradients_equal_the_formulas_step_by_step(separate, layers):
    module = double(separate, layers)
    x, lengths = tokens(LENGTHS)
    inputs = [x, *module.parameters()]
    ours = with_gradients(module(x, lengths), inputs)
    theirs = with_gradients(step_by_step(module, x, lengths), inputs)
    torch.testing.assert_close(ours, theirs, **EXACT)


@settings(max_examples=15)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.booleans(), st.integers(0, 99))
def test_any_batch_equals_the_formulas(lengths, separate, seed):
    module = double(separate, seed=seed)
    x, n = tokens(lengths, seed)
    expected = step_by_step(module, x, n)
    torch.testing.assert_close(module(x, n), expected, **EXACT)


def reach(module, half):
    """Which tokens (column) each token's (row) forward or backward state depends on."""
    n = 5
    x, lengths = tokens([n])
    states = module(x, lengths).split(HIDDEN, 1)[half]
    rows = [torch.autograd.grad(states[i].sum(), x, retain_graph=True)[0] for i in range(n)]
    return torch.stack(rows).abs().sum(2) > 0


def test_separate_directions_never_meet():
    module = double(separate=True)
    past = torch.ones(5, 5, dtype=torch.bool).tril()
    assert torch.equal(reach(module, 0), past)
    assert torch.equal(reach(module, 1), past.T)


def test_crossed_directions_see_the_whole_sentence():
    module = double(separate=False)
    assert reach(module, 0).all() and reach(module, 1).all()


def test_a_separate_direction_has_no_weights_for_the_other():
    for separate, width in ((True, HIDDEN), (False, 2 * HIDDEN)):
        below, above = double(separate).layers
        assert below.weight_ih_l0.shape == (4 * HIDDEN, WIDTH)
        assert above.weight_ih_l0.shape == (4 * HIDDEN, width)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_what_the_cpu_gives():
    module = double(separate=True)
    x, n = tokens(LENGTHS)
    expected = module(x, n)
    got = module.cuda()(x.cuda(), n).cpu()
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-8)


# The XOR of Li2019 section 6.1: "and" is I in the first two phrases and O in the others.

PHRASES = {"Key and Peele": "BIE", "You and I": "BIE", "Key and I": "OOO", "You and Peele": "OOO"}
ENCODERS = {
    "plain": lambda d: BiLSTM(d, d, layers=2, separate=True, **DRY),
    "cross": lambda d: BiLSTM(d, d, layers=2, **DRY),
    "self_attentive": lambda d: SelfAttentiveBiLSTM(d, d, heads=4, **DRY),
}


def ands_right(name, seed, width=16, steps=150):
    """How many of the four "and" an encoder under a softmax labels right, once trained."""
    torch.manual_seed(seed)
    words = [word for phrase in PHRASES for word in phrase.split()]
    x = torch.tensor([sorted(set(words)).index(word) for word in words])
    tags = torch.tensor(["OBIE".index(tag) for tags in PHRASES.values() for tag in tags])
    lengths = torch.tensor([3] * 4)
    encoder, embed = ENCODERS[name](width), nn.Embedding(5, width)
    head = nn.Linear(encoder.output_width, 4)
    model = nn.ModuleList([encoder, embed, head])
    optimizer = torch.optim.NAdam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        scores = head(encoder(embed(x), lengths))
        loss = nn.functional.cross_entropy(scores, tags)
        if loss < 0.01:
            break
        loss.backward()
        optimizer.step()
    right = (scores.argmax(1) == tags).view(4, 3)
    assert right[:, [0, 2]].all(), "the words beside it are easy for all"
    return int(right[:, 1].sum())


@pytest.mark.parametrize("seed", range(5))
def test_a_plain_stack_cannot_label_all_four(seed):
    assert ands_right("plain", seed) <= 3


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["cross", "self_attentive"])
def test_cross_and_attention_label_all_four(name, seed):
    assert ands_right(name, seed) == 4
