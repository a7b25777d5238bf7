"""The character n-gram CNN and the lookup of letters, computed word by word."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from spacy_psa.modules.char_cnn import CharNgramCNN
from spacy_psa.modules.lookup import Lookup

SIZE = 5
CHARACTER = st.tuples(st.integers(0, 8), st.integers(0, 4))


def small():
    torch.manual_seed(0)
    module = CharNgramCNN(rows=9, width=3, kernels=2, longest=3, size=SIZE).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module


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
        for kernel in convolve.weight:
            windows = [
                sum((kernel[:, k] * columns[t + k]).sum() for k in range(n))
                for t in range(SIZE - n + 1)
            ]
            values.append(torch.stack(windows).max())
    return torch.stack(values)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.lists(CHARACTER, min_size=1, max_size=SIZE), min_size=1, max_size=4))
def test_words_equal_plain_loops_over_their_windows(words):
    module = small()
    expected = torch.stack([by_hand(module, word) for word in words])
    torch.testing.assert_close(run(module, words), expected, rtol=0, atol=1e-10)


def test_padding_vector_is_trained_by_short_words_alone():
    module = small()
    run(module, [[(1, 1)] * SIZE]).sum().backward()
    assert not module.padding.grad.any()
    run(module, [[(1, 1)]]).sum().backward()
    assert module.padding.grad.any()


def test_sizes_of_the_paper_are_the_defaults():
    module = CharNgramCNN(rows=96)
    assert module.embed.weight.shape == (96, 25) and module.padding.shape == (25,)
    assert [tuple(c.weight.shape) for c in module.convolve] == [
        (20, 29, 1),
        (20, 29, 2),
        (20, 29, 3),
    ]
    assert module.size == 20 and run(module, [[(1, 2)]]).shape == (1, 60)
    assert 0.09 < module.embed.weight.std() < 0.11


def test_vectors_of_symbols_lie_side_by_side():
    torch.manual_seed(0)
    module = Lookup(rows=5, width=2, symbols=3)
    weight = module.embed.weight
    got = module(torch.tensor([[4, 0, 1], [2, 2, 2]]))
    assert torch.equal(got[0], torch.cat([weight[4], weight[0], weight[1]]))
    assert got.shape == (2, module.output_width) == (2, 6)


def test_dropout_of_a_lookup_is_for_training_only():
    module = Lookup(rows=5, width=2, dropout=1.0)
    rows = torch.tensor([[1], [2]])
    assert not module(rows).any()
    assert torch.equal(module.eval()(rows), module.embed.weight[[1, 2]])
