"""Words from their characters by convolution, computed word by word."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_psa.errors import InputError
from spacy_psa.modules.characters import CharCNN, CharNgramCNN
from tests.helpers.modules import EXACT, randomised
from tests.helpers.words import encode_words

SIZE = 5
CHARACTER = st.tuples(st.integers(0, 8), st.integers(0, 4))


def small():
    module = CharNgramCNN(num_embeddings=9, width=3, filters=2, max_ngram=3, max_characters=SIZE)
    return randomised(module, scale=1.0)


def run(module, words):
    rows, kinds = zip(*(character for word in words for character in word), strict=True)
    lengths = torch.tensor([len(word) for word in words])
    return module(torch.tensor(rows), torch.tensor(kinds), lengths)


def by_hand(module, word):
    """Every window of every width of one padded word, in plain loops."""
    columns = []
    for row, kind in word:
        features = [float(kind == k) for k in (1, 2, 3, 4)]
        columns.append(torch.cat([module.embed.weight[row], torch.tensor(features)]))
    padding = torch.cat([module.padding, torch.zeros(4)])
    columns += [padding] * (SIZE - len(word))
    values = []
    for n, convolve in enumerate(module.convolve, 1):
        for filter in convolve.weight:
            windows = [
                sum((filter[:, k] * columns[t + k]).sum() for k in range(n))
                for t in range(SIZE - n + 1)
            ]
            values.append(torch.stack(windows).max())
    return torch.stack(values)


@settings(max_examples=25)
@given(st.lists(st.lists(CHARACTER, min_size=1, max_size=SIZE), min_size=1, max_size=4))
def test_words_equal_plain_loops_over_their_windows(words):
    module = small()
    expected = torch.stack([by_hand(module, word) for word in words])
    torch.testing.assert_close(run(module, words), expected, **EXACT)


def test_padding_vector_is_trained_by_short_words_alone():
    module = small()
    run(module, [[(1, 1)] * SIZE]).sum().backward()
    assert not module.padding.grad.any()
    run(module, [[(1, 1)]]).sum().backward()
    assert module.padding.grad.any()


def test_sizes_of_the_paper_are_the_defaults():
    module = CharNgramCNN(num_embeddings=96)
    assert module.embed.weight.shape == (96, 25) and module.padding.shape == (25,)
    assert [tuple(c.weight.shape) for c in module.convolve] == [
        (20, 29, 1),
        (20, 29, 2),
        (20, 29, 3),
    ]
    assert module.max_characters == 20 and run(module, [[(1, 2)]]).shape == (1, 60)
    assert 0.09 < module.embed.weight.std() < 0.11


def test_a_longest_ngram_beyond_the_words_is_refused():
    with pytest.raises(InputError, match="max_ngram is 6: it must be from 1 to max_characters, 5"):
        CharNgramCNN(9, max_ngram=6, max_characters=5)


def test_two_words_of_a_line_never_share_a_filter():
    module = randomised(CharCNN(9, width=3, filters=5, kernel_size=5, project=4))
    a, b = [1, 2], [3, 4]
    alone = torch.cat([encode_words(module, [a]), encode_words(module, [b])])
    torch.testing.assert_close(encode_words(module, [a, b]), alone)


@pytest.mark.parametrize("kernel_size", [4, 0, -1])
def test_filters_see_an_odd_number_of_characters(kernel_size):
    with pytest.raises(InputError, match=f"kernel_size is {kernel_size}: it must be"):
        CharCNN(9, kernel_size=kernel_size)
