"""TENER's character encoders: their sizes, and their words computed one by one."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from spacy_psa.modules.char_attention import CharAdaTrans, CharTransformer
from spacy_psa.modules.char_bilstm import CharBiLSTM
from spacy_psa.modules.char_cnn import CharCNN

ROWS = 9
WORDS = st.lists(st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=7), min_size=1, max_size=5)
TENER_LSTM = {"hidden": 50, "project": 30, "pool": "max"}
ATTENTION = {"heads": 3, "inner": 5, "project": 4, "attention_dropout": 0.0}
SMALL = {
    CharBiLSTM: {"width": 3, "hidden": 2, "project": 4, "pool": "max"},
    CharCNN: {"width": 3, "kernels": 5, "project": 4},
    CharTransformer: {"width": 6, **ATTENTION},
    CharAdaTrans: {"width": 12, **ATTENTION},
}


def small(make, **options):
    torch.manual_seed(0)
    module = make(ROWS, **{**SMALL[make], **options}).double().eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


def run(module, words):
    characters = [character for word in words for character in word]
    return module(torch.tensor(characters), torch.tensor([len(word) for word in words]))


def states_of(module, word):
    """What each character of one word becomes, before the maximum over them."""
    x = module.embed(torch.tensor(word))
    if isinstance(module, CharBiLSTM):
        return module.lstm.layers[0](x)[0]
    if isinstance(module, CharCNN):
        zero = torch.zeros(1, x.shape[1], dtype=x.dtype)
        padded = torch.cat([zero, x, zero])
        weight, bias = module.convolve.weight, module.convolve.bias
        return torch.stack(
            [(weight * padded[t : t + 3].t()).sum((1, 2)) + bias for t in range(len(word))]
        )
    if isinstance(module, CharAdaTrans):
        return module.layer(x, torch.tensor([len(word)]))
    places = torch.arange(len(word)).double()[:, None]
    angles = places / 10000 ** (torch.arange(0, 6, 2).double() / 6)
    sines = torch.stack([angles.sin(), angles.cos()], 2).flatten(1)
    return module.layer(x + sines, torch.tensor([len(word)]))


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (CharBiLSTM(ROWS, **TENER_LSTM), 35_830),
        (CharCNN(ROWS), 3_660),
        (CharTransformer(ROWS), 8_460),
        (CharAdaTrans(ROWS), 6_600),
    ],
    ids=lambda value: type(value).__name__,
)
def test_parameters_are_as_many_as_the_paper_counts(module, expected):
    assert sum(p.numel() for p in module.parameters()) - module.embed.weight.numel() == expected
    assert module.embed.weight.shape == (ROWS, 30)
    assert run(module.eval(), [[1, 2, 3], [4]]).shape == (2, module.output_width) == (2, 30)


@pytest.mark.parametrize("make", SMALL)
@settings(deadline=None, max_examples=25)
@given(words=WORDS)
def test_words_of_a_batch_equal_words_computed_alone(make, words):
    module = small(make)
    expected = [module.project(F.relu(states_of(module, word)).amax(0)) for word in words]
    torch.testing.assert_close(run(module, words), torch.stack(expected), rtol=0, atol=1e-10)


@pytest.mark.parametrize("make", SMALL)
def test_gradients_equal_those_of_words_computed_alone(make):
    module, words = small(make), [[1, 2, 3, 1, 2], [4], [2, 0]]
    parameters = list(module.parameters())
    alone = [module.project(F.relu(states_of(module, word)).amax(0)) for word in words]
    weights = torch.randn(3, 4, dtype=torch.float64)
    got, expected = (
        torch.autograd.grad((vectors * weights).sum(), parameters)
        for vectors in (run(module, words), torch.stack(alone))
    )
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("make", SMALL)
def test_order_of_characters_matters(make):
    forward, backward = run(small(make), [[1, 2, 3, 4], [4, 3, 2, 1]])
    assert not torch.allclose(forward, backward)


@pytest.mark.parametrize("make", SMALL)
def test_dropouts_fall_on_embeddings_and_word_vectors_in_training_only(make):
    words = [[1, 2], [3]]
    plain = run(small(make), words)
    dry = small(make, dropout=1.0, output_dropout=1.0)
    assert torch.equal(run(dry, words), plain)
    assert not run(dry.train(), words).any()
    blank = small(make, dropout=1.0).train()
    assert not torch.allclose(run(blank, words), plain)
    blank.embed.weight.data.fill_(7.0)
    zeros = small(make)
    zeros.embed.weight.data.zero_()
    torch.testing.assert_close(run(blank, words), run(zeros, words))


def test_two_words_of_a_line_never_share_a_kernel():
    module = small(CharCNN, kernel_width=5)
    a, b = [1, 2], [3, 4]
    both, alone = run(module, [a, b]), torch.cat([run(module, [a]), run(module, [b])])
    torch.testing.assert_close(both, alone)


def test_transformer_knows_places_in_the_word_and_not_in_the_batch():
    module = small(CharTransformer)
    twice = run(module, [[1, 2], [1, 2]])
    torch.testing.assert_close(twice[0], twice[1])
    assert not torch.allclose(run(module, [[1, 2]]), run(module, [[2, 1]]))


def test_pools_of_the_lstm_differ_and_the_final_one_is_the_default():
    final, largest = small(CharBiLSTM, pool="final"), small(CharBiLSTM, pool="max")
    words = [[1, 2, 3], [4]]
    assert not torch.allclose(run(final, words), run(largest, words))
    x = final.embed(torch.tensor([1, 2, 3, 4]))
    expected = final.project(final.lstm.final(x, torch.tensor([3, 1])))
    torch.testing.assert_close(run(final, words), expected)
    assert CharBiLSTM(ROWS).pool == "final"


def test_lstm_without_projection_keeps_its_parameters():
    names = [name for name, _ in CharBiLSTM(ROWS).named_parameters()]
    assert names[0] == "embed.weight"
    assert all(name.startswith("lstm.layers.0.") for name in names[1:]) and len(names) == 9
