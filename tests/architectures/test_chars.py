"""Embedders that read a word's characters, run as thinc models and in pipelines."""

import numpy
import pytest
import torch
from spacy.tokens import Doc
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import SGD

from spacy_psa.errors import InputError
from tests.helpers.embedders import CHARACTERS, TENER_CHARACTERS, built
from tests.helpers.layers import module_of
from tests.helpers.words import docs_of

GROWING = [name for name in CHARACTERS if name != "CharNgramCNN"]


def close(a, b):
    return numpy.allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", CHARACTERS)
def test_different_words_differ(name):
    model = built(name)
    docs = docs_of(Vocab(), "to be Be bee eb")
    model.begin_update(docs)
    (array,) = model.predict(docs)
    assert not any(close(array[i], array[j]) for i in range(5) for j in range(i))


@pytest.mark.parametrize("name", CHARACTERS)
def test_each_distinct_word_is_computed_once(name, monkeypatch):
    model = built(name)
    module, seen = module_of(model), []
    forward = module.forward

    def spy(*inputs):
        output = forward(*inputs)
        seen.append(len(output))
        return output

    monkeypatch.setattr(module, "forward", spy)
    model.predict(docs_of(Vocab(), "to be or not to be", "be to"))
    assert seen == [4]


@pytest.mark.parametrize("name", CHARACTERS)
def test_gradient_of_a_word_is_the_sum_over_its_places(name):
    dry = {"attention_dropout": 0.0} if name in ("CharTransformer", "CharAdaTrans") else {}
    model, vocab = built(name, **dry), Vocab()

    def gradients(line, places):
        (array,), backprop = model.begin_update(docs_of(vocab, line))
        d_array = numpy.zeros_like(array)
        d_array[places] = numpy.arange(array.shape[1])
        backprop([d_array])
        found = [p.grad.clone() for p in module_of(model).parameters()]
        module_of(model).zero_grad()
        return found

    gradients("to be", [0])  # meets the characters
    for a, b in zip(gradients("to be to", [0, 2]), gradients("to be", [0]), strict=True):
        torch.testing.assert_close(a, 2 * b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CHARACTERS)
def test_training_moves_every_weight_that_the_words_use(name):
    model, vocab = built(name), Vocab()
    docs = docs_of(vocab, "to be, or Not to be? 4")
    model.begin_update(docs)
    before = {n: p.detach().clone() for n, p in module_of(model).named_parameters()}
    arrays, backprop = model.begin_update(docs)
    random = numpy.random.default_rng(0)
    backprop([random.normal(size=a.shape).astype("float32") for a in arrays])
    model.finish_update(SGD(0.1, grad_clip=0.0, L2=0.0))
    for parameter_name, parameter in module_of(model).named_parameters():
        # A bias of keys shifts all scores of a row alike, which softmax does not see.
        if not parameter_name.endswith("key.bias"):
            assert not torch.equal(parameter, before[parameter_name]), parameter_name


# The character vocabulary


@pytest.mark.parametrize("name", GROWING)
def test_characters_of_training_alone_get_rows_up_to_the_capacity(name):
    model, vocab = built(name, rows=3), Vocab()
    model.predict(docs_of(vocab, "xyz"))
    assert model.attrs["rows"] == {}
    model.begin_update(docs_of(vocab, "ab abcd"))
    assert sorted(model.attrs["rows"].values()) == [1, 2, 3]
    assert set(model.attrs["rows"]) < set("abcd")


@pytest.mark.parametrize("name", CHARACTERS)
def test_unknown_characters_are_one_character(name):
    model, vocab = built(name), Vocab()
    model.begin_update(docs_of(vocab, "abc"))
    a, b, c = model.predict(docs_of(vocab, "aß añ ab"))[0]
    assert close(a, b) and not close(a, c)


@pytest.mark.parametrize("name", TENER_CHARACTERS)
def test_long_words_are_cut_at_the_right(name):
    model, vocab = built(name, max_characters=4), Vocab()
    docs = docs_of(vocab, "abcd abcdefgh efghabcd")
    model.begin_update(docs)
    a, b, c = model.predict(docs)[0]
    assert close(a, b) and not close(a, c)


@pytest.mark.parametrize("name", TENER_CHARACTERS)
@pytest.mark.parametrize("zero_digits", [False, True])
def test_digits_are_one_digit_where_asked(name, zero_digits):
    model, vocab = built(name, zero_digits=zero_digits), Vocab()
    docs = docs_of(vocab, "1812a 1945a")
    model.begin_update(docs)
    a, b = model.predict(docs)[0]
    assert close(a, b) == zero_digits
    assert set(model.attrs["rows"]) == (set("0a") if zero_digits else set("1824 95a") - {" "})


def test_widths_of_tener_are_thirty():
    for name in ("CharCNN", "CharTransformer", "CharAdaTrans"):
        make = registry.architectures.get(f"spacy-psa.{name}.v1")
        model = make()
        model.initialize()
        assert model.get_dim("nO") == 30 == module_of(model).output_width


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("CharBiLSTM", {"pool": "mean"}, "pool is 'mean'.*final.*max"),
        ("CharCNN", {"kernel_width": 4}, "kernel_width is 4.*odd"),
        ("CharCNN", {"kernel_width": -1}, "kernel_width is -1: it must be 1 or more"),
        ("CharTransformer", {"heads": 4}, "heads is 4: it must divide the width, 6"),
        ("CharAdaTrans", {"heads": 5}, "heads is 5: it must divide the width, 12"),
        ("CharNgramCNN", {"longest": 21}, "longest is 21.*20"),
        ("CharNgramCNN", {"longest": 0}, "longest is 0"),
        ("CharIntNet", {"kernel_widths": []}, r"kernel_widths is \[\]: it needs at least one size"),
        ("CharBiLSTM", {"spread": -1.0}, "spread is -1.0: it must be 0 or more"),
        ("CharSentenceBiLSTM", {"spread": -1.0}, "spread is -1.0: it must be 0 or more"),
        ("CharConcat", {"spread": -1.0}, "spread is -1.0: it must be 0 or more"),
        ("TagEmbed", {"spread": -1.0}, "spread is -1.0: it must be 0 or more"),
        ("WordEmbed", {"spread": -1.0}, "spread is -1.0: it must be 0 or more"),
    ],
)
def test_a_wrong_option_is_an_error_that_names_it(name, options, message):
    make = registry.architectures.get(f"spacy-psa.{name}.v1")
    with pytest.raises(InputError, match=rf"^{name}\.v1: {message}"):
        make(**{**CHARACTERS.get(name, {}), **options})


# Character n-grams


def kinds_of(monkeypatch, word):
    model = built("CharNgramCNN")
    seen = []
    forward = module_of(model).forward
    monkeypatch.setattr(
        module_of(model), "forward", lambda r, k, n: (seen.append(k.tolist()), forward(r, k, n))[1]
    )
    model.predict([Doc(Vocab(), words=[word])])
    return seen[0]


def test_kinds_are_upper_lower_digit_punctuation_and_none_beyond_ascii(monkeypatch):
    assert kinds_of(monkeypatch, "Ab9-") == [1, 2, 3, 4]
    assert kinds_of(monkeypatch, "ÄéßЖ٣—€語\n ") == [0] * 10
    assert kinds_of(monkeypatch, "Zz0~_AÉ") == [1, 2, 3, 4, 4, 1, 0]


def test_ngram_words_are_cut_to_twenty_characters():
    model, vocab = built("CharNgramCNN"), Vocab()
    a, b, c = model.predict(docs_of(vocab, f"{'ab' * 10} {'ab' * 10}Z {'ab' * 9}aZ"))[0]
    assert close(a, b) and not close(a, c)


def test_unknown_characters_train_their_own_vector():
    model = built("CharNgramCNN")
    (array,), backprop = model.begin_update(docs_of(Vocab(), "é"))
    backprop([numpy.ones_like(array)])
    gradient = module_of(model).embed.weight.grad
    assert gradient[0].any() and not gradient[1:].any()


# First and last letters


def letters_of(words, letters=3):
    """For each word, the characters whose vectors CharConcat puts side by side."""
    model = built("CharConcat", letters=letters)
    docs = [Doc(Vocab(), words=words)]
    model.begin_update(docs)
    (array,) = model.predict(docs)
    table = module_of(model).embed.weight.detach().numpy()
    name = {tuple(table[row]): c for c, row in model.attrs["rows"].items()}
    name[tuple(table[model.attrs["capacity"] + 1])] = "_"
    return ["".join(name[tuple(part)] for part in row.reshape(2 * letters, -1)) for row in array]


def test_letters_are_the_first_and_the_last_with_padding_in_between():
    words = ["a", "ab", "abc", "abcd", "abcdef", "abcdefghi"]
    assert letters_of(words) == ["a____a", "ab__ab", "abcabc", "abcbcd", "abcdef", "abcghi"]


def test_letters_of_the_paper_make_512():
    model = registry.architectures.get("spacy-psa.CharConcat.v1")()
    model.initialize()
    assert model.get_dim("nO") == 512
    assert model.predict(docs_of(Vocab(), "a"))[0].shape == (1, 512)
    assert letters_of(["self-attentiveness", "tag"], 8) == [
        "self-att" + "tiveness",
        "tag_____" + "_____tag",
    ]


def test_letters_in_the_middle_get_no_row():
    model = built("CharConcat")
    model.begin_update(docs_of(Vocab(), "abcXYZdef"))
    assert set(model.attrs["rows"]) == set("abcdef")
