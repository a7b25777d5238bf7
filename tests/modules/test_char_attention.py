"""Words from their characters by self-attention."""

import torch

from spacy_psa.modules.characters import CharTransformer
from tests.helpers.modules import randomised
from tests.helpers.words import encode_words


def test_transformer_knows_places_in_the_word_and_not_in_the_batch():
    module = randomised(CharTransformer(9, width=6, ffn_dim=5, project=4))
    twice = encode_words(module, [[1, 2], [1, 2]])
    torch.testing.assert_close(twice[0], twice[1])
    assert not torch.allclose(encode_words(module, [[1, 2]]), encode_words(module, [[2, 1]]))
