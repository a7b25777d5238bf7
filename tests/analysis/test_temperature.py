"""The fitted temperature: against the distribution itself, and on truth drawn from it."""

import numpy
import pytest
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_psa.analysis.temperature import HIGHEST, LOWEST, Likelihood, fit_temperature
from tests.helpers.pipelines import (
    entities,
    make_examples,
    make_nlp,
    random_nlp,
    randomize,
    small_model,
    train,
)


def drawn(nlp, temperature, count):
    """Sentences whose entities are drawn from the model at a temperature."""
    pipe = nlp.get_pipe("ner")
    random = numpy.random.default_rng(0)
    words = [f"w{i}" for i in range(40)]
    docs = [Doc(nlp.vocab, words=random.choice(words, 4).tolist()) for _ in range(count)]
    pipe.temperature = temperature
    torch.manual_seed(0)
    tags = [row.tolist() for (row,) in pipe.distribution(docs).sample(1)]
    pipe.temperature = 1.0
    examples = []
    for doc, row in zip(docs, tags):
        reference = doc.copy()
        reference.set_ents([Span(reference, *span) for span in pipe.scheme.decode(row)])
        examples.append(Example(doc, reference))
    return examples


def nats_a_sentence(pipe, examples, temperature):
    pipe.temperature = temperature
    total = 0.0
    for eg in examples:
        tags = torch.from_numpy(pipe._gold_tags(eg, [(0, len(eg.predicted))])[0])[None]
        total -= float(pipe.distribution([eg.predicted]).log_prob(tags))
    pipe.temperature = 1.0
    return total / len(examples)


@pytest.mark.parametrize("settings", [{"reduction": "sum"}, {"label_smoothing": 0.3}])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("head", ["label_pair", "softmax"])
def test_likelihood_is_that_of_the_distribution_at_the_temperature(head, temperature, settings):
    nlp = random_nlp({**settings, "batch_tokens": 20}, head=head)  # several batches
    pipe = nlp.get_pipe("ner")
    examples = make_examples(nlp)
    value, _ = Likelihood(pipe, examples).at(temperature)
    assert value == pytest.approx(nats_a_sentence(pipe, examples, temperature), rel=1e-4)


def test_slope_is_that_of_the_likelihood_in_the_inverse_temperature():
    nlp = random_nlp()
    likelihood = Likelihood(nlp.get_pipe("ner"), make_examples(nlp))
    for beta in (0.3, 1.0, 2.0):
        above, below = (likelihood.at(1 / (beta + h))[0] for h in (1e-3, -1e-3))
        assert likelihood.at(1 / beta)[1] == pytest.approx((above - below) / 2e-3, rel=0.01)


@pytest.mark.parametrize("temperature", [0.8, 2.0, 5.0])
def test_temperature_that_the_truth_was_drawn_at_is_found(temperature):
    nlp = random_nlp()
    likelihood = Likelihood(nlp.get_pipe("ner"), drawn(nlp, temperature, 400))
    assert fit_temperature(likelihood) == pytest.approx(temperature, rel=0.15)


def test_no_other_temperature_is_better():
    nlp = random_nlp()
    likelihood = Likelihood(nlp.get_pipe("ner"), drawn(nlp, 2.0, 60))
    fitted = fit_temperature(likelihood)
    best = likelihood.at(fitted)[0]
    assert all(likelihood.at(fitted * factor)[0] > best for factor in (0.2, 0.8, 0.95, 1.05, 4))


def test_a_model_that_is_never_wrong_is_made_as_sure_as_can_be():
    nlp = random_nlp()
    examples = make_examples(nlp)
    for eg, doc in zip(examples, nlp.pipe(eg.predicted.copy() for eg in examples)):
        eg.reference.set_ents([Span(eg.reference, *ent) for ent in entities(doc)])
    likelihood = Likelihood(nlp.get_pipe("ner"), examples)
    assert fit_temperature(likelihood) == LOWEST


def test_a_model_that_is_worse_than_chance_is_made_as_unsure_as_can_be():
    nlp = random_nlp()
    pipe = nlp.get_pipe("ner")
    likelihood = Likelihood(pipe, drawn(nlp, 1.0, 50))
    for _, arrays in likelihood.batches:
        arrays[:] = [-array for array in arrays]
    assert fit_temperature(likelihood) == HIGHEST


def test_temperature_of_the_component_plays_no_part():
    nlp = random_nlp()
    examples = drawn(nlp, 2.0, 30)
    first = fit_temperature(Likelihood(nlp.get_pipe("ner"), examples))
    nlp.get_pipe("ner").temperature = 5.0
    assert fit_temperature(Likelihood(nlp.get_pipe("ner"), examples)) == first


def test_missing_annotation_and_empty_docs_have_no_say():
    nlp = random_nlp()
    examples = drawn(nlp, 2.0, 30)
    fitted = fit_temperature(Likelihood(nlp.get_pipe("ner"), examples))
    bare = Doc(nlp.vocab, words=["w1", "w2"])
    empty = Doc(nlp.vocab)
    more = [*examples, Example(bare, bare.copy()), Example(empty, empty.copy())]
    assert fit_temperature(Likelihood(nlp.get_pipe("ner"), more)) == pytest.approx(fitted, rel=1e-3)


def test_no_sentence_is_an_error(trained):
    empty = Doc(trained.vocab)
    likelihood = Likelihood(trained.get_pipe("ner"), [Example(empty, empty.copy())])
    with pytest.raises(ValueError, match="no sentences"):
        fit_temperature(likelihood)


def test_the_likelihood_of_documents_is_that_of_the_whole_document():
    """A model with document memory scores the docs of a document together."""
    inner = small_model()
    memory = {"@architectures": "spacy-psa.DocumentMemory.v1", "width": 4, "dropout": 0.0}
    nlp = make_nlp({**inner, "tok2vec": {**memory, "tok2vec": inner["tok2vec"]}}, batch_tokens=20)
    examples = make_examples(nlp)
    for example in examples:
        example.predicted.user_data["document"] = "one"
    train(nlp, 0, examples=examples)
    pipe = nlp.get_pipe("ner")
    randomize(pipe)
    likelihood = Likelihood(pipe, examples)
    assert len(likelihood.batches) > 1
    total = 0.0
    for example, analyses in zip(examples, pipe.analyses([eg.predicted for eg in examples])):
        outside = {t.i: "O" for t in example.reference if not t.ent_type}
        given = analyses.given(require=entities(example.reference), allow=outside)
        total -= given.log_evidence
    assert likelihood.at(1.0)[0] * likelihood.sentences == pytest.approx(total, rel=1e-4)
