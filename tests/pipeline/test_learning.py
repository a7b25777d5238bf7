"""Losses and updates of every labelling component, shown on `crf_ner`."""

import itertools

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Adam, Optimizer

from spacy_psa.errors import InputError
from spacy_psa.training.optimizers import sgd
from tests.helpers.pipelines import (
    MARKED,
    hash_embed,
    make_examples,
    make_nlp,
    parameters,
    random_nlp,
    small_model,
    train,
)
from tests.helpers.tasks import task_model, train_tasks

HEADS = ["label_pair", "transition", "softmax"]


def scores_of(ner, examples):
    return ner.model.predict([eg.predicted for eg in examples])


def missing_example(nlp, tags):
    """An example annotated with IOB tags, "-" where there is no annotation."""
    words = ["Ada", "Lovelace", "met", "Evans", "in", "Bath"][: len(tags)]
    reference = Doc(nlp.vocab, words=words, ents=[tag.replace("-", "", tag == "-") for tag in tags])
    return Example(Doc(nlp.vocab, words=words), reference)


@pytest.mark.parametrize(
    ("reduction", "label_smoothing", "recall_cost"),
    [("mean", 0.0, 0.0), ("sum", 0.0, 0.0), ("mean", 0.25, 0.0), ("mean", 0.0, 1.5)],
)
@pytest.mark.parametrize("head", HEADS)
def test_gradient_of_the_loss_is_the_finite_difference(
    head, reduction, label_smoothing, recall_cost
):
    nlp = random_nlp(head=head)
    ner = nlp.get_pipe("ner")
    ner._reduction, ner._label_smoothing = reduction, label_smoothing
    ner._recall_cost = recall_cost
    examples = make_examples(nlp, ["[Ada|PER] left [New Bath|LOC]", "", "[Acme|ORG]"])
    examples.append(missing_example(nlp, ["B-PER", "I-PER", "-", "-"]))
    scores = [array.astype("float64") for array in scores_of(ner, examples)]
    _, gradient = ner.get_loss(examples, scores)
    rng = numpy.random.default_rng(0)
    step = 1e-5
    for i in (0, 2, 3):
        assert gradient[i].shape == scores[i].shape
        direction = rng.normal(size=scores[i].shape)
        moved = [[*scores[:i], scores[i] + s * direction, *scores[i + 1 :]] for s in (step, -step)]
        up, down = (ner.get_loss(examples, m)[0] for m in moved)
        assert (up - down) / (2 * step) == pytest.approx((gradient[i] * direction).sum(), rel=1e-6)
    assert gradient[1].shape[0] == 0


def every_analysis(ner, scores):
    """All tag sequences of a sentence, (sequences, n), and their log probabilities."""
    chain = ner._chain(
        torch.from_numpy(scores),
        torch.tensor([len(scores)]),
        legal=scores.shape[1] != len(ner.tags),
    )
    every = torch.tensor(list(itertools.product(range(len(ner.tags)), repeat=len(scores))))
    return every, torch.cat([chain.log_prob(tags[None]) for tags in every]).double()


@pytest.mark.parametrize("head", HEADS)
def test_label_smoothing_mixes_the_annotation_with_all_analyses(head):
    nlp = random_nlp(head=head)
    ner = nlp.get_pipe("ner")
    examples = make_examples(nlp, ["[Ada|PER] left Bath"])
    scores = scores_of(ner, examples)
    told, _ = ner.get_loss(examples, scores)
    _, log_probs = every_analysis(ner, scores[0])
    mean = float(-log_probs[log_probs > -torch.inf].mean())
    ner._label_smoothing = 0.25
    assert ner.get_loss(examples, scores)[0] == pytest.approx(0.75 * told + 0.25 * mean, rel=1e-5)
    ner._label_smoothing = 1.0
    assert ner.get_loss(examples, scores)[0] == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize("head", HEADS)
def test_recall_cost_is_a_bonus_for_analyses_that_miss_gold_tokens(head):
    nlp = random_nlp(head=head)
    ner = nlp.get_pipe("ner")
    examples = make_examples(nlp, ["[Ada|PER] left [Bath|LOC]"])
    scores = scores_of(ner, examples)
    told, _ = ner.get_loss(examples, scores)
    every, log_probs = every_analysis(ner, scores[0])
    missed = (every[:, [0, 2]] == 0).sum(1)
    ner._recall_cost = 1.5
    wanted = told + float(torch.logsumexp(log_probs + 1.5 * missed, 0))
    assert ner.get_loss(examples, scores)[0] == pytest.approx(wanted, rel=1e-5)


def test_recall_cost_is_for_annotated_tokens_of_spans_alone():
    nlp = random_nlp()
    ner = nlp.get_pipe("ner")
    example = missing_example(nlp, ["O", "-", "O", "-"])
    scores = scores_of(ner, [example])
    without, _ = ner.get_loss([example], scores)
    ner._recall_cost = 2.0
    assert ner.get_loss([example], scores)[0] == without > 0


def test_a_model_of_a_recall_cost_misses_fewer_entities():
    found = {}
    for cost in (0.0, 4.0):
        nlp = make_nlp()
        ner = nlp.get_pipe("ner")
        ner._recall_cost = cost
        # A word that is an entity in two of five sentences.
        examples = make_examples(nlp, ["[Bath|LOC] is here"] * 2 + ["Bath is here"] * 3)
        optimizer = nlp.initialize(lambda examples=examples: examples)
        for _ in range(60):
            nlp.update(examples, sgd=optimizer)
        found[cost] = [ent.text for ent in nlp("Bath is here").ents]
    assert found == {0.0: [], 4.0: ["Bath"]}


def test_mean_is_the_sum_over_the_number_of_sentences():
    nlp = random_nlp()
    ner = nlp.get_pipe("ner")
    examples = make_examples(nlp, [*MARKED, ""])
    scores = scores_of(ner, examples)
    mean, d_mean = ner.get_loss(examples, scores)
    ner._reduction = "sum"
    total, d_total = ner.get_loss(examples, scores)
    count = len(MARKED)
    assert total == pytest.approx(count * mean)
    numpy.testing.assert_allclose(d_total[0], count * d_mean[0], rtol=1e-5)
    parts = [ner.get_loss([eg], [s])[0] for eg, s in zip(examples[:-1], scores)]
    assert sum(parts) == pytest.approx(total)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.5])
def test_example_without_annotation_has_no_loss_and_no_gradient(label_smoothing):
    nlp = random_nlp()
    ner = nlp.get_pipe("ner")
    ner._label_smoothing = label_smoothing
    example = missing_example(nlp, ["-"] * 6)
    loss, (gradient,) = ner.get_loss([example], scores_of(ner, [example]))
    assert loss == 0.0 and not gradient.any()


# Updates


class Recorder(Optimizer):
    """An optimizer that changes nothing and keeps the gradients that it is given."""

    def __init__(self):
        super().__init__(0.0, grad_clip=0.0)
        self.gradients = {}

    def __call__(self, key, weights, gradient, *, lr_scale=1.0):
        self.gradients[key] = gradient.copy()
        return weights, gradient * 0


def test_gradients_are_clipped_by_the_norm_of_all_layers_together():
    seen = {}
    for limit in (0.0, 0.5, 1e6):
        nlp = make_nlp(small_model(embed=hash_embed()), max_grad_norm=limit)
        train(nlp, steps=0)
        recorder = Recorder()
        nlp.update(make_examples(nlp), sgd=recorder, drop=0.0)
        seen[limit] = [recorder.gradients[key] for key in sorted(recorder.gradients)]
    names = {name for _, name in recorder.gradients}
    assert {"E", "pair.weight"} <= names  # a parameter of thinc's and one of torch's

    def norm(gradients):
        return sum(float((g**2).sum()) for g in gradients) ** 0.5

    assert norm(seen[0.0]) > 0.5
    assert norm(seen[0.5]) == pytest.approx(0.5, rel=1e-4)
    for free, clipped, within in zip(seen[0.0], seen[0.5], seen[1e6], strict=True):
        scaled = free * 0.5 / norm(seen[0.0])
        numpy.testing.assert_allclose(clipped, scaled, rtol=1e-3, atol=1e-7)
        numpy.testing.assert_allclose(within, free, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "optimizer",
    [sgd(0.05, use_averages=True), Adam(0.01, use_averages=True)],
    ids=["SGD.v1", "Adam.v1"],
)
def test_averaged_weights_are_used_within_use_params(optimizer):
    nlp = make_nlp()
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    ner = nlp.get_pipe("ner")

    def weights():
        return [parameter.detach().clone() for parameter in parameters(ner)]

    averages = [torch.zeros_like(p) for p in weights()]
    for t in range(1, 6):
        nlp.update(examples, sgd=optimizer)
        decay = (1 + t) / (10 + t)
        averages = [decay * a + (1 - decay) * p for a, p in zip(averages, weights())]
    last = weights()
    docs = [eg.predicted for eg in examples]
    before = ner.distribution(docs).marginals
    with nlp.use_params(optimizer.averages):
        for held, average in zip(weights(), averages, strict=True):
            torch.testing.assert_close(held, average, rtol=1e-4, atol=1e-6)
        assert not torch.allclose(ner.distribution(docs).marginals, before)
    assert all(torch.equal(a, b) for a, b in zip(weights(), last, strict=True))
    torch.testing.assert_close(ner.distribution(docs).marginals, before)


def test_gradients_of_several_updates_add_up_before_a_step():
    def weights(nlp):
        return nlp.get_pipe("ner").model.get_ref("head").shims[0].module.pair.weight.detach()

    trained = []
    for parts in ([slice(0, 8)], [slice(0, 3), slice(3, 8)]):
        nlp = make_nlp(reduction="sum", max_grad_norm=0.0)
        train(nlp, steps=0)
        examples = make_examples(nlp)
        nlp.update(examples, sgd=sgd(0.001, 0.0))  # all words have their rows
        for part in parts:
            nlp.update(examples[part], sgd=False)
        nlp.get_pipe("ner").finish_update(sgd(0.001, 0.0))
        trained.append(weights(nlp))
    torch.testing.assert_close(trained[0], trained[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("limit", [-1.0, "NaN", "5"])
@pytest.mark.parametrize("factory", ["crf_ner", "crf_chunker", "crf_tagger", "constituency_parser"])
def test_a_limit_of_gradients_that_would_turn_them_round_is_refused(factory, limit):
    nlp = spacy.blank("en")
    message = "^learner: max_grad_norm is .*: it must be 0 for no limit, or more$"
    with pytest.raises(InputError, match=message):
        # As a component is made; a config with a string is refused by spaCy, or comes here.
        nlp.add_pipe(factory, name="learner", config={"max_grad_norm": limit})
    learner = nlp.add_pipe(factory, name="learner")
    with pytest.raises(InputError, match=message):
        learner.max_grad_norm = limit


@pytest.mark.parametrize(
    ("factory", "setting"),
    [
        ("crf_ner", "label_smoothing"),
        ("crf_tagger", "label_smoothing"),
        ("crf_chunker", "threshold"),
        ("constituency_parser", "tag_weight"),
    ],
)
def test_a_number_as_a_string_is_one_error(factory, setting):
    with pytest.raises(InputError, match=f"^learner: {setting} is 'NaN': "):
        spacy.blank("en").add_pipe(factory, name="learner", config={setting: "NaN"})


def test_three_components_train_over_one_shared_encoder():
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": task_model()["tok2vec"]})
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 24, "upstream": "*"}
    head = {"@architectures": "spacy-psa.CRF.v1", "potentials": "transition", "tok2vec": listener}
    for name in ("crf_tagger", "crf_chunker", "crf_ner"):
        nlp.add_pipe(name, config={"model": head})
    examples = train_tasks(nlp, steps=120)
    scores = nlp.evaluate(examples)
    assert (scores["tag_acc"], scores["chunks_f"], scores["ents_f"]) == (1.0, 1.0, 1.0)
