"""The numbers behind pictures of attention, gates and recalls."""

import numpy
import pytest
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.analysis.attention import Layer, View, inspect
from spacy_psa.analysis.figures import save_figure
from spacy_psa.errors import InputError
from spacy_psa.laboratory.analyses.heat_maps import (
    attention_figures,
    draw_attention,
    draw_gates,
    draw_recalls,
    gate_figures,
)
from spacy_psa.scoring.token_recall import Recall
from tests.helpers.pipelines import make_nlp, small_encoder, small_model, text_docs, train

WORDS = ["Ada", "met", "Bob", "met"]


def view(layers):
    return View(Doc(Vocab(), words=WORDS), layers)


def weights(*shape):
    values = numpy.random.default_rng(0).random(shape).astype("float32")
    return values / values.sum(-1, keepdims=True)


def test_every_layer_has_its_heads():
    one, many = weights(4, 4), weights(3, 4, 4)
    found = attention_figures(view([Layer(one), Layer(many)]))
    assert found["words"] == WORDS and found["word"] is None
    assert [len(layer) for layer in found["layers"]] == [1, 3]
    numpy.testing.assert_array_equal(numpy.float32(found["layers"][0][0]), one)
    numpy.testing.assert_array_equal(numpy.float32(found["layers"][1]), many)


def test_a_word_has_the_rows_of_its_first_place():
    many = weights(3, 4, 4)
    found = attention_figures(view([Layer(many)]), "met")
    assert found["word"] == 1
    numpy.testing.assert_array_equal(numpy.float32(found["layers"][0]), many[:, 1])
    with pytest.raises(
        InputError, match="--word Eve: is not in the sentence; name one of Ada, met"
    ):
        attention_figures(view([Layer(many)]), "Eve")


def test_gates_are_means_over_features():
    nlp = make_nlp(small_model(encoder=small_encoder()))
    train(nlp, steps=1)
    (doc,) = text_docs(nlp, ["Ada met Bob"])
    (seen,) = inspect(nlp.get_pipe("ner"), [doc])
    found = gate_figures(seen)
    assert found["words"] == ["Ada", "met", "Bob"] and len(found["layers"]) == 2
    for layer, gates in zip(seen.layers, found["layers"], strict=True):
        for token in range(3):
            plain = sum(float(value) for value in layer.gate[token]) / layer.gate.shape[1]
            assert gates[token] == pytest.approx(plain, abs=1e-5)
    with pytest.raises(InputError, match="no gates"):
        gate_figures(view([Layer(weights(4, 4))]))


def shown(figure):
    """The heat maps of a figure."""
    return [image.get_array() for axes in figure.axes for image in axes.get_images()]


def test_pictures_show_these_numbers(tmp_path):
    many = weights(2, 4, 4)
    found = attention_figures(view([Layer(weights(4, 4)), Layer(many)]))
    figure = draw_attention(found)
    numpy.testing.assert_allclose(shown(figure)[1], many[0])
    assert figure.axes[2].get_title() == "layer 2, head 1"
    row = draw_attention(attention_figures(view([Layer(many)]), "Bob"))
    numpy.testing.assert_allclose(shown(row)[0], many[:, 2])
    bars = draw_gates({"words": WORDS, "layers": [[0.1, 0.2, 0.3, 0.4], [0.5] * 4]})
    heights = [patch.get_height() for patch in bars.axes[0].patches]
    assert heights == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 0.5, 0.5])
    for name, picture in {"a.svg": figure, "b.png": row}.items():
        save_figure(picture, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000


def test_many_heads_and_tokens_stay_a_picture_that_can_be_opened():
    words, matrix = ["word"] * 80, numpy.full((80, 80), 1 / 80).tolist()
    figure = draw_attention({"words": words, "word": None, "layers": [[matrix] * 14]})
    assert figure.get_size_inches()[0] < 60 and len(shown(figure)) == 14


def test_recalls_are_drawn_as_changes_in_points():
    table = {
        "HC": {"B": Recall(3, 4), "O": Recall(9, 10)},
        "H": {"B": Recall(1, 4), "O": Recall(10, 10)},
        "C": {"B": Recall(4, 4), "O": Recall(0, 10)},
    }
    figure = draw_recalls({"chunk": table})
    numpy.testing.assert_allclose(shown(figure)[0], [[-50, 25], [10, -90]])
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["B 75.0", "O 90.0"]


def test_a_sentence_that_is_too_long_is_an_error():
    long = {"words": ["a"] * 81, "layers": [[0.5] * 81], "word": None}
    for draw in (draw_attention, draw_gates):
        with pytest.raises(InputError, match="81 tokens are too many"):
            draw(long)
