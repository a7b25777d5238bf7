"""What every labelling component does, shown on `crf_ner`."""

import numpy
import pytest
import torch
from spacy.tokens import Doc
from thinc.api import Adam, Model

from spacy_psa.pipeline.chain import labeler
from tests.helpers.pipelines import (
    MARKED,
    TEXTS,
    hash_embed,
    make_examples,
    make_nlp,
    random_nlp,
    small_model,
    text_docs,
    train,
)
from tests.helpers.processes import run_elsewhere
from tests.helpers.tasks import make_task_nlp

HEADS = ["label_pair", "transition", "softmax"]


# Before initialization, and where there is nothing to label


def test_not_initialized():
    nlp = make_nlp()
    ner = nlp.get_pipe("ner")
    doc = nlp.make_doc("Ada met Evans")
    for use in (lambda: nlp(doc.text), lambda: ner.predict([doc]), lambda: ner.distribution([doc])):
        with pytest.raises(ValueError, match="initialize"):
            use()
    with pytest.raises(ValueError):
        nlp.update(make_examples(nlp), sgd=Adam(0.01))


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("words", [[], ["Bath"], [" "], ["\n\n"], [" ", "Bath", "\n"]])
def test_docs_of_no_token_one_token_or_blanks_are_annotated(head, words):
    nlp = random_nlp(head=head)
    doc = nlp.get_pipe("ner")(Doc(nlp.vocab, words=words))
    assert len(doc) == len(words) and doc.has_annotation("ENT_IOB", require_complete=True)


def test_update_takes_empty_docs():
    nlp = make_nlp()
    examples = make_examples(nlp, ["", *MARKED[:3], ""])
    history = train(nlp, 5, Adam(0.01), examples)
    assert history[-1] < history[0]
    before = nlp.to_bytes()
    assert nlp.update(make_examples(nlp, ["", ""]), sgd=Adam(0.1)) == {"ner": 0.0}
    assert nlp.to_bytes() == before
    assert nlp.update([], sgd=Adam(0.1)) == {}


def test_distribution_without_tokens_is_an_error(trained):
    with pytest.raises(ValueError, match="no token"):
        trained.get_pipe("ner").distribution([trained.make_doc("")])


@pytest.mark.parametrize("factory", ["crf_tagger", "crf_chunker"])
def test_other_labelers_need_weights_too(factory):
    nlp = make_task_nlp(factory)
    with pytest.raises(ValueError, match="initialize"):
        nlp("dogs bark")


# Distributions and predictions


@pytest.mark.parametrize("head", HEADS)
def test_marginals_sum_to_one_and_the_best_sequence_is_predicted(head):
    nlp = random_nlp(head=head)
    ner = nlp.get_pipe("ner")
    docs = text_docs(nlp, ["", *TEXTS])
    chain = ner.distribution(docs)
    filled = [doc for doc in docs if len(doc)]
    assert chain.lengths.tolist() == [len(doc) for doc in filled]
    sums = chain.marginals.sum(-1)
    predicted = [found.spans for doc, found in zip(docs, ner.predict(docs)) if len(doc)]
    for row, (doc, spans) in enumerate(zip(filled, predicted, strict=True)):
        torch.testing.assert_close(sums[row, : len(doc)], torch.ones(len(doc)))
        assert not sums[row, len(doc) :].any()
        assert chain.argmax[row].tolist() == ner.scheme.encode(len(doc), spans).tolist()


def test_prediction_does_not_depend_on_the_batch():
    nlp = random_nlp()
    ner = nlp.get_pipe("ner")
    rng = numpy.random.default_rng(1)
    words = [word for text in TEXTS for word in text.split()]
    docs = [
        Doc(nlp.vocab, words=rng.choice(words, n).tolist()) for n in [*rng.integers(0, 40, 30), 150]
    ]
    alone = [ner.predict([doc])[0] for doc in docs]
    for budget in (1, 60, 4000):
        ner.batch_tokens = budget
        assert ner.predict(docs) == alone


@pytest.mark.parametrize("tight", ["tokens", "potentials"])
def test_batches_have_a_bound_and_long_docs_do_not_pad_short_ones(tight, monkeypatch):
    nlp = random_nlp()
    ner = nlp.get_pipe("ner")
    if tight == "tokens":
        ner.batch_tokens = 50
    else:  # with many tags a token has many potentials, one for each legal pair
        monkeypatch.setattr(labeler, "POTENTIALS", 50 * len(ner._pairs))
    given = []
    predict = Model.predict

    def spy(model, docs):
        given.append([len(doc) for doc in docs])
        return predict(model, docs)

    monkeypatch.setattr(Model, "predict", spy)
    sizes = [3, 80, 0, 20, 4, 19, 5]
    ner.predict([Doc(nlp.vocab, words=["a"] * n) for n in sizes])
    assert sorted(n for batch in given for n in batch) == [3, 4, 5, 19, 20, 80]
    assert all(len(batch) == 1 or len(batch) * max(batch) <= 50 for batch in given)
    assert len(given) == 3


def test_sentence_boundaries_serve_embedders_of_spacy():
    characters = {"@architectures": "spacy.CharacterEmbed.v2", "width": 8, "nM": 4, "nC": 4}
    for embed in (hash_embed(), {**characters, "rows": 50, "include_static_vectors": False}):
        nlp = make_nlp(small_model(embed=embed))
        train(nlp, 3, Adam(0.01))
        ner = nlp.get_pipe("ner")
        apart = text_docs(nlp, TEXTS[:3])
        joined = Doc.from_docs(apart, ensure_whitespace=False)
        for i in range(1, len(joined)):
            joined[i].is_sent_start = i in (len(apart[0]), len(apart[0]) + len(apart[1]))
        torch.testing.assert_close(
            ner.distribution([joined]).marginals, ner.distribution(apart).marginals
        )


SEVERAL_PROCESSES = """
import json, sys
import spacy, torch
path, *texts = sys.argv[1:]
torch.set_num_threads(2)
nlp = spacy.load(path)
before = [len(doc.ents) for doc in nlp.pipe(texts * 5)]
x = torch.randn(400, 400)
(x @ x).sum()  # the parent has used its threads
after = [len(doc.ents) for doc in nlp.pipe(texts * 5, n_process=2, batch_size=4)]
print(json.dumps([before, after, torch.get_num_threads()]))
"""


def test_several_processes_annotate_with_threads_on(trained_path):
    before, after, threads = run_elsewhere(
        SEVERAL_PROCESSES, trained_path, *TEXTS, OMP_NUM_THREADS="2"
    )
    assert after == before and sum(after) > 50
    assert threads == 2
