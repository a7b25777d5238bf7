"""The ragged LSTM against torch.nn.LSTM run on one sentence at a time."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from spacy_psa import kernels
from spacy_psa.modules import lstm
from spacy_psa.modules.lstm import BiLSTM
from tests.helpers.modules import EXACT, gradcheck, randomised, with_gradients
from tests.helpers.ragged import batch

LENGTHS = [[4, 1, 6, 1, 3], [5], [1], [1, 1, 1], [2, 2, 2], [1, 2, 3, 4]]
DRY = {"input_dropout": 0.0, "output_dropout": 0.0}


def double(width=3, hidden=2, seed=0, **options):
    return randomised(BiLSTM(width, hidden, **{**DRY, **options}), seed, scale=0.7)


def tokens(lengths, width=3, seed=1):
    x, lengths = batch(lengths, width, seed)
    return x.requires_grad_(), lengths


def sentence_by_sentence(module, x, lengths):
    states = []
    for sentence in x.split(lengths.tolist()):
        for layer in module.layers:
            sentence = layer(sentence)[0]
        states.append(sentence)
    return torch.cat(states)


def final_states(module, x, lengths):
    found = []
    for sentence in x.split(lengths.tolist()):
        _, (h, _) = module.layers[0](sentence)
        found.append(torch.cat([h[0], h[1]]))
    return torch.stack(found)


def gradients(output, module, x):
    return with_gradients(output, [x, *module.parameters()])[1:]


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("layers", [1, 2])
def test_states_and_gradients_equal_torch_lstm_on_each_sentence(lengths, layers):
    module = double(layers=layers)
    x, n = tokens(lengths)
    ours, theirs = module(x, n), sentence_by_sentence(module, x, n)
    torch.testing.assert_close(ours, theirs, **EXACT)
    torch.testing.assert_close(gradients(ours, module, x), gradients(theirs, module, x), **EXACT)


@pytest.mark.parametrize("lengths", [*LENGTHS, [11]], ids=str)
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_states_without_gradients_equal_torch_lstm_in_blocks(
    lengths, compiled, precision, monkeypatch
):
    """A sentence by itself is annotated in one compiled call for each block.

    Products of few rows are never in bfloat16.
    """
    monkeypatch.setattr(lstm, "BLOCK_ROWS", 4)
    if not compiled:
        monkeypatch.setattr(kernels, "available", lambda: False)
    module = double(layers=2, precision=precision)
    x, n = tokens(lengths)
    with torch.no_grad():
        ours, theirs = module(x, n), sentence_by_sentence(module, x, n)
    torch.testing.assert_close(ours, theirs, **EXACT)


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_final_states_and_gradients_equal_those_of_torch_lstm(lengths):
    module = double()
    x, n = tokens(lengths)
    ours, theirs = module.final(x, n), final_states(module, x, n)
    torch.testing.assert_close(ours, theirs, **EXACT)
    torch.testing.assert_close(gradients(ours, module, x), gradients(theirs, module, x), **EXACT)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 99))
def test_any_batch_equals_its_sentences(lengths, seed):
    module = double(seed=seed)
    x, n = tokens(lengths, seed=seed)
    torch.testing.assert_close(module(x, n), sentence_by_sentence(module, x, n), **EXACT)


def test_gradients_equal_finite_differences():
    module = double(width=2, layers=2)
    assert gradcheck(module, *tokens([2, 3, 1], width=2), fast_mode=False)


def test_a_gradient_is_right_where_only_some_states_are_used():
    module = double()
    x, n = tokens([3, 2])
    ours, theirs = module(x, n)[3], sentence_by_sentence(module, x, n)[3]
    got, expected = (torch.autograd.grad(y.sum(), x)[0] for y in (ours, theirs))
    torch.testing.assert_close(got, expected, **EXACT)
    assert not got[:3].any() and got[3:].all()


@given(st.permutations(range(4)))
@settings(max_examples=24)
def test_the_order_of_sentences_does_not_matter(order):
    module = double()
    x, n = tokens([3, 1, 5, 2])
    sentences, states = x.split(n.tolist()), module(x, n).split(n.tolist())
    shuffled = module(torch.cat([sentences[i] for i in order]), n[list(order)])
    torch.testing.assert_close(shuffled, torch.cat([states[i] for i in order]), **EXACT)


def test_a_sentence_does_not_feel_the_others():
    module = double(layers=2)
    x, n = tokens([4, 2, 5])
    spoilt = x.detach().clone()
    spoilt[4:6] = math.nan
    for run in (module, module.final):
        healthy, ill = run(x, n), run(spoilt, n)
        keep = torch.ones(len(healthy), dtype=torch.bool)
        keep[slice(4, 6) if run is module else 1] = False
        torch.testing.assert_close(ill[keep], healthy[keep], **EXACT)
        assert ill[~keep].isnan().all()


def test_inputs_need_not_be_contiguous():
    module = double()
    x, n = tokens([3, 2])
    columns = x.detach().t().contiguous().t().requires_grad_()
    assert not columns.is_contiguous()
    got, expected = (gradients(module(each, n), module, each) for each in (columns, x))
    torch.testing.assert_close(got, expected, **EXACT)


def test_single_precision_is_kept():
    module = BiLSTM(3, 2)
    assert module(torch.ones(3, 3), torch.tensor([1, 2])).dtype == torch.float32


def test_dropout_is_off_in_evaluation():
    module = double(input_dropout=0.9, output_dropout=0.9)
    x, n = tokens([3, 4])
    torch.testing.assert_close(module(x, n), sentence_by_sentence(module, x, n), **EXACT)


def test_output_dropout_drops_and_scales_states_in_training():
    module = double(hidden=20, output_dropout=0.5)
    x, n = tokens([10, 15])
    expected = module(x, n)
    dropped = module.train()(x, n)
    kept = dropped != 0
    assert 0.4 < kept.double().mean() < 0.6
    torch.testing.assert_close(dropped[kept], 2 * expected[kept], **EXACT)


def test_input_dropout_falls_on_the_input_in_training():
    module = double(input_dropout=1.0)
    x, n = tokens([3, 4])
    torch.testing.assert_close(module.train()(x, n), module(torch.zeros_like(x), n), **EXACT)
    assert not torch.equal(module(x, n), module.eval()(x, n))


def test_output_dropout_follows_every_layer():
    module = double(layers=3, output_dropout=0.5)
    seen = []
    module.output_dropout.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].shape))
    x, n = tokens([3, 4])
    module.train()(x, n)
    assert seen == [(7, 4)] * 3


def test_every_gate_starts_glorot_and_biases_zero():
    torch.manual_seed(0)
    module = BiLSTM(40, 30, layers=2)
    for name, parameter in module.named_parameters():
        if "bias" in name:
            assert not parameter.any(), name
            continue
        bound = math.sqrt(6 / (30 + parameter.shape[1]))
        for gate in parameter.detach().chunk(4):
            assert 0.97 * bound < gate.abs().max() <= bound, name
            assert gate.std() == pytest.approx(bound / math.sqrt(3), rel=0.1), name


def test_parameters_are_those_of_torch_lstm():
    torch.manual_seed(0)
    ours, theirs = BiLSTM(3, 2).layers[0], nn.LSTM(3, 2, bidirectional=True)
    assert {n: p.shape for n, p in ours.named_parameters()} == {
        n: p.shape for n, p in theirs.named_parameters()
    }
    assert BiLSTM(3, 2, layers=2).output_width == 4


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("method", ["forward", "final"])
def test_a_gpu_gives_what_the_cpu_gives(method):
    module = double(layers=2 if method == "forward" else 1)
    x, n = tokens([4, 1, 6])
    expected = getattr(module, method)(x, n)
    got = getattr(module.cuda(), method)(x.cuda(), n).cpu()
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-8)
