"""Embedders of characters, shapes and tags, run as thinc models and in pipelines."""

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import SGD, Adam

from spacy_psa.architectures.embed import tag_embed, word_shape
from spacy_psa.errors import InputError

ENCODERS = {
    "CharBiLSTM": {"width": 6, "hidden": 4, "project": 5, "pool": "max"},
    "CharCNN": {"width": 6, "kernels": 5, "project": 4},
    "CharTransformer": {"width": 6, "heads": 3, "inner": 5, "project": 4},
    "CharAdaTrans": {"width": 12, "heads": 3, "inner": 5, "project": 4},
}
CHARACTERS = {
    **ENCODERS,
    "CharNgramCNN": {"width": 3, "kernels": 2},
    "CharConcat": {"letters": 3, "width": 4},
}
EMBEDDERS = {**CHARACTERS, "WordShape": {}, "TagEmbed": {"width": 4}}
GROWING = [name for name in CHARACTERS if name != "CharNgramCNN"]


def docs_of(vocab, *lines):
    return [Doc(vocab, words=line.split()) for line in lines]


def built(name, **options):
    torch.manual_seed(0)
    make = registry.architectures.get(f"spacy-psa.{name}.v1")
    model = make(**{**EMBEDDERS[name], **options})
    model.initialize()
    return model


def module_of(model):
    return model.shims[0].module


def close(a, b):
    return numpy.allclose(a, b, rtol=1e-4, atol=1e-6)


# All of them


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
def test_a_tagger_with_it_learns_three_sentences_and_is_saved(name, tools):
    embed = {
        "@architectures": "spacy-psa.ConcatEmbed.v1",
        "*": {
            "words": {"@architectures": "spacy-psa.WordEmbed.v1", "width": 8, "rows": 100},
            "features": {"@architectures": f"spacy-psa.{name}.v1", **EMBEDDERS[name]},
        },
    }
    config = tools.small_model(encoder=tools.small_encoder("BiLSTM"), embed=embed)
    nlp = tools.make_nlp(config)
    history = tools.train(nlp, 8, Adam(0.02), tools.make_examples(nlp, tools.marked[:3]))
    assert history[-1] < 0.5 * history[0]
    again = tools.make_nlp(config).from_bytes(nlp.to_bytes())
    texts = tools.texts[:2]
    assert tools.annotate(again, texts) == tools.annotate(nlp, texts)


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


@pytest.mark.parametrize("name", ENCODERS)
def test_long_words_are_cut_at_the_right(name):
    model, vocab = built(name, max_characters=4), Vocab()
    docs = docs_of(vocab, "abcd abcdefgh efghabcd")
    model.begin_update(docs)
    a, b, c = model.predict(docs)[0]
    assert close(a, b) and not close(a, c)


@pytest.mark.parametrize("name", ENCODERS)
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
        ("CharCNN", {"kernel_width": -1}, "kernel_width is -1.*odd"),
        ("CharTransformer", {"heads": 4}, "4 heads .* 6"),
        ("CharAdaTrans", {"heads": 5}, "5 heads .* 12"),
        ("CharNgramCNN", {"longest": 21}, "longest is 21.*20"),
        ("CharNgramCNN", {"longest": 0}, "longest is 0"),
        ("TagEmbed", {"attribute": "DEP"}, "attribute is 'DEP'.*TAG"),
    ],
)
def test_a_wrong_option_is_an_error_that_names_it(name, options, message):
    with pytest.raises(InputError, match=message):
        built(name, **options)


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
    assert letters_of(words) == [
        "a____a",
        "ab__ab",
        "abcabc",
        "abcbcd",
        "abcdef",
        "abcghi",
    ]


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


# Shapes


@pytest.mark.parametrize(
    ("word", "shape"),
    [
        ("EU", 0),
        ("A", 0),
        ("U.S.", 0),
        ("3M", 0),
        ("ÉTÉ", 0),
        ("Rome", 1),
        ("McDonald", 1),
        ("to-day", 2),
        ("3rd", 2),
        ("iPhone", 3),
        ("1984", 3),
        ("--", 3),
        ("\n", 3),
        ("語", 3),
    ],
)
def test_shape_is_upper_then_initial_then_lower_then_mixed(word, shape):
    (array,) = word_shape().predict([Doc(Vocab(), words=[word])])
    assert array.tolist() == [[float(shape == k) for k in range(4)]]
    assert array.dtype == numpy.float32


def test_shapes_have_no_weights_and_are_ready_at_once():
    model = word_shape()
    assert model.shims == [] and model.param_names == () and model.get_dim("nO") == 4
    arrays, backprop = model.begin_update(docs_of(Vocab(), "A b", "c"))
    assert [array.shape for array in arrays] == [(2, 4), (1, 4)]
    backprop(arrays)


# Tags


def tagged(vocab, *tags):
    return [Doc(vocab, words=["w"] * len(tags), tags=list(tags))]


def test_tokens_of_one_tag_share_a_vector():
    model, vocab = built("TagEmbed"), Vocab()
    (array,), _ = model.begin_update(tagged(vocab, "NN", "VB", "NN"))
    assert numpy.array_equal(array[0], array[2]) and not close(array[0], array[1])
    assert set(model.attrs["rows"]) == {"NN", "VB"}


def test_unseen_and_missing_tags_are_the_unknown_tag():
    model, vocab = built("TagEmbed"), Vocab()
    model.begin_update(tagged(vocab, "NN", "VB", ""))
    assert set(model.attrs["rows"]) == {"NN", "VB"}
    known, unseen, missing = model.predict(tagged(vocab, "NN", "JJ", ""))[0]
    unknown = module_of(model).embed.weight[0].detach().numpy()
    assert numpy.array_equal(unseen, unknown) and numpy.array_equal(missing, unknown)
    assert not close(known, unknown)
    (bare,) = model.predict(docs_of(vocab, "a b"))
    assert numpy.array_equal(bare, [unknown, unknown])


def test_tags_beyond_the_capacity_are_unknown():
    model, vocab = built("TagEmbed", rows=1), Vocab()
    (array,), _ = model.begin_update(tagged(vocab, "NN", "VB"))
    unknown = module_of(model).embed.weight[0].detach().numpy()
    assert sum(numpy.array_equal(row, unknown) for row in array) == 1


def test_missing_tags_train_the_unknown_tag():
    model, vocab = built("TagEmbed"), Vocab()
    arrays, backprop = model.begin_update(tagged(vocab, "NN", ""))
    backprop([numpy.ones_like(array) for array in arrays])
    gradient = module_of(model).embed.weight.grad
    assert gradient[:2].all() and not gradient[2:].any()


def test_rows_of_tags_are_saved_by_name():
    model = built("TagEmbed")
    model.begin_update(tagged(Vocab(), "NN", "VB"))
    again = tag_embed(4).from_bytes(model.to_bytes())
    docs = tagged(Vocab(), "VB", "JJ", "NN")
    assert numpy.array_equal(again.predict(docs)[0], model.predict(docs)[0])


@pytest.mark.parametrize(
    ("attribute", "values"),
    [("POS", {"pos": ["NOUN", "VERB"]}), ("MORPH", {"morphs": ["Case=Nom", "Tense=Past"]})],
)
def test_other_attributes_are_read(attribute, values):
    model, vocab = built("TagEmbed", attribute=attribute), Vocab()
    model.begin_update([Doc(vocab, words=["a", "b"], tags=["NN", "NN"], **values)])
    assert set(model.attrs["rows"]) == set(*values.values())


def test_predicted_tags_of_an_earlier_component_are_read(tools):
    nlp = spacy.blank("en")
    nlp.add_pipe("tagger")
    encode = tools.small_encoder("BiLSTM")
    embed = {"@architectures": "spacy-psa.TagEmbed.v1", "width": 8}
    model = tools.small_model(encoder=encode, embed=embed)
    nlp.add_pipe("crf_ner", name="ner", config={"model": model})
    gold = []
    for line in tools.marked:
        words, spans = tools.read_marked(line)
        tags = ["NN"] * len(words)
        for start, end, _ in spans:
            tags[start:end] = ["NNP"] * (end - start)
        doc = Doc(nlp.vocab, words=words, tags=tags)
        doc.set_ents([Span(doc, start, end, "NAME") for start, end, _ in spans])
        gold.append(doc)

    def bare(doc):
        return Doc(nlp.vocab, words=[token.text for token in doc])

    def examples():
        return [Example(bare(doc), doc) for doc in gold]

    optimizer = nlp.initialize(examples, sgd=Adam(0.02))
    with nlp.select_pipes(enable="tagger"):
        for _ in range(15):
            nlp.update(examples(), sgd=optimizer)
    for _ in range(15):
        nlp.update(examples(), sgd=optimizer, annotates=["tagger"])
    (node,) = (n for n in nlp.get_pipe("ner").model.walk() if n.name == "tag_embed")
    assert set(node.attrs["rows"]) == {"NN", "NNP"}
    # Names side by side are one run of tags: where one ends cannot be seen.
    for doc in gold:
        predicted = nlp(bare(doc))
        inside = [bool(token.ent_type_) for token in predicted]
        assert inside == [token.tag_ == "NNP" for token in predicted]
        assert inside == [bool(token.ent_type_) for token in doc]
