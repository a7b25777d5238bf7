"""Embedders, run as thinc models on docs of made-up words."""

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import SGD, Config

from spacy_psa.architectures.chars import char_bilstm
from spacy_psa.architectures.embed import concat_embed, word_embed
from spacy_psa.errors import InputError

WIDTH = 6


def vocab_with(words):
    """A vocabulary with a vector for each of the words."""
    vocab = Vocab()
    rng = numpy.random.default_rng(0)
    for word in words:
        vocab.set_vector(word, rng.normal(size=WIDTH).astype("float32"))
    return vocab


def docs_of(vocab, *lines):
    return [Doc(vocab, words=line.split()) for line in lines]


def built(make, *args, **options):
    torch.manual_seed(0)
    model = make(*args, **options)
    model.initialize()
    return model


def table(model):
    return model.shims[0].module.table.weight


# Words


def test_words_without_vectors_and_without_training_are_zeros():
    model = built(word_embed, WIDTH)
    arrays = model.predict(docs_of(Vocab(), "a b", "", "c"))
    assert [array.shape for array in arrays] == [(2, WIDTH), (0, WIDTH), (1, WIDTH)]
    assert not any(array.any() for array in arrays)


def test_no_docs_and_docs_without_tokens_pass():
    model = built(word_embed, WIDTH)
    assert model.predict([]) == []
    (array,), backprop = model.begin_update(docs_of(Vocab(), ""))
    assert array.shape == (0, WIDTH)
    backprop([array])


def test_training_words_without_vectors_start_within_the_range():
    model = built(word_embed, WIDTH)
    docs = docs_of(Vocab(), "a b a c")
    (before,), _ = model.begin_update(docs)
    assert numpy.array_equal(before, model.predict(docs)[0])
    assert numpy.array_equal(before[0], before[2])
    assert len({tuple(row) for row in before.tolist()}) == 3
    bound = (3 / WIDTH) ** 0.5
    assert numpy.abs(before).max() <= bound and numpy.abs(before).max() > bound / 2


def test_pretrained_words_are_their_vectors_until_trained():
    vocab = vocab_with(["a", "b"])
    model = built(word_embed, WIDTH)
    docs = docs_of(vocab, "a b a")
    for (array,) in (model.begin_update(docs)[0], model.predict(docs)):
        for row, word in zip(array, "aba", strict=True):
            assert numpy.array_equal(row, vocab.get_vector(word))


def test_training_moves_words_of_the_batch_and_leaves_pretrained_vectors():
    vocab = vocab_with(["a", "b", "c"])
    pretrained = vocab.vectors.data.copy()
    model = built(word_embed, WIDTH)
    model.begin_update(docs_of(vocab, "c"))
    (array,), backprop = model.begin_update(docs_of(vocab, "a b a"))
    backprop([numpy.ones_like(array)])
    model.finish_update(SGD(0.1, grad_clip=0.0, L2=0.0))
    (after,) = model.predict(docs_of(vocab, "a b c"))
    expected = [vocab.get_vector(w) - step for w, step in (("a", 0.2), ("b", 0.1), ("c", 0.0))]
    numpy.testing.assert_allclose(after, expected, rtol=1e-5)
    assert numpy.array_equal(vocab.vectors.data, pretrained)


def test_unknown_words_are_zeros_unless_they_have_vectors():
    vocab = vocab_with(["seen", "new"])
    model = built(word_embed, WIDTH)
    model.begin_update(docs_of(vocab, "seen made"))
    made, strange, new = model.predict(docs_of(vocab, "made strange new"))[0]
    assert made.any() and not strange.any()
    assert numpy.array_equal(new, vocab.get_vector("new"))


@pytest.mark.parametrize(
    ("which", "with_rows"), [("all", {"a", "odd", "00"}), ("numbers", {"a", "00"}), ("none", {"a"})]
)
def test_words_without_a_vector_get_rows_only_where_asked(which, with_rows):
    vocab = vocab_with(["a"])
    model = built(word_embed, WIDTH, without_vector=which)
    docs = docs_of(vocab, "a odd 12")
    (array,), _ = model.begin_update(docs)
    assert set(model.attrs["rows"]) == with_rows
    assert [bool(row.any()) for row in array] == [True, "odd" in with_rows, "00" in with_rows]


def test_without_pretrained_vectors_all_training_words_get_rows():
    model = built(word_embed, WIDTH, without_vector="none")
    (array,), _ = model.begin_update(docs_of(Vocab(), "a odd 12"))
    assert array.any(axis=1).all()


def test_an_unknown_choice_of_rows_is_an_error():
    with pytest.raises(InputError, match="'some'"):
        word_embed(WIDTH, without_vector="some")


def test_vocabulary_grows_in_training_alone():
    model = built(word_embed, WIDTH)
    vocab = Vocab()
    model.predict(docs_of(vocab, "a b"))
    assert model.attrs["rows"] == {}
    model.begin_update(docs_of(vocab, "b a b"))
    model.predict(docs_of(vocab, "c"))
    model.begin_update(docs_of(vocab, "d b"))
    assert sorted(model.attrs["rows"]) == ["a", "b", "d"]
    assert sorted(model.attrs["rows"].values()) == [1, 2, 3]


@pytest.mark.parametrize(
    ("lower", "zero_digits", "forms"),
    [
        (True, True, {"rome", "00-00"}),
        (True, False, {"rome", "19-45", "18-12"}),
        (False, True, {"Rome", "ROME", "00-00"}),
        (False, False, {"Rome", "ROME", "19-45", "18-12"}),
    ],
)
def test_words_of_one_normal_form_share_a_row(lower, zero_digits, forms):
    model = built(word_embed, WIDTH, lower=lower, zero_digits=zero_digits)
    docs = docs_of(Vocab(), "Rome ROME 19-45 18-12")
    (array,), _ = model.begin_update(docs)
    assert set(model.attrs["rows"]) == forms
    assert numpy.array_equal(array[0], array[1]) == lower
    assert numpy.array_equal(array[2], array[3]) == zero_digits


def test_vector_of_the_word_as_it_stands_comes_before_its_lower_case():
    vocab = vocab_with(["us", "US", "rome"])
    us, ours, rome = built(word_embed, WIDTH).predict(docs_of(vocab, "US us Rome"))[0]
    assert numpy.array_equal(us, vocab.get_vector("US"))
    assert numpy.array_equal(ours, vocab.get_vector("us"))
    assert numpy.array_equal(rome, vocab.get_vector("rome"))
    (rome,) = built(word_embed, WIDTH, lower=False).predict(docs_of(vocab, "Rome"))[0]
    assert not rome.any()


def test_words_beyond_the_capacity_get_no_row():
    model = built(word_embed, WIDTH, rows=2)
    (array,), backprop = model.begin_update(docs_of(Vocab(), "a b c d"))
    assert len(model.attrs["rows"]) == 2
    assert sum(bool(row.any()) for row in array) == 2
    assert table(model).shape == (3, WIDTH)
    backprop([array])


def test_vectors_of_another_width_are_an_error_that_names_both():
    model = built(word_embed, WIDTH + 1)
    with pytest.raises(InputError, match=f"width {WIDTH + 1} .* have {WIDTH}"):
        model.predict(docs_of(vocab_with(["a"]), "a"))


def test_vocabulary_is_saved_with_the_weights():
    model = built(word_embed, WIDTH)
    docs = docs_of(Vocab(), "a b C 7")
    model.begin_update(docs)
    again = word_embed(WIDTH).from_bytes(model.to_bytes())
    assert numpy.array_equal(again.predict(docs)[0], model.predict(docs)[0])
    assert again.attrs["rows"] == model.attrs["rows"]


def test_word_shorter_and_longer_docs_keep_their_tokens():
    model = built(word_embed, WIDTH)
    vocab = Vocab()
    docs = docs_of(vocab, "a b c", "", "b", "c a")
    model.begin_update(docs)
    whole = model.predict(docs)
    for doc, array in zip(docs, whole, strict=True):
        assert numpy.array_equal(model.predict([doc])[0], array)


# Characters


def test_word_has_the_same_vector_wherever_it_stands():
    model = built(char_bilstm, width=4, hidden=3)
    docs = docs_of(Vocab(), "to be or not to be", "be")
    (first, second), _ = model.begin_update(docs)
    assert first.shape == (6, 6)
    numpy.testing.assert_array_equal(first[0], first[4])
    numpy.testing.assert_array_equal(first[1], second[0])
    assert not numpy.allclose(first[0], first[1])
    # Nor does it depend on the words beside it.
    numpy.testing.assert_allclose(model.predict(docs[1:])[0], second, rtol=1e-5)


def test_each_distinct_word_is_computed_once(monkeypatch):
    model = built(char_bilstm, width=4, hidden=3)
    module = model.shims[0].module
    seen = []
    forward = module.forward
    monkeypatch.setattr(module, "forward", lambda c, n: (seen.append(len(n)), forward(c, n))[1])
    model.predict(docs_of(Vocab(), "to be or not to be", "be to"))
    assert seen == [4]


def test_gradient_of_a_word_is_the_sum_over_its_places():
    model = built(char_bilstm, width=4, hidden=3)
    vocab = Vocab()

    def gradients(line, places):
        (array,), backprop = model.begin_update(docs_of(vocab, line))
        d_array = numpy.zeros_like(array)
        d_array[places] = 1.0
        backprop([d_array])
        module = model.shims[0].module
        found = [p.grad.clone() for p in module.parameters()]
        module.zero_grad()
        return found

    gradients("to be", [0])  # meets the characters
    twice = gradients("to be to", [0, 2])
    once = gradients("to be", [0])
    for a, b in zip(twice, once, strict=True):
        torch.testing.assert_close(a, 2 * b)


def test_characters_of_training_alone_get_rows_up_to_the_capacity():
    model = built(char_bilstm, width=4, hidden=3, rows=3)
    vocab = Vocab()
    model.predict(docs_of(vocab, "xyz"))
    assert model.attrs["rows"] == {}
    model.begin_update(docs_of(vocab, "ab abcd"))
    assert len(model.attrs["rows"]) == 3 and set(model.attrs["rows"]) < set("abcd")


def test_unknown_characters_are_one_character():
    model = built(char_bilstm, width=4, hidden=3)
    vocab = Vocab()
    model.begin_update(docs_of(vocab, "abc"))
    a, b, c = model.predict(docs_of(vocab, "aß añ ab"))[0]
    numpy.testing.assert_allclose(a, b, rtol=1e-6)
    assert not numpy.allclose(a, c)


def test_long_words_are_cut_at_the_right():
    model = built(char_bilstm, width=4, hidden=3, max_characters=4)
    docs = docs_of(Vocab(), "abcd abcdefgh efghabcd")
    (array,), _ = model.begin_update(docs)
    numpy.testing.assert_array_equal(array[0], array[1])
    assert not numpy.allclose(array[0], array[2])


def test_docs_without_tokens_have_no_characters():
    model = built(char_bilstm, width=4, hidden=3)
    arrays, backprop = model.begin_update(docs_of(Vocab(), "", "a", ""))
    assert [array.shape for array in arrays] == [(0, 6), (1, 6), (0, 6)]
    backprop(arrays)


# Several side by side

CONFIG = """
[embed]
@architectures = "spacy-psa.ConcatEmbed.v1"

[embed.*.words]
@architectures = "spacy-psa.WordEmbed.v1"
width = 6

[embed.*.characters]
@architectures = "spacy-psa.CharBiLSTM.v1"
width = 4
hidden = 3

[embed.*.shapes]
@architectures = "spacy.MultiHashEmbed.v2"
width = 5
attrs = ["SHAPE"]
rows = [20]
include_static_vectors = false
"""


def test_embedders_of_a_config_stand_side_by_side_in_its_order():
    model = registry.resolve(Config().from_str(CONFIG))["embed"]
    nlp = spacy.blank("en")
    docs = [nlp.make_doc("Rome is old"), nlp.make_doc(""), nlp.make_doc("Rome")]
    model.initialize(X=docs[:1])
    assert model.get_dim("nO") == 6 + 6 + 5
    arrays, backprop = model.begin_update(docs)
    assert [array.shape for array in arrays] == [(3, 17), (0, 17), (1, 17)]
    words = model.layers[0].predict(docs)[0]
    characters = model.layers[1].predict(docs)[0]
    numpy.testing.assert_array_equal(arrays[0][:, :6], words)
    numpy.testing.assert_allclose(arrays[0][:, 6:12], characters, rtol=1e-5)
    backprop(arrays)
    assert all(p.grad is not None for p in model.layers[1].shims[0].module.parameters())


def test_width_is_the_sum_and_one_embedder_stands_alone_and_none_is_an_error():
    layer = word_embed(WIDTH)
    assert concat_embed(layer) is layer
    assert concat_embed(layer, char_bilstm(hidden=5)).get_dim("nO") == WIDTH + 10
    with pytest.raises(InputError, match="at least one"):
        concat_embed()
