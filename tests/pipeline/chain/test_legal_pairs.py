"""Components only score the legal pairs of tags, or tags and pairs apart, and answer the same."""

import subprocess
import sys

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Span

from spacy_psa.analysis.temperature import Likelihood
from spacy_psa.architectures import crf
from spacy_psa.architectures.sentencewise import ensemble
from spacy_psa.child_processes import child_environment
from spacy_psa.pipeline.distillation import Teacher, learn_from
from spacy_psa.structs.emission_chain import EmissionChain
from spacy_psa.structs.pair_chain import PairChain
from tests.helpers.pipelines import entities, make_examples, make_nlp, small_model, train


def trained(monkeypatch, legal_alone, head):
    """A pipeline after a few steps; with all pairs, or only with the legal ones."""
    if not legal_alone:
        monkeypatch.setattr(crf, "prepare_heads", lambda model, legal: None)
    nlp = make_nlp(small_model(head))
    train(nlp, steps=5)
    return nlp


@pytest.fixture(params=["label_pair", "transition"])
def both(request, monkeypatch):
    with monkeypatch.context() as context:
        whole = trained(context, False, request.param)
    return trained(monkeypatch, True, request.param), whole


@pytest.fixture(params=["BIOES", "BIO"])
def apart(request, monkeypatch):
    """Pipelines after the same few steps: with transitions apart, as for many tags, and without."""
    pipelines = []
    for most in (0, crf.MANY):
        monkeypatch.setattr(crf, "MANY", most)
        nlp = make_nlp(small_model("transition"), scheme=request.param)
        train(nlp, steps=5)
        pipelines.append(nlp)
    monkeypatch.setattr(crf, "MANY", 0)
    return pipelines


def answers(nlp):
    ner = nlp.get_pipe("ner")
    docs = [eg.predicted for eg in make_examples(nlp)]
    evident = docs[0].copy()
    evident.set_ents([Span(evident, 0, 1, "LOC")], default="missing")
    return {
        "log_partition": ner.distribution(docs).log_partition.numpy(),
        "marginals": numpy.concatenate([ner.marginals(doc) for doc in docs]),
        "entropy": numpy.array([ner.entropy(doc) for doc in docs]),
        "evidence": ner.marginals(evident),
        "kbest": numpy.array([p for doc in docs for p, _ in ner.kbest(doc, 3)]),
        "posterior": ner.posterior([Span(docs[0], 0, 2, "PER"), Span(docs[0], 3, 5, "PER")]),
    }


def assert_same(some, whole):
    ours, theirs = answers(some), answers(whole)
    for name in theirs:
        numpy.testing.assert_allclose(ours[name], theirs[name], rtol=1e-4, atol=1e-5, err_msg=name)
    for eg in make_examples(some):
        assert entities(some(eg.predicted.copy())) == entities(whole(eg.predicted.copy()))


def test_training_and_answers_are_those_with_all_pairs(both):
    some, whole = both
    docs = [eg.predicted for eg in make_examples(some)]
    assert isinstance(some.get_pipe("ner").distribution(docs), PairChain)
    assert_same(some, whole)


def test_training_and_answers_are_those_with_transitions_in_the_scores(apart):
    docs = [eg.predicted for eg in make_examples(apart[0])]
    chains = [nlp.get_pipe("ner").distribution(docs) for nlp in apart]
    assert [isinstance(chain, EmissionChain) for chain in chains] == [True, False]
    for decode in ("viterbi", "mbr", "threshold"):
        for nlp in apart:
            nlp.get_pipe("ner").decode = decode
        assert_same(*apart)


def test_other_losses_and_calibration_agree_with_transitions_apart(apart):
    figures = []
    for nlp in apart:
        ner = nlp.get_pipe("ner")
        examples = make_examples(nlp)
        slopes = Likelihood(ner, examples).at(2.0)
        ner.temperature = 2.0
        warm = ner.marginals(examples[0].predicted)
        ner.temperature = 1.0
        optimizer = nlp.resume_training()
        teacher, ner._label_smoothing, ner._recall_cost = Teacher(nlp, "ner"), 0.2, 0.5
        learn_from(ner, teacher, 0.3)
        losses = [nlp.update(examples, sgd=optimizer)["ner"] for _ in range(3)]
        losses.append(nlp.rehearse(examples, sgd=optimizer)["ner"])
        learn_from(ner, None)
        ner.model = ensemble(ner.model, ner.model.copy())
        ner.model.set_dim("nO", len(ner.tags))
        losses.append(
            ner.get_loss(examples, ner.model.predict([eg.predicted for eg in examples]))[0]
        )
        figures.append([*slopes, *losses, *warm.ravel()])
    numpy.testing.assert_allclose(*figures, rtol=1e-4, atol=1e-5)


def test_a_saved_model_keeps_its_pairs(both, tmp_path):
    some, _ = both
    some.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    head = loaded.get_pipe("ner").model.get_ref("head").shims[0]
    assert len(head.cfg["pairs"]) == int(loaded.get_pipe("ner").scheme.legal()[0].sum())
    before, after = answers(some), answers(loaded)
    for name in before:
        numpy.testing.assert_array_equal(before[name], after[name])


def test_a_tagger_scores_all_pairs():
    nlp = spacy.blank("en")
    tagger = nlp.add_pipe("crf_tagger", config={"model": {"tok2vec": {"encode": {"hidden": 8}}}})
    for tag in ("NOUN", "VERB"):
        tagger.add_label(tag)
    nlp.initialize()
    (scores,) = tagger.model.predict([nlp.make_doc("fish swim")])
    assert scores.shape == (2, 4)
    assert not isinstance(tagger.distribution([nlp.make_doc("fish swim")]), PairChain)
    assert torch.isfinite(torch.from_numpy(scores)).all()


MANY = """
import resource
import spacy
from spacy.training import Example
from tests.helpers.pipelines import small_model

nlp = spacy.blank("en")
nlp.add_pipe("crf_ner", config={"model": small_model("label_pair")})
docs = [nlp.make_doc(f"Word{i} met Ada") for i in range(400)]
examples = [Example.from_dict(doc, {"entities": [(0, len(doc[0]), f"L{i}")]})
            for i, doc in enumerate(docs)]
optimizer = nlp.initialize(lambda: examples)
for i in range(3):
    nlp.update(examples[:4], sgd=optimizer)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_400_labels_are_learned_in_less_memory_than_all_pairs_need():
    """The weights of all 2.6 million pairs of tags are several GB with their gradients."""
    done = subprocess.run(
        [sys.executable, "-c", MANY],
        env=child_environment(OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
    )
    assert int(done.stdout or 0) < 2_500_000, done.stderr
    assert done.returncode == 0
