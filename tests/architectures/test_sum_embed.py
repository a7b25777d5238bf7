"""Sums of embedders, and dropout of features."""

import numpy
import pytest
import torch
from spacy.util import registry

from spacy_psa.architectures.chars import char_bilstm, char_concat
from spacy_psa.architectures.embed import word_embed
from spacy_psa.architectures.sum_embed import sentence_dropout, sum_embed
from spacy_psa.errors import InputError
from tests.helpers.embedders import having_met

# Sums


def test_a_sum_is_the_sum_of_its_layers(docs):
    words, letters = word_embed(8), char_bilstm(width=4, hidden=4)
    model = having_met(sum_embed(words, letters), docs)
    assert model.get_dim("nO") == 8
    for total, a, b in zip(model.predict(docs), words.predict(docs), letters.predict(docs)):
        numpy.testing.assert_array_equal(total, a + b)


def test_every_layer_gets_the_gradient_of_the_sum(docs):
    words, letters = word_embed(8), char_concat(2, 2)
    model = having_met(sum_embed(words, letters), docs)
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
    model = having_met(sum_embed(words, words), docs)
    once = [array.copy() for array in words.predict(docs)]
    for total, array in zip(model.predict(docs), once, strict=True):
        numpy.testing.assert_array_equal(total, 2 * array)


def test_one_layer_is_its_own_sum(docs):
    words = word_embed(8)
    model = having_met(sum_embed(words), docs)
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
    model = having_met(registry.resolve({"m": config})["m"], docs)
    assert [array.shape for array in model.predict(docs)] == [(len(doc), 8) for doc in docs]
    loaded = registry.resolve({"m": config})["m"].from_bytes(model.to_bytes())
    for a, b in zip(model.predict(docs), loaded.predict(docs), strict=True):
        numpy.testing.assert_array_equal(a, b)


# Dropout of features


def test_a_feature_goes_from_all_tokens_of_a_sentence(docs):
    words = word_embed(200)
    model = having_met(sentence_dropout(words, 0.5), docs)
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
    model = having_met(sentence_dropout(words, 0.5), docs)
    plain = having_met(sentence_dropout(word_embed(8), 0.0), docs)
    for a, b in zip(model.predict(docs), words.predict(docs), strict=True):
        numpy.testing.assert_array_equal(a, b)
    for a, b in zip(plain.begin_update(docs)[0], plain.predict(docs), strict=True):
        numpy.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_a_rate_out_of_range_is_refused(rate):
    with pytest.raises(InputError, match=r"SentenceDropout\.v1: rate is"):
        sentence_dropout(word_embed(8), rate)
