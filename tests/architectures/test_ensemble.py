"""Several models in one: `Ensemble.v1`."""

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc
from thinc.api import Adam

from spacy_psa.architectures.sentencewise import ensemble, sentence_scores
from spacy_psa.errors import InputError
from spacy_psa.sentences import SplitDocs
from spacy_psa.structs.tree import SpanTree
from tests.helpers.analyses import enumerate_doc
from tests.helpers.parsers import chart_model, make_parser, train_parser, tree_examples
from tests.helpers.pipelines import (
    entities,
    hash_embed,
    make_examples,
    make_nlp,
    parameters,
    randomize,
    small_model,
    train,
)
from tests.helpers.trees import constituents


def ensemble_config(*models):
    members = {f"m{i}": model for i, model in enumerate(models)}
    return {"@architectures": "spacy-psa.Ensemble.v1", "*": members}


@pytest.fixture
def nlp():
    nlp = make_nlp(ensemble_config(small_model(), small_model(embed=hash_embed())))
    train(nlp, steps=0)
    randomize(nlp.get_pipe("ner"))
    return nlp


def test_the_log_potentials_are_the_mean_of_those_of_the_models(nlp):
    doc = nlp.make_doc("Ada met Bob")
    model = nlp.get_pipe("ner").model
    parts = [layer.predict([doc])[0] for layer in model.layers]
    assert abs(parts[0] - parts[1]).max() > 0.1
    numpy.testing.assert_allclose(model.predict([doc])[0], sum(parts) / 2, atol=1e-5)


def test_probabilities_are_those_of_the_chain_with_these_potentials(nlp):
    ner = nlp.get_pipe("ner")
    doc = nlp.make_doc("Ada met Bob")
    truth = enumerate_doc(ner, doc)
    best = ner.kbest(doc, 1)[0]
    assert [(s.start, s.end, s.label_) for s in best[1]] == list(truth.best)
    assert ner.entropy(doc) == pytest.approx(truth.entropy, abs=1e-4)


def test_the_gradient_of_each_model_is_its_share(nlp):
    """By finite differences of the loss in one weight of each model."""
    ner = nlp.get_pipe("ner")
    examples = make_examples(nlp)
    docs = [example.predicted for example in examples]

    def loss():
        return ner.get_loss(examples, ner.model.predict(docs))[0]

    scores, backprop = ner.model.begin_update(docs)
    backprop(ner.get_loss(examples, scores)[1])
    for layer in ner.model.layers:
        (head,) = [n for n in layer.walk() if n.name == "label_pair"]
        weight = next(iter(head.shims[0]._model.parameters()))
        place = int(weight.grad.abs().argmax())
        gradient = float(weight.grad.view(-1)[place])
        flat = weight.data.view(-1)
        before = float(flat[place])
        values = []
        for step in (1e-2, -1e-2):
            flat[place] = before + step
            values.append(loss())
        flat[place] = before
        assert (values[0] - values[1]) / 2e-2 == pytest.approx(gradient, rel=0.02)


def test_it_learns_a_handful_of_sentences():
    nlp = make_nlp(ensemble_config(small_model(), small_model("label_pair", embed=hash_embed())))
    train(nlp, steps=30, optimizer=Adam(0.02))
    for example in make_examples(nlp):
        assert entities(nlp(example.reference.text)) == entities(example.reference)


def test_it_goes_to_disk_and_back(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    text = "Ada met Bob in London ."
    again = spacy.load(tmp_path)
    assert entities(again(text)) == entities(nlp(text))
    pairs = zip(parameters(again.get_pipe("ner")), parameters(nlp.get_pipe("ner")), strict=True)
    assert all((one == other).all() for one, other in pairs)


def test_a_label_that_is_added_is_improbable_for_all_models(nlp):
    ner = nlp.get_pipe("ner")
    doc = nlp.make_doc("Ada met Bob")
    before = entities(nlp(doc.copy()))
    assert ner.add_label("SHIP") == 1
    assert len(ner.model.predict([doc])[0]) == 3
    assert ner.model.get_dim("nO") == len(ner.tags)
    assert entities(nlp(doc.copy())) == before


def test_models_that_need_whole_docs_get_them():
    memory = {**small_model()}
    memory["tok2vec"] = {
        "@architectures": "spacy-psa.DocumentMemory.v1",
        "occurrences": 5,
        "width": 8,
        "tok2vec": memory["tok2vec"],
    }
    nlp = make_nlp(ensemble_config(memory, small_model()))
    train(nlp, steps=0)
    randomize(nlp.get_pipe("ner"))
    model = nlp.get_pipe("ner").model
    words = ["Ada", "left", ".", "Ada", "met", "Bob", "."]
    doc = Doc(nlp.vocab, words, sent_starts=[1, -1, -1, 1, -1, -1, -1])
    split = SplitDocs([doc])
    found = sentence_scores(model, split)([0, 1])
    parts = [sentence_scores(layer, split)([0, 1]) for layer in model.layers]
    for array, one, other in zip(found, *parts, strict=True):
        numpy.testing.assert_allclose(array, (one + other) / 2, atol=1e-5)
    whole = model.predict([doc])
    assert [len(array) for array in whole] == [3, 4]
    for array, wanted in zip(whole, found):
        numpy.testing.assert_allclose(array, wanted, atol=1e-5)


@pytest.fixture
def parsing():
    """A pipeline with two parsers in one, each with a head for tags."""
    two = [chart_model(encoder, tag_hidden=8) for encoder in ("BiLSTM", "FactoredTransformer")]
    return make_parser(ensemble_config(*two), loss="log_likelihood")


def test_probabilities_of_trees_are_those_of_the_mean_scores(parsing):
    train_parser(parsing)
    parser = parsing.get_pipe("parser")
    randomize(parser)
    doc = parsing.make_doc("Ada met Bob")
    parts = [layer.predict([doc])[0] for layer in parser.model.layers]
    assert abs(parts[0] - parts[1]).max() > 0.1
    trees = SpanTree.from_spans(torch.from_numpy(sum(parts) / 2), torch.tensor([3]))
    (wanted,) = trees.kbest(3)
    found = parser.kbest(doc, 3)
    assert [log_prob for log_prob, _ in found] == pytest.approx([p for p, _ in wanted], abs=1e-4)


def test_parsers_learn_trees_and_tags_together(parsing):
    examples = tree_examples(parsing)
    train_parser(parsing, steps=40, examples=examples)
    for example in examples:
        doc = parsing(Doc(parsing.vocab, words=[t.text for t in example.reference]))
        assert constituents(doc) == constituents(example.reference)
        assert [t.tag_ for t in doc] == [t.tag_ for t in example.reference]


def test_without_models_it_is_an_error():
    with pytest.raises(InputError, match=r"Ensemble\.v1 needs at least one model"):
        ensemble()
