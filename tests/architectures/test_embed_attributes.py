"""Embedders of shapes and tags."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Adam

from spacy_psa.architectures.embed_attributes import tag_embed, word_shape
from spacy_psa.errors import InputError
from tests.helpers.embedders import built
from tests.helpers.layers import module_of
from tests.helpers.pipelines import MARKED, read_marked, small_encoder, small_model
from tests.helpers.words import docs_of


def close(a, b):
    return numpy.allclose(a, b, rtol=1e-4, atol=1e-6)


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


def test_predicted_tags_of_an_earlier_component_are_read():
    nlp = spacy.blank("en")
    nlp.add_pipe("tagger")
    encode = small_encoder("BiLSTM")
    embed = {"@architectures": "spacy-psa.TagEmbed.v1", "width": 8}
    model = small_model(encoder=encode, embed=embed)
    nlp.add_pipe("crf_ner", name="ner", config={"model": model})
    gold = []
    for line in MARKED:
        words, spans = read_marked(line)
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


def test_another_attribute_is_an_error_that_names_the_right_ones():
    with pytest.raises(InputError, match=r"^TagEmbed\.v1: attribute is 'DEP'.*TAG"):
        tag_embed(attribute="DEP")
