"""`BigramEmbed.v1`: vectors of characters' bigrams, pretrained or learned."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.initialize import convert_vectors
from spacy.vocab import Vocab
from thinc.api import SGD

from spacy_psa.architectures.embed import _bigrams, bigram_embed
from spacy_psa.errors import InputError

WIDTH = 3


def docs(*texts, vocab=None):
    vocab = vocab or Vocab()
    return [Doc(vocab, words=list(text), spaces=[False] * len(text)) for text in texts]


def built(found, **options):
    model = bigram_embed(width=WIDTH, rows=20, **options)
    model.initialize(X=found)
    return model


def with_vectors(table):
    vocab = Vocab()
    for key, row in table.items():
        vocab.set_vector(key, numpy.full(WIDTH, row, dtype="float32"))
    return vocab


def test_each_character_is_taken_with_the_next_and_the_last_with_the_end():
    (doc,) = docs("在北京")
    assert _bigrams(doc) == ["在北", "北京", "京</s>"]
    assert _bigrams(docs("")[0]) == []


def test_equal_bigrams_have_equal_vectors_and_others_others():
    found = docs("北京北京", "在北京")
    model = built(found)
    first, second = model(found, is_train=True)[0]
    assert first.shape == (4, WIDTH) and second.shape == (3, WIDTH)
    numpy.testing.assert_array_equal(first[0], first[2])  # 北京
    numpy.testing.assert_array_equal(first[0], second[1])
    assert numpy.abs(first[1] - first[0]).max() > 0  # 京北
    assert numpy.abs(first[3] - first[1]).max() > 0  # 京</s>


def test_bigrams_that_training_did_not_meet_are_zeros():
    found = docs("北京")
    model = built(found)
    model(found, is_train=True)
    (vectors,) = model.predict(docs("京北"))
    assert not vectors.any()


def test_gradients_of_equal_bigrams_add_up():
    found = docs("北京北京", "北京")
    model = built(found)
    vectors, backprop = model(found, is_train=True)
    backprop([numpy.ones_like(array) for array in vectors])
    model.finish_update(SGD(1.0, grad_clip=0.0, L2=0.0))
    after = model.predict(found)
    times = [[3], [1], [3], [2]]  # of 北京, 京北, 北京, and 京</s> in both
    numpy.testing.assert_allclose(vectors[0] - after[0], numpy.tile(times, WIDTH), atol=1e-5)


def test_pretrained_vectors_are_those_of_the_bigrams():
    vocab = with_vectors({"北": 1, "北京": 2, "京</s>": 3})
    found = docs("北京", vocab=vocab)
    model = built(found, without_vector="none")
    assert model(found, is_train=True)[0][0].tolist() == [[2.0] * WIDTH, [3.0] * WIDTH]
    (unseen,) = model.predict(docs("南北京", vocab=vocab))
    assert unseen.tolist() == [[0.0] * WIDTH, [2.0] * WIDTH, [3.0] * WIDTH]


def test_digits_and_case_are_one_in_learned_bigrams():
    found = docs("A1", "a2")
    model = built(found)
    (first, second), _ = model(found, is_train=True)
    numpy.testing.assert_array_equal(first, second)


def test_both_files_of_vectors_make_the_one_table(tmp_path):
    """As the note in configs/ner/tener_zh.cfg says."""
    (tmp_path / "uni.vec").write_text("北 1 1 1\n京 2 2 2\n")
    (tmp_path / "bi.vec").write_text("北京 3 3 3\n京</s> 4 4 4\n")
    both = tmp_path / "both.txt"
    both.write_text((tmp_path / "uni.vec").read_text() + (tmp_path / "bi.vec").read_text())
    nlp = spacy.blank("zh")
    convert_vectors(nlp, both, truncate=0, prune=-1)
    found = docs("北京", vocab=nlp.vocab)
    assert built(found).predict(found)[0].tolist() == [[3.0] * 3, [4.0] * 3]
    assert nlp.vocab["京"].vector.tolist() == [2.0] * 3


def test_docs_without_tokens_are_embedded():
    found = docs("", "北京", "")
    model = built(found)
    vectors, backprop = model(found, is_train=True)
    assert [len(array) for array in vectors] == [0, 2, 0]
    backprop(vectors)
    assert model.predict(docs(""))[0].shape == (0, WIDTH)


def test_bytes_and_back_change_nothing():
    found = docs("北京北京")
    model = built(found)
    model(found, is_train=True)
    again = bigram_embed(width=WIDTH, rows=20).from_bytes(model.to_bytes())
    numpy.testing.assert_array_equal(again.predict(found)[0], model.predict(found)[0])


def test_a_corpus_of_words_has_no_bigrams_and_is_an_error():
    words = Doc(Vocab(), words=["I", "live", "in", "London"])
    with pytest.raises(
        InputError, match=r"BigramEmbed.v1 needs characters as tokens, but the 4 tokens"
    ):
        built([words])
    mostly = Doc(Vocab(), words=["我", "住", "在", "London"])
    built([mostly])


def test_the_error_comes_before_any_training():
    nlp = spacy.blank("en")
    model = {
        "@architectures": "spacy-psa.CRF.v1",
        "tok2vec": {
            "@architectures": "spacy.Tok2Vec.v2",
            "embed": {"@architectures": "spacy-psa.BigramEmbed.v1", "width": WIDTH},
            "encode": {"@architectures": "spacy-psa.BiLSTM.v1", "hidden": 2},
        },
    }
    nlp.add_pipe("crf_ner", config={"model": model})
    doc = nlp.make_doc("Ada lives in London")
    gold = Example.from_dict(doc, {"entities": [(13, 19, "LOC")]})
    with pytest.raises(InputError, match="remove the layer from the config"):
        nlp.initialize(lambda: [gold])


def test_vectors_of_another_width_are_an_error():
    found = docs("北京", vocab=with_vectors({"北京": 1}))
    model = bigram_embed(width=WIDTH + 1)
    model.initialize(X=found)
    with pytest.raises(InputError, match=f"width {WIDTH + 1} .* have {WIDTH}"):
        model.predict(found)


def test_an_unknown_option_is_an_error():
    with pytest.raises(InputError, match=r"without_vector is 'some'"):
        bigram_embed(without_vector="some")
