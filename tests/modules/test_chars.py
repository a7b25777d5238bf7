"""Words from characters, and the table of trained word vectors."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from spacy_psa.modules.char_bilstm import CharBiLSTM
from spacy_psa.modules.word_table import WordTable


def encoder(**options):
    torch.manual_seed(0)
    module = CharBiLSTM(rows=9, width=3, hidden=2, **options).double().eval()
    for parameter in module.lstm.parameters():
        nn.init.normal_(parameter)
    return module


def word_by_word(module, words):
    """The states of torch's own LSTM after a word's last and first character."""
    vectors = []
    for word in words:
        states, _ = module.lstm.layers[0](module.embed(torch.tensor(word)))
        vectors.append(torch.cat([states[-1, :2], states[0, 2:]]))
    return torch.stack(vectors)


def run(module, words):
    characters = [character for word in words for character in word]
    return module(torch.tensor(characters), torch.tensor([len(word) for word in words]))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.integers(0, 8), min_size=1, max_size=6), min_size=1, max_size=5))
def test_words_of_a_batch_equal_words_read_alone(words):
    module = encoder()
    got, expected = run(module, words), word_by_word(module, words)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-10)
    assert got.shape == (len(words), module.output_width)


def test_gradients_equal_those_of_words_read_alone():
    module, words = encoder(), [[1, 2, 3], [4], [2, 0]]
    parameters = list(module.parameters())
    weights = torch.randn(3, 4, dtype=torch.float64)
    got, expected = (
        torch.autograd.grad((vectors * weights).sum(), parameters)
        for vectors in (run(module, words), word_by_word(module, words))
    )
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_dropout_falls_on_the_embeddings_in_training_only():
    module, words = encoder(dropout=1.0), [[1, 2], [3]]
    assert torch.equal(run(module, words), run(encoder(), words))
    blank = module.lstm.final(torch.zeros(3, 3).double(), torch.tensor([2, 1]))
    torch.testing.assert_close(run(module.train(), words), blank)


def test_character_embeddings_start_in_the_range_of_the_paper():
    torch.manual_seed(0)
    weights = CharBiLSTM(rows=200, width=30).embed.weight.detach()
    bound = (3 / 30) ** 0.5
    assert 0.97 * bound < weights.abs().max() <= bound
    assert weights.std() == pytest.approx(bound / 3**0.5, rel=0.05)


def test_the_sizes_of_the_paper_are_the_defaults():
    module = CharBiLSTM(rows=5)
    assert module.embed.weight.shape == (5, 30)
    assert module.output_width == 200
    assert module(torch.tensor([1, 2, 3]), torch.tensor([2, 1])).shape == (2, 200)


def trained(table, rows, steps=5):
    optimizer = torch.optim.SGD(table.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        ((table(torch.tensor(rows), torch.ones(len(rows), 4)) - 3) ** 2).sum().backward()
        optimizer.step()
    return table.table.weight.detach()


def test_a_word_table_adds_to_the_pretrained_vectors():
    table = WordTable(6, 4)
    pretrained = torch.randn(3, 4)
    assert torch.equal(table(torch.tensor([5, 0, 2]), pretrained), pretrained)
    nn.init.normal_(table.table.weight)
    expected = table.table.weight[[5, 0, 2]] + pretrained
    assert torch.equal(table(torch.tensor([5, 0, 2]), pretrained), expected)


def test_rows_that_training_never_meets_stay_zero():
    weights = trained(WordTable(6, 4), [1, 2, 2, 5])
    assert not weights[[0, 3, 4]].any()
    assert (weights[[1, 2, 5]] != 0).all()


def test_the_unknown_words_row_learns_where_unknown_words_occur():
    assert trained(WordTable(6, 4), [0, 2])[0].all()
