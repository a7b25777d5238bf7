"""The self-attention of Li2019 section 4 against a double loop over tokens."""

import math

import pytest
import torch
from torch import nn

from spacy_psa.errors import InputError
from spacy_psa.modules.chain_potentials import Emission
from spacy_psa.modules.self_attentive import SelfAttentiveBiLSTM
from tests.helpers.modules import EXACT, randomised, with_gradients
from tests.helpers.ragged import batch

WIDTH, HIDDEN, HEADS = 3, 6, 4
DRY = {"input_dropout": 0.0, "output_dropout": 0.0}


def double(seed=0, **options):
    module = SelfAttentiveBiLSTM(WIDTH, HIDDEN, heads=HEADS, **{**DRY, **options})
    return randomised(module, seed, scale=0.6)


def tokens(lengths, seed=1):
    x, lengths = batch(lengths, WIDTH, seed)
    return x.requires_grad_(), lengths


def by_loops(module, x, lengths):
    """The output, and the weights of each sentence as (heads, n, n)."""
    h = module.lstm(x, lengths)
    d_c = 2 * HIDDEN // HEADS
    rows, weights = [], []
    for sentence in h.split(lengths.tolist()):
        alpha = []
        for token in sentence:
            row = [token]
            for i in range(HEADS):
                part = slice(i * d_c, (i + 1) * d_c)
                w_q, w_k, w_v = (p.weight[part] for p in (module.query, module.key, module.value))
                scores = [(w_q @ token) @ (w_k @ other) / math.sqrt(d_c) for other in sentence]
                alpha.append(torch.softmax(torch.stack(scores), 0))
                row.append(sum(a * (w_v @ other) for a, other in zip(alpha[-1], sentence)))
            rows.append(torch.cat(row))
        weights.append(torch.stack(alpha).unflatten(0, (-1, HEADS)).transpose(0, 1))
    return torch.stack(rows), weights


@pytest.mark.parametrize("lengths", [[4, 1, 6, 3], [5], [1], [2, 2]], ids=str)
def test_output_and_gradients_equal_a_double_loop(lengths):
    module = double()
    x, n = tokens(lengths)
    inputs = [x, *module.parameters()]
    ours = with_gradients(module(x, n), inputs)
    theirs = with_gradients(by_loops(module, x, n)[0], inputs)
    torch.testing.assert_close(ours, theirs, **EXACT)


def test_weights_equal_a_double_loop():
    module = double()
    x, n = tokens([4, 1, 3])
    (layer,) = module.inspect(x, n)
    assert layer.attention.shape == (3, HEADS, 4, 4)
    for seen, expected, size in zip(layer.attention, by_loops(module, x, n)[1], n):
        torch.testing.assert_close(seen[:, :size, :size], expected, **EXACT)
        assert not seen[:, :, size:].any()


def test_every_token_sees_both_sides_though_the_directions_are_apart():
    module = double()
    x, n = tokens([5])
    for context in module(x, n)[:, 2 * HIDDEN :]:
        (gradient,) = torch.autograd.grad(context.sum(), x, retain_graph=True)
        assert gradient.abs().sum(1).all()


def test_in_the_paper_setting_the_classifier_sees_400_features_of_5_heads_of_40():
    module = SelfAttentiveBiLSTM(364)
    assert module.output_width == 400
    assert list(module.blocks) == ["H", "C1", "C2", "C3", "C4", "C5"]
    assert [b.stop - b.start for b in module.blocks.values()] == [200, 40, 40, 40, 40, 40]
    assert [layer.input_size for layer in module.lstm.layers] == [364, 100]
    assert {tuple(p.weight.shape) for p in (module.query, module.key, module.value)} == {(200, 200)}


def test_each_heads_matrices_start_glorot():
    bound = math.sqrt(6 / (200 + 40))
    for head in SelfAttentiveBiLSTM(10).query.weight.detach().chunk(5):
        assert 0.97 * bound < head.abs().max() <= bound


@pytest.mark.parametrize("silent", ["H", "C2", "H C1 C4", "C1 C2 C3 C4", ""])
def test_zeroing_blocks_takes_their_terms_out_of_the_logits(silent):
    silent = silent.split()
    module, head = double(), Emission(4 * HIDDEN, 5).double()
    nn.init.normal_(head.emission.bias)
    x, n = tokens([4, 2])
    full = module(x, n)
    module.zeroed = frozenset(silent)
    logits = head.emission.bias + sum(
        full[:, block] @ head.emission.weight[:, block].T
        for name, block in module.blocks.items()
        if name not in silent
    )
    torch.testing.assert_close(head(module(x, n), n), torch.log_softmax(logits, 1), **EXACT)


def test_what_is_zeroed_is_no_part_of_the_weights():
    module, other = double(), double(seed=1)
    module.zeroed = frozenset({"H"})
    other.load_state_dict(module.state_dict())
    assert other.zeroed == frozenset()


def test_dropout_falls_on_the_lstm_alone_and_is_off_in_evaluation():
    torch.manual_seed(0)
    module = double(input_dropout=0.5, output_dropout=0.5)
    x, n = tokens([20])
    plain = module(x, n)
    torch.testing.assert_close(plain, by_loops(module, x, n)[0], **EXACT)
    dropped = module.train()(x, n)
    states, context = dropped[:, : 2 * HIDDEN], dropped[:, 2 * HIDDEN :]
    assert 0.35 < (states == 0).double().mean() < 0.65
    assert (context != 0).all()


@pytest.mark.parametrize("heads", [0, 5, 24])
def test_heads_that_do_not_divide_the_states_are_refused(heads):
    advice = r"it must divide 2 \* hidden, 12" if heads else "it must be 1 or more"
    message = f"heads is {heads}: {advice}"
    with pytest.raises(InputError, match=message):
        SelfAttentiveBiLSTM(WIDTH, HIDDEN, heads=heads)
