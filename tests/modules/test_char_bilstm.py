"""Words from their characters by an LSTM."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_psa.modules.characters import CharBiLSTM
from tests.helpers.modules import EXACT, randomised, with_gradients
from tests.helpers.words import encode_words


def encoder(**options):
    module = CharBiLSTM(num_embeddings=9, width=3, hidden=2, **options)
    return randomised(module, scale=1.0)


def word_by_word(module, words):
    """The states of torch's own LSTM after a word's last and first character."""
    vectors = []
    for word in words:
        states, _ = module.lstm.layers[0](module.embed(torch.tensor(word)))
        vectors.append(torch.cat([states[-1, :2], states[0, 2:]]))
    return torch.stack(vectors)


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 8), min_size=1, max_size=6), min_size=1, max_size=5))
def test_words_of_a_batch_equal_words_read_alone(words):
    module = encoder()
    got, expected = encode_words(module, words), word_by_word(module, words)
    torch.testing.assert_close(got, expected, **EXACT)
    assert got.shape == (len(words), module.output_width)


def test_gradients_equal_those_of_words_read_alone():
    module, words = encoder(), [[1, 2, 3], [4], [2, 0]]
    got, expected = (
        with_gradients(vectors, module.parameters())
        for vectors in (encode_words(module, words), word_by_word(module, words))
    )
    torch.testing.assert_close(got, expected, **EXACT)


def test_dropout_falls_on_the_embeddings_in_training_only():
    module, words = encoder(dropout=1.0), [[1, 2], [3]]
    assert torch.equal(encode_words(module, words), encode_words(encoder(), words))
    blank = module.lstm.final(torch.zeros(3, 3).double(), torch.tensor([2, 1]))
    torch.testing.assert_close(encode_words(module.train(), words), blank)


def test_the_final_state_is_the_default_and_not_the_largest():
    final, largest = encoder(), encoder(pool="max")
    words = [[1, 2, 3], [4]]
    assert CharBiLSTM(9).pool == "final"
    assert not torch.allclose(encode_words(final, words), encode_words(largest, words))
    projected = encoder(project=5)
    x = projected.embed(torch.tensor([1, 2, 3, 4]))
    expected = projected.project(projected.lstm.final(x, torch.tensor([3, 1])))
    torch.testing.assert_close(encode_words(projected, words), expected)


def test_without_a_projection_the_lstm_has_the_only_weights():
    names = [name for name, _ in CharBiLSTM(9).named_parameters()]
    assert names[0] == "embed.weight"
    assert all(name.startswith("lstm.layers.0.") for name in names[1:]) and len(names) == 9


def test_character_embeddings_start_in_the_range_of_the_paper():
    torch.manual_seed(0)
    weights = CharBiLSTM(num_embeddings=200, width=30).embed.weight.detach()
    bound = (3 / 30) ** 0.5
    assert 0.97 * bound < weights.abs().max() <= bound
    assert weights.std() == pytest.approx(bound / 3**0.5, rel=0.05)


def test_the_sizes_of_the_paper_are_the_defaults():
    module = CharBiLSTM(num_embeddings=5)
    assert module.embed.weight.shape == (5, 30)
    assert module.output_width == 200
    assert encode_words(module, [[1, 2], [3]]).shape == (2, 200)


def test_annotation_gives_the_same_where_characters_are_many():
    module = encoder().eval()
    words = [[1, 2, 3], [4], [2, 0], [5, 6, 7, 8], [1, 1, 1]]
    assert sum(map(len, words)) >= module.embed.num_embeddings
    with torch.no_grad():
        got, expected = encode_words(module, words), word_by_word(module, words)
    torch.testing.assert_close(got, expected, **EXACT)
