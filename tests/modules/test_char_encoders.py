"""What all character encoders of Yan2019 share: their sizes, and words computed one by one."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from spacy_psa.modules.characters import CharAdaTrans, CharBiLSTM, CharCNN, CharTransformer
from tests.helpers.modules import EXACT, parameter_count, randomised, with_gradients
from tests.helpers.words import encode_words

ROWS = 9
WORDS = st.lists(st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=7), min_size=1, max_size=5)
TENER_LSTM = {"hidden": 50, "project": 30, "pool": "max"}
ATTENTION = {"heads": 3, "ffn_dim": 5, "project": 4, "attention_dropout": 0.0}
SMALL = {
    CharBiLSTM: {"width": 3, "hidden": 2, "project": 4, "pool": "max"},
    CharCNN: {"width": 3, "filters": 5, "project": 4},
    CharTransformer: {"width": 6, **ATTENTION},
    CharAdaTrans: {"width": 12, **ATTENTION},
}


def small(make, **options):
    return randomised(make(ROWS, **{**SMALL[make], **options}))


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
    assert parameter_count(module) - module.embed.weight.numel() == expected
    assert module.embed.weight.shape == (ROWS, 30)
    assert (
        encode_words(module.eval(), [[1, 2, 3], [4]]).shape == (2, module.output_width) == (2, 30)
    )


@pytest.mark.parametrize("make", SMALL)
@settings(max_examples=25)
@given(words=WORDS)
def test_words_of_a_batch_equal_words_computed_alone(make, words):
    module = small(make)
    expected = [module.project(F.relu(states_of(module, word)).amax(0)) for word in words]
    torch.testing.assert_close(encode_words(module, words), torch.stack(expected), **EXACT)


@pytest.mark.parametrize("make", SMALL)
def test_gradients_equal_those_of_words_computed_alone(make):
    module, words = small(make), [[1, 2, 3, 1, 2], [4], [2, 0]]
    alone = [module.project(F.relu(states_of(module, word)).amax(0)) for word in words]
    got, expected = (
        with_gradients(vectors, module.parameters())
        for vectors in (encode_words(module, words), torch.stack(alone))
    )
    torch.testing.assert_close(got, expected, **EXACT)


@pytest.mark.parametrize("make", SMALL)
def test_order_of_characters_matters(make):
    forward, backward = encode_words(small(make), [[1, 2, 3, 4], [4, 3, 2, 1]])
    assert not torch.allclose(forward, backward)


@pytest.mark.parametrize("make", SMALL)
def test_dropouts_fall_on_embeddings_and_word_vectors_in_training_only(make):
    words = [[1, 2], [3]]
    plain = encode_words(small(make), words)
    dry = small(make, dropout=1.0, output_dropout=1.0)
    assert torch.equal(encode_words(dry, words), plain)
    assert not encode_words(dry.train(), words).any()
    blank = small(make, dropout=1.0).train()
    assert not torch.allclose(encode_words(blank, words), plain)
    blank.embed.weight.data.fill_(7.0)
    zeros = small(make)
    zeros.embed.weight.data.zero_()
    torch.testing.assert_close(encode_words(blank, words), encode_words(zeros, words))
