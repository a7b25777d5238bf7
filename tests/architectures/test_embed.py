"""Embedders, run as thinc models on docs of made-up words."""

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc
from spacy.util import registry
from spacy.vectors import Vectors
from spacy.vocab import Vocab
from thinc.api import SGD, Config

from spacy_psa.architectures.chars import char_bilstm, char_concat
from spacy_psa.architectures.embed import word_embed
from spacy_psa.architectures.embed_attributes import tag_embed
from spacy_psa.architectures.sum_embed import concat_embed
from spacy_psa.errors import InputError
from tests.helpers.embedders import having_met
from tests.helpers.words import docs_of

WIDTH = 6


def vocab_with(words):
    """A vocabulary with a vector for each of the words."""
    vocab = Vocab()
    rng = numpy.random.default_rng(0)
    for word in words:
        vocab.set_vector(word, rng.normal(size=WIDTH).astype("float32"))
    return vocab


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
    with pytest.raises(InputError, match=r"^WordEmbed\.v1: without_vector is 'some'"):
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


# Words that stay as they are (Li2019 section 3.1)


@pytest.fixture
def frozen_vocab():
    vocab = Vocab()
    vocab.set_vector("rome", numpy.array([1, 2, 3], dtype="float32"))
    vocab.set_vector("Oslo", numpy.array([4, 5, 6], dtype="float32"))
    return vocab


def test_frozen_vectors_stay_as_they_are(frozen_vocab):
    model = word_embed(3, trainable=False)
    docs = [Doc(frozen_vocab, words=["Rome", "Oslo", "oslo"]), Doc(frozen_vocab, words=["rome"])]
    model.initialize(X=docs)
    expected = [[[1, 2, 3], [4, 5, 6], [0, 0, 0]], [[1, 2, 3]]]
    for _ in range(2):
        vectors, backprop = model.begin_update(docs)
        backprop([numpy.ones_like(array) for array in vectors])
        model.finish_update(lambda key, weights, gradient: (weights - gradient, gradient))
        for array, rows in zip(vectors, expected, strict=True):
            numpy.testing.assert_array_equal(array, numpy.array(rows, dtype="float32"))
    assert not any(node.shims or node.param_names for node in model.walk())


def test_case_of_frozen_words_counts_where_words_are_not_lowered(frozen_vocab):
    model = word_embed(3, lower=False, trainable=False)
    assert not model.predict([Doc(frozen_vocab, words=["Rome"])])[0].any()


def test_frozen_words_need_vectors():
    model = word_embed(3, trainable=False)
    with pytest.raises(InputError, match="needs pretrained vectors"):
        model.initialize(X=[Doc(Vocab(), words=["Rome"])])
        model.predict([Doc(Vocab(), words=["Rome"])])


def test_frozen_vectors_of_another_width_are_refused(frozen_vocab):
    with pytest.raises(InputError, match="width 4 but the pretrained vectors have 3"):
        word_embed(4, trainable=False).predict([Doc(frozen_vocab, words=["Rome"])])


@pytest.mark.parametrize("options", [{"replace_rare": True}, {"pretrained": False}], ids=str)
def test_options_that_need_rows_to_train(options):
    with pytest.raises(InputError, match="need trainable = true"):
        word_embed(8, trainable=False, **options)


def test_pretrained_vectors_of_another_width_can_be_left_to_another_component(docs):
    """A tagger's, in the pipeline of a parser that learns all its words."""
    alone = having_met(word_embed(8, pretrained=False), docs)
    expected = alone.predict(docs)
    vocab = docs[0].vocab
    vocab.vectors = Vectors(data=numpy.ones((1, 3), dtype="float32"), keys=["rose"])
    for a, b in zip(expected, alone.predict(docs), strict=True):
        numpy.testing.assert_array_equal(a, b)
    beside = having_met(word_embed(8, pretrained=False, without_vector="none"), docs)
    for a, b in zip(expected, beside.predict(docs), strict=True):
        numpy.testing.assert_array_equal(a, b)
    with pytest.raises(InputError, match="width 8"):
        having_met(word_embed(8), docs)


@pytest.mark.parametrize(("spread", "expected"), [(None, 1 / 8), (1.0, 1.0)])
def test_new_vectors_have_the_spread_that_was_asked_for(docs, spread, expected):
    vocab = Vocab()
    many = [
        Doc(vocab, words=[f"w{chr(97 + i)}{chr(97 + j)}" for j in range(20)]) for i in range(20)
    ]
    words = having_met(word_embed(64, spread=spread), many)
    assert numpy.concatenate(words.predict(many)).std() == pytest.approx(expected, rel=0.05)
    others = (
        tag_embed(64, spread=spread),
        char_concat(2, 64, spread=spread),
        char_bilstm(width=64, hidden=4, spread=spread),
    )
    for model in others:
        weights = having_met(model, docs).shims[0].module.embed.weight
        assert float(weights.detach().std()) == pytest.approx(expected, rel=0.05)


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


# Word dropout


@pytest.mark.parametrize("trainable", [True, False])
def test_a_share_of_the_tokens_is_the_unknown_word_in_training_alone(trainable):
    vocab = vocab_with(["rose", "is"])
    model = built(word_embed, WIDTH, trainable=trainable, word_dropout=0.25)
    docs = docs_of(vocab, *["rose is rose is"] * 500)
    numpy.random.seed(0)
    arrays, _ = model.begin_update(docs)
    unknown = numpy.array([[not row.any() for row in array] for array in arrays])
    assert unknown.mean() == pytest.approx(0.25, abs=0.03)
    assert (unknown[:, 0] ^ unknown[:, 2]).any()  # tokens, not all of one word
    assert all(row.any() for array in model.predict(docs) for row in array)


def test_dropped_words_train_the_unknown_word():
    model = built(word_embed, WIDTH, word_dropout=1.0)
    (array,), backprop = model.begin_update(docs_of(Vocab(), "a b"))
    backprop([numpy.ones_like(array)])
    gradient = table(model).grad
    assert (gradient[0] == 2).all() and not gradient[1:].any()
    model.finish_update(SGD(0.1, grad_clip=0.0, L2=0.0))
    assert (model.predict(docs_of(Vocab(), "new"))[0] != 0).all()


def test_word_dropout_over_layers_drops_the_same_tokens_in_all():
    vocab = vocab_with(["rose", "is"])
    layers = [word_embed(WIDTH), char_bilstm(width=4, hidden=3)]
    model = built(concat_embed, *layers, word_dropout=0.25)
    docs = docs_of(vocab, *["rose is rose is"] * 500)
    plain = numpy.concatenate(model.predict(docs))
    numpy.random.seed(0)
    arrays, backprop = model.begin_update(docs)
    vectors = numpy.concatenate(arrays)
    unknown = ~vectors[:, :WIDTH].any(1)
    assert unknown.mean() == pytest.approx(0.25, abs=0.03)
    assert (numpy.ptp(vectors[unknown], axis=0) == 0).all()  # one spelling for all
    characters = [{tuple(row) for row in vectors[which, WIDTH:]} for which in (unknown, ~unknown)]
    assert [len(each) for each in characters] == [1, 2] and not characters[0] & characters[1]
    assert plain[:, :WIDTH].any(1).all()
    backprop([numpy.ones_like(array) for array in arrays])
    assert (table(layers[0]).grad[0] == unknown.sum()).all()
    assert built(concat_embed, word_embed(WIDTH), word_dropout=0.5).get_dim("nO") == WIDTH


# Pretrained vectors as the code of Yan2019 has them


@pytest.mark.parametrize("trainable", [True, False])
def test_pretrained_vectors_have_length_1_if_asked_and_zeros_stay(trainable):
    vocab = vocab_with(["rose"])
    vocab.set_vector("nil", numpy.zeros(WIDTH, "float32"))
    model = built(word_embed, WIDTH, normalize=True, trainable=trainable)
    rose, nil, unknown = model.predict(docs_of(vocab, "rose nil other"))[0]
    expected = vocab.get_vector("rose") / numpy.linalg.norm(vocab.get_vector("rose"))
    numpy.testing.assert_allclose(rose, expected, rtol=1e-6)
    assert not nil.any() and not unknown.any()


@pytest.mark.parametrize("trainable", [True, False])
def test_the_normal_form_is_looked_up_if_asked(trainable):
    vocab = vocab_with(["1996", "0000", "US", "us"])
    as_written, by_form = (
        built(word_embed, WIDTH, by_form=by_form, trainable=trainable).predict(
            docs_of(vocab, "1996 US")
        )[0]
        for by_form in (False, True)
    )
    assert numpy.array_equal(as_written, [vocab.get_vector(word) for word in ("1996", "US")])
    assert numpy.array_equal(by_form, [vocab.get_vector(word) for word in ("0000", "us")])


def test_dropout_sets_numbers_of_tokens_to_zero_in_training_alone():
    vocab = vocab_with(["rose"])
    model = built(word_embed, WIDTH, dropout=0.25)
    docs = docs_of(vocab, *["rose rose"] * 500)
    numpy.random.seed(0)
    arrays, backprop = model.begin_update(docs)
    vectors, rose = numpy.concatenate(arrays), vocab.get_vector("rose")
    kept = vectors != 0
    assert kept.mean() == pytest.approx(0.75, abs=0.02)
    assert any((a != b).any() for a, b in (array != 0 for array in arrays))  # not of one word
    numpy.testing.assert_allclose(vectors[kept], numpy.tile(rose / 0.75, (1000, 1))[kept], 1e-6)
    backprop([numpy.ones_like(array) for array in arrays])
    numpy.testing.assert_allclose(table(model).grad[1], kept.sum(0) / 0.75, rtol=1e-5)
    assert all((array == rose).all() for array in model.predict(docs))
