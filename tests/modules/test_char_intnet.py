"""IntNet against a loop over the characters of one word at a time."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_psa.errors import InputError
from spacy_psa.modules.characters import CharIntNet
from tests.helpers.modules import EXACT, parameter_count, randomised, with_gradients
from tests.helpers.words import encode_words

ROWS = 9
WORDS = st.lists(st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=7), min_size=1, max_size=5)


def small(**options):
    sizes = {"width": 3, "filters": 2, "growth": 4, "blocks": 2, "kernel_sizes": [2, 5]}
    return randomised(CharIntNet(ROWS, **{**sizes, **options}), scale=0.7)


def by_hand(module, word):
    """The vector of one word, place by place."""

    def convolved(layer, seen):
        parts = []
        for size, convolve in zip(layer.sizes, layer.filters):
            rows = []
            for t in range(len(word)):
                total = convolve.bias
                for k in range(size):
                    place = t - (size - 1) // 2 + k
                    if 0 <= place < len(word):
                        total = total + convolve.weight[:, :, k] @ seen[place]
                rows.append(total.clamp(min=0))
            parts.append(torch.stack(rows))
        return torch.cat(parts, 1)

    found = convolved(module.first, module.embed(torch.tensor(word)))
    for narrow, widen in zip(module.narrow, module.widen):
        found = torch.cat([found, convolved(widen, convolved(narrow, found))], 1)
    return found.amax(0)


@settings(max_examples=25)
@given(words=WORDS)
def test_words_of_a_batch_equal_words_computed_by_hand(words):
    module = small()
    expected = torch.stack([by_hand(module, word) for word in words])
    assert expected.any()
    torch.testing.assert_close(encode_words(module, words), expected, **EXACT)


def test_gradients_equal_those_by_hand():
    module, words = small(), [[1, 2, 3, 1, 2], [4], [2, 0]]
    alone = torch.stack([by_hand(module, word) for word in words])
    got, expected = (
        with_gradients(vectors, module.parameters())
        for vectors in (encode_words(module, words), alone)
    )
    torch.testing.assert_close(got, expected, **EXACT)


def test_each_block_sees_further_and_keeps_what_was_found_before():
    deep, shallow = small(), small(blocks=0)
    shallow.load_state_dict(deep.state_dict(), strict=False)
    one, other = [1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 8]
    assert torch.equal(encode_words(deep, [one])[:, :4], encode_words(shallow, [one]))
    # Behind the blocks, the first character alone tells what stands six places to its right.
    far = deep.widen[1].output_width
    assert not torch.equal(by_hand(deep, one)[-far:], by_hand(deep, other)[-far:])


def test_width_and_number_of_weights():
    module = CharIntNet(ROWS)
    assert module.output_width == 2 * 32 + 3 * 2 * 16 == 160
    first = 32 * 32 * (3 + 5) + 2 * 32
    blocks = sum(wide * 16 + 16 + 16 * 16 * (3 + 5) + 2 * 16 for wide in (64, 96, 128))
    assert parameter_count(module) == ROWS * 32 + first + blocks


def test_dropouts_fall_on_embeddings_and_word_vectors_in_training_only():
    words = [[1, 2], [3]]
    plain = encode_words(small(), words)
    dry = small(dropout=1.0, output_dropout=1.0)
    assert torch.equal(encode_words(dry, words), plain)
    assert not encode_words(dry.train(), words).any()
    blank = small(dropout=1.0).train()
    zeros = small()
    zeros.embed.weight.data.zero_()
    torch.testing.assert_close(encode_words(blank, words), encode_words(zeros, words))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel_sizes": []}, r"kernel_sizes is \[\]: it needs at least one size"),
        ({"kernel_sizes": [3, 0]}, "kernel_sizes is 0: it must be 1 or more"),
        ({"blocks": -1}, "blocks is -1: it must be 0 or more"),
        ({"growth": 0}, "growth is 0: it must be 1 or more"),
    ],
)
def test_a_wrong_size_is_an_error_that_names_it(options, message):
    with pytest.raises(InputError, match=message):
        CharIntNet(ROWS, **options)
