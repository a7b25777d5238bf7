"""Word vectors from the characters of a sentence, against a loop over the characters."""

import numpy
import pytest
import torch
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Adam

from spacy_psa.architectures.chars import char_sentence_bilstm
from spacy_psa.errors import InputError
from tests.helpers.layers import module_of
from tests.helpers.modules import randomised
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


def built(**options):
    torch.manual_seed(0)
    model = char_sentence_bilstm(**{"width": 3, "hidden": 2, "rows": 30, **options})
    model.initialize()
    randomised(module_of(model), dtype=torch.float32)
    return model


def doc_of(words, spaces=None, **settings):
    return Doc(Vocab(), words=words, spaces=spaces, **settings)


def steps(weights, x):
    """The states of one direction, one character after the other."""
    w_ih, w_hh, b_ih, b_hh = weights
    h = c = torch.zeros(w_hh.shape[1])
    found = []
    for vector in x:
        i, f, g, o = (w_ih @ vector + b_ih + w_hh @ h + b_hh).chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        found.append(h)
    return found


def by_hand(model, text, words):
    """The vectors of the words of a sentence; `words` has the first and last place of each."""
    module = module_of(model)
    rows = torch.tensor([model.attrs["rows"].get(character, 0) for character in text])
    x = module.embed(rows)
    layer = module.lstm.layers[0]
    forward = steps(layer._flat_weights[:4], x)
    backward = steps(layer._flat_weights[4:], x.flip(0))[::-1]
    vectors = [torch.cat([forward[a], backward[a], forward[b], backward[b]]) for a, b in words]
    return torch.stack(vectors).detach().numpy()


def test_a_word_takes_the_states_at_its_first_and_last_character():
    model = built()
    doc = doc_of(["I", "can", "not", "go", "."], [True, False, True, False, True])
    model.begin_update([doc])
    (array,) = model.predict([doc])
    expected = by_hand(model, "I cannot go.", [(0, 0), (2, 4), (5, 7), (9, 10), (11, 11)])
    numpy.testing.assert_allclose(array, expected, atol=1e-5)


def test_sentences_and_docs_of_a_batch_do_not_see_each_other():
    model = built()
    both = doc_of(["Go", "on", "Stop"], sent_starts=[True, False, True])
    alone = [doc_of(["Go", "on"]), doc_of([]), doc_of(["Stop"]), doc_of(["x"] * 9)]
    model.begin_update([both])
    arrays = model.predict([both, *alone])
    assert [len(array) for array in arrays] == [3, 2, 0, 1, 9]
    numpy.testing.assert_allclose(arrays[0], numpy.concatenate(arrays[1:4]), atol=1e-5)
    (single,) = model.predict([alone[0]])
    numpy.testing.assert_allclose(single, arrays[1], atol=1e-5)
    assert not numpy.allclose(model.predict([doc_of(["Go", "off"])])[0][0], single[0], atol=1e-5)


def test_spaces_digits_and_the_ends_of_long_words_are_read_as_set():
    model = built(max_characters=3, zero_digits=True)
    docs = [
        doc_of(["abcdef", "12"], [True, True]),
        doc_of(["abcxyz", "98"], [True, False]),
        doc_of(["abc", "12"], [False, False]),
    ]
    model.begin_update(docs)
    one, other, joined = model.predict(docs)
    numpy.testing.assert_allclose(one, other, atol=1e-6)
    assert not numpy.allclose(one, joined, atol=1e-6)
    assert set(model.attrs["rows"]) == set("abc 0")


def test_odd_docs_pass():
    model = built()
    assert model.predict([]) == []
    (array,), backprop = model.begin_update([doc_of([])])
    backprop([array])
    for words in (["a"], [" "], ["\n\n", "ß", "語", "\U0001f600", "x" * 400]):
        (array,), backprop = model.begin_update([doc_of(words)])
        backprop([numpy.ones_like(array)])
        assert array.shape == (len(words), 8) and numpy.isfinite(array).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"hidden": 0}, "hidden is 0"), ({"spread": 1.0, "layers": 0}, "layers is 0")],
)
def test_a_wrong_option_is_an_error_that_names_it(options, message):
    with pytest.raises(InputError, match=rf"^CharSentenceBiLSTM\.v1: {message}"):
        char_sentence_bilstm(**options)


def test_several_character_encoders_side_by_side_learn_and_are_saved():
    embed = {
        "@architectures": "spacy-psa.ConcatEmbed.v1",
        "*": {
            "words": {
                "@architectures": "spacy-psa.WordEmbed.v1",
                "width": 8,
                "rows": 100,
                "word_dropout": 0.1,
            },
            "intnet": {
                "@architectures": "spacy-psa.CharIntNet.v1",
                "width": 4,
                "kernels": 3,
                "growth": 2,
                "blocks": 1,
            },
            "ngrams": {"@architectures": "spacy-psa.CharNgramCNN.v1", "width": 3, "kernels": 2},
            "sentence": {
                "@architectures": "spacy-psa.CharSentenceBiLSTM.v1",
                "width": 3,
                "hidden": 2,
                "project": 5,
            },
        },
    }
    config = small_model(encoder=small_encoder("BiLSTM"), embed=embed)
    nlp = make_nlp(config)
    history = train(nlp, 8, Adam(0.02), make_examples(nlp, MARKED[:3]))
    assert history[-1] < 0.5 * history[0]
    embedder = nlp.get_pipe("ner").model.get_ref("tok2vec").get_ref("embed")
    assert embedder.get_dim("nO") == 8 + 2 * (3 + 2) + 3 * 2 + 5
    again = make_nlp(config).from_bytes(nlp.to_bytes())
    assert annotate(again, TEXTS[:2]) == annotate(nlp, TEXTS[:2])
