"""Sums of embedders, dropout of features, and rare words read as unknown ones."""

from collections import Counter

import numpy
import pytest
import torch
from spacy.tokens import Doc
from spacy.util import registry
from spacy.vectors import Vectors
from spacy.vocab import Vocab

from spacy_psa.architectures.chars import char_bilstm, char_concat
from spacy_psa.architectures.embed import tag_embed, word_embed
from spacy_psa.architectures.rare_words import RareWords
from spacy_psa.architectures.sum_embed import sentence_dropout, sum_embed
from spacy_psa.errors import InputError

SENTENCES = ["a rose is a rose", "Every Rose", "is a thorn"]


@pytest.fixture
def docs():
    vocab = Vocab()
    found = [Doc(vocab, words=text.split()) for text in SENTENCES]
    for doc in found:
        for token in doc:
            token.tag_ = token.text[-1]
    return [*found, Doc(vocab)]


def trained(model, docs):
    """The model, with weights, when it has met the docs."""
    torch.manual_seed(0)
    numpy.random.seed(0)
    model.initialize(X=docs)
    model.begin_update(docs)
    return model


# Sums


def test_a_sum_is_the_sum_of_its_layers(docs):
    words, letters = word_embed(8), char_bilstm(4, 4)
    model = trained(sum_embed(words, letters), docs)
    assert model.get_dim("nO") == 8
    for total, a, b in zip(model.predict(docs), words.predict(docs), letters.predict(docs)):
        numpy.testing.assert_array_equal(total, a + b)


def test_every_layer_gets_the_gradient_of_the_sum(docs):
    words, letters = word_embed(8), char_concat(2, 2)
    model = trained(sum_embed(words, letters), docs)
    _, backprop = model.begin_update(docs)
    gradient = [numpy.ones((len(doc), 8), dtype="float32") for doc in docs]
    backprop(gradient)
    for layer in (words, letters):
        summed = layer.shims[0].module
        found = [p.grad.clone() for p in summed.parameters()]
        summed.zero_grad()
        _, alone = layer.begin_update(docs)
        alone(gradient)
        for a, p in zip(found, summed.parameters(), strict=True):
            torch.testing.assert_close(a, p.grad)


def test_the_layers_outputs_are_left_as_they_are(docs):
    words = word_embed(8)
    model = trained(sum_embed(words, words), docs)
    once = [array.copy() for array in words.predict(docs)]
    for total, array in zip(model.predict(docs), once, strict=True):
        numpy.testing.assert_array_equal(total, 2 * array)


def test_one_layer_is_its_own_sum(docs):
    words = word_embed(8)
    model = trained(sum_embed(words), docs)
    for a, b in zip(model.predict(docs), words.predict(docs), strict=True):
        numpy.testing.assert_array_equal(a, b)


def test_widths_that_differ_and_no_layers_are_refused():
    with pytest.raises(InputError, match=r"SumEmbed\.v1 adds layers of one width.*\[8, 4\]"):
        sum_embed(word_embed(8), word_embed(4))
    with pytest.raises(InputError, match=r"SumEmbed\.v1 needs at least one layer"):
        sum_embed()


def test_a_config_finds_both(docs):
    inner = {"@architectures": "spacy-psa.WordEmbed.v1", "width": 8}
    dropped = {"@architectures": "spacy-psa.SentenceDropout.v1", "rate": 0.5, "layer": inner}
    config = {"@architectures": "spacy-psa.SumEmbed.v1", "*": {"a": dropped, "b": inner}}
    model = trained(registry.resolve({"m": config})["m"], docs)
    assert [array.shape for array in model.predict(docs)] == [(len(doc), 8) for doc in docs]
    loaded = registry.resolve({"m": config})["m"].from_bytes(model.to_bytes())
    for a, b in zip(model.predict(docs), loaded.predict(docs), strict=True):
        numpy.testing.assert_array_equal(a, b)


# Dropout of features


def test_a_feature_goes_from_all_tokens_of_a_sentence(docs):
    words = word_embed(200)
    model = trained(sentence_dropout(words, 0.5), docs)
    outputs, backprop = model.begin_update(docs)
    masks = []
    for out, kept in zip(outputs[:3], words.predict(docs), strict=False):
        numpy.testing.assert_allclose(out[out != 0], 2 * kept[out != 0], rtol=1e-6)
        gone = (out == 0).all(0)
        assert numpy.array_equal(out == 0, numpy.broadcast_to(gone, out.shape))
        assert 0.3 < gone.mean() < 0.7
        masks.append(gone)
    assert not numpy.array_equal(masks[0], masks[1])
    backprop([numpy.ones_like(out) for out in outputs])
    table = words.shims[0].module.table.weight.grad
    thorn = words.attrs["rows"]["thorn"]
    assert torch.equal(table[thorn] == 0, torch.from_numpy(masks[2]))


def test_predictions_and_a_rate_of_nought_drop_nothing(docs):
    words = word_embed(8)
    model = trained(sentence_dropout(words, 0.5), docs)
    plain = trained(sentence_dropout(word_embed(8), 0.0), docs)
    for a, b in zip(model.predict(docs), words.predict(docs), strict=True):
        numpy.testing.assert_array_equal(a, b)
    for a, b in zip(plain.begin_update(docs)[0], plain.predict(docs), strict=True):
        numpy.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_a_rate_out_of_range_is_refused(rate):
    with pytest.raises(InputError, match=r"SentenceDropout\.v1: rate is"):
        sentence_dropout(word_embed(8), rate)


# Rare words


def replaced(rare, docs, times=400):
    """The share of each word's tokens that were drawn, in `times` passes."""
    words = sorted({token.text for doc in docs for token in doc})
    index = numpy.array([words.index(token.text) for doc in docs for token in doc])
    numpy.random.seed(0)
    drawn, tokens = Counter(), Counter()
    for _ in range(times):
        for i, unknown in zip(index, rare.draw(docs, words, index, [len(doc) for doc in docs])):
            tokens[words[i]] += 1
            drawn[words[i]] += int(unknown)
    return {word: drawn[word] / tokens[word] for word in words}


def test_words_are_replaced_with_one_over_one_plus_their_count(docs):
    rare = RareWords()
    shares = replaced(rare, docs)
    assert rare.counts == {"a": 3, "rose": 2, "is": 2, "Every": 1, "Rose": 1, "thorn": 1}
    for word, share in shares.items():
        assert share == pytest.approx(1 / (1 + rare.counts[word]), abs=0.08)


def test_a_text_counts_once_though_training_reads_it_often(docs):
    rare = RareWords()
    replaced(rare, docs[:1], 3)
    assert rare.counts == {"a": 2, "rose": 2, "is": 1}
    replaced(rare, docs, 1)
    assert rare.counts["a"] == 3 and rare.counts["thorn"] == 1


def test_counts_are_of_normal_forms(docs):
    model = trained(word_embed(8, replace_rare=True), docs)
    assert model.attrs["rare"].counts == {"a": 3, "rose": 3, "is": 2, "every": 1, "thorn": 1}


def test_unknown_words_are_read_as_what_stood_for_rare_ones(docs):
    model = trained(word_embed(8, replace_rare=True), docs)
    table = model.shims[0].module.table.weight
    with torch.no_grad():
        table[0] = 7.0
    unseen = Doc(docs[0].vocab, words=["nightingale", "rose"])
    (vectors,) = model.predict([unseen])
    assert (vectors[0] == 7.0).all() and not (vectors[1] == 7.0).any()
    numpy.random.seed(1)
    outputs, backprop = model.begin_update(docs)
    unknown = sum(int((out == 7.0).all(1).sum()) for out in outputs)
    assert 0 < unknown < 10
    backprop([numpy.ones_like(out) for out in outputs])
    assert (table.grad[0] == unknown).all()
    assert "" not in model.attrs["rows"]


def test_predictions_replace_nothing_and_training_without_the_option_neither(docs):
    model = trained(word_embed(8, replace_rare=True), docs)
    numpy.testing.assert_array_equal(model.predict(docs)[0], model.predict(docs)[0])
    plain = trained(word_embed(8), docs)
    numpy.testing.assert_array_equal(plain.begin_update(docs)[0][0], plain.predict(docs)[0])


def test_counts_are_not_saved_with_the_model(docs):
    model = trained(word_embed(8, replace_rare=True), docs)
    loaded = word_embed(8, replace_rare=True).from_bytes(model.to_bytes())
    numpy.testing.assert_array_equal(loaded.predict(docs)[0], model.predict(docs)[0])
    assert not loaded.attrs["rare"].counts
    loaded.begin_update(docs)
    assert loaded.attrs["rare"].counts["a"] == 3


def test_empty_docs_alone_are_nothing_to_count():
    model = word_embed(8, replace_rare=True)
    model.initialize()
    outputs, _ = model.begin_update([Doc(Vocab())])
    assert [out.shape for out in outputs] == [(0, 8)]


@pytest.mark.parametrize("options", [{"replace_rare": True}, {"pretrained": False}], ids=str)
def test_options_that_need_rows_to_train(options):
    with pytest.raises(InputError, match="need trainable = true"):
        word_embed(8, trainable=False, **options)


def test_pretrained_vectors_of_another_width_can_be_left_to_another_component(docs):
    """A tagger's, in the pipeline of a parser that learns all its words."""
    alone = trained(word_embed(8, pretrained=False), docs)
    expected = alone.predict(docs)
    vocab = docs[0].vocab
    vocab.vectors = Vectors(data=numpy.ones((1, 3), dtype="float32"), keys=["rose"])
    for a, b in zip(expected, alone.predict(docs), strict=True):
        numpy.testing.assert_array_equal(a, b)
    beside = trained(word_embed(8, pretrained=False, without_vector="none"), docs)
    for a, b in zip(expected, beside.predict(docs), strict=True):
        numpy.testing.assert_array_equal(a, b)
    with pytest.raises(InputError, match="width 8"):
        trained(word_embed(8), docs)


# Where vectors start


@pytest.mark.parametrize(("spread", "expected"), [(None, 1 / 8), (1.0, 1.0)])
def test_new_vectors_have_the_spread_that_was_asked_for(docs, spread, expected):
    vocab = Vocab()
    many = [
        Doc(vocab, words=[f"w{chr(97 + i)}{chr(97 + j)}" for j in range(20)]) for i in range(20)
    ]
    words = trained(word_embed(64, spread=spread), many)
    assert numpy.concatenate(words.predict(many)).std() == pytest.approx(expected, rel=0.05)
    others = (
        tag_embed(64, spread=spread),
        char_concat(2, 64, spread=spread),
        char_bilstm(64, 4, spread=spread),
    )
    for model in others:
        weights = trained(model, docs).shims[0].module.embed.weight
        assert float(weights.detach().std()) == pytest.approx(expected, rel=0.05)
