"""What all embedders share, run as thinc models and in pipelines."""

import numpy
import pytest
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Adam

from tests.helpers.embedders import EMBEDDERS, block, built
from tests.helpers.pipelines import (
    MARKED,
    TEXTS,
    annotate,
    make_examples,
    make_nlp,
    small_encoder,
    small_model,
    train,
)
from tests.helpers.words import docs_of


@pytest.mark.parametrize("name", EMBEDDERS)
def test_a_word_has_one_vector_whatever_stands_beside_it(name):
    model, vocab = built(name), Vocab()
    docs = docs_of(vocab, "to be or not to be", "", "A be", "incomprehensibilities be")
    model.begin_update(docs)
    arrays = model.predict(docs)
    width = model.get_dim("nO")
    assert [array.shape for array in arrays] == [(6, width), (0, width), (2, width), (2, width)]
    (alone,) = model.predict(docs_of(vocab, "be"))
    for array, place in ((arrays[0], 1), (arrays[0], 5), (arrays[2], 1), (arrays[3], 1)):
        numpy.testing.assert_allclose(array[place], alone[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", EMBEDDERS)
def test_odd_tokens_have_finite_vectors(name):
    model, vocab = built(name), Vocab()
    odd = [" ", "\n\n", "a", "ß", "\u200b", "語", "x" * 400, "...", "\U0001f600"]
    for words in (odd, [" "], ["a"]):
        (array,), backprop = model.begin_update([Doc(vocab, words=words)])
        backprop([numpy.ones_like(array)])
        assert array.shape == (len(words), model.get_dim("nO")) and numpy.isfinite(array).all()


@pytest.mark.parametrize("name", EMBEDDERS)
def test_no_docs_and_docs_without_tokens_pass(name):
    model = built(name)
    assert model.predict([]) == []
    (array,), backprop = model.begin_update([Doc(Vocab())])
    assert array.shape == (0, model.get_dim("nO"))
    backprop([array])


@pytest.mark.parametrize("name", EMBEDDERS)
def test_a_tagger_with_it_learns_three_sentences_and_is_saved(name):
    embed = {
        "@architectures": "spacy-psa.ConcatEmbed.v1",
        "*": {
            "words": {"@architectures": "spacy-psa.WordEmbed.v1", "width": 8, "rows": 100},
            "features": block(name),
        },
    }
    config = small_model(encoder=small_encoder("BiLSTM"), embed=embed)
    nlp = make_nlp(config)
    history = train(nlp, 8, Adam(0.02), make_examples(nlp, MARKED[:3]))
    assert history[-1] < 0.5 * history[0]
    again = make_nlp(config).from_bytes(nlp.to_bytes())
    texts = TEXTS[:2]
    assert annotate(again, texts) == annotate(nlp, texts)
