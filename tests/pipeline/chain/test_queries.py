"""What can be asked of a component about a doc: marginals, posteriors, entropy, the k best."""

import numpy
import pytest
import spacy
from spacy.tokens import DocBin, Span
from thinc.api import Model

from spacy_psa.errors import InputError
from tests.helpers.pipelines import TEXTS, make_examples, make_nlp, train


def test_own_predictions_are_no_evidence(unsure):
    """What is asked of an annotated doc is what is asked of a bare one."""
    nlp = unsure()
    ner = nlp.get_pipe("ner")
    bare, done = nlp.make_doc(TEXTS[0]), nlp(TEXTS[0])
    numpy.testing.assert_array_equal(ner.marginals(done), ner.marginals(bare))
    assert ner.entropy(done) == ner.entropy(bare) > 0
    spans = [Span(bare, ent.start, ent.end, ent.label_) for ent in done.ents]
    assert ner.posterior(done.ents).tolist() == ner.posterior(spans).tolist()
    (through,) = DocBin(docs=[done], store_user_data=True).get_docs(nlp.vocab)
    assert ner.entropy(through) == ner.entropy(bare)
    done.ents = [*done.ents, Span(done, 1, 2, "ORG")]  # a user's own
    assert ner.posterior([Span(done, 1, 2, "ORG")]) == pytest.approx([1.0])
    assert max(ner.posterior(done.ents[:1])) < 1.0


def test_wrong_questions_are_one_error_each(unsure):
    nlp = unsure()
    ner = nlp.get_pipe("ner")
    doc, other = nlp.make_doc("Ada met Evans"), nlp.make_doc("Ada left")
    with pytest.raises(InputError, match=r"'Evans' has the label 'ART'.*LOC, ORG, PER"):
        ner.posterior([Span(doc, 2, 3, "ART")])
    with pytest.raises(InputError, match="label ''"):
        ner.posterior([doc[2:3]])
    with pytest.raises(InputError, match="'left' is a span of another doc"):
        ner.posterior([Span(doc, 0, 1, "PER"), Span(other, 1, 2, "PER")])
    assert len(ner.posterior([])) == 0
    assert ner.posterior([Span(doc, 2, 2, "PER")]) == [0.0]


WAYS = [{}, {"confidence": True}, {"decode": "mbr"}, {"decode": "threshold"}]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_impossible_sentence_is_named_and_the_other_docs_go_on(way, monkeypatch):
    """A model may exclude everything."""
    nlp = make_nlp(**way)
    train(nlp, steps=0)
    ner = nlp.get_pipe("ner")
    predict = Model.predict

    def excluding(model, docs):
        return [
            numpy.full_like(array, -numpy.inf) if doc.text.startswith("Bad") else array
            for doc, array in zip(docs, predict(model, docs))
        ]

    monkeypatch.setattr(Model, "predict", excluding)
    bad = nlp.make_doc("Bad luck")
    asked = [ner, ner.marginals, ner.entropy, lambda doc: ner.kbest(doc, 2)]
    asked.append(lambda doc: ner.posterior([Span(doc, 0, 1, "PER")]))
    for ask in asked:
        with pytest.raises(InputError, match="no legal analysis of the sentence 'Bad luck'"):
            ask(bad)
    failed = []
    nlp.set_error_handler(lambda name, proc, docs, error: failed.extend(docs))
    done = list(nlp.pipe(["Ada left", "Bad luck", "Evans"]))
    assert [doc.text for doc in done] == ["Ada left", "Evans"]
    assert [doc.text for doc in failed] == ["Bad luck"]


def test_a_doc_that_the_upstream_has_not_seen_is_an_error():
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec")
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "tok2vec"}
    model = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": listener}
    ner = nlp.add_pipe("crf_ner", name="ner", config={"model": model})
    nlp.initialize(lambda: make_examples(nlp))
    unseen = nlp.make_doc("Ann left")
    asked = [ner, lambda doc: ner.analyses([doc]), lambda doc: ner.distribution([doc])]
    for ask in (ner.marginals, ner.entropy, *asked):
        with pytest.raises(InputError, match="ner: it listens to tok2vec, which has not seen"):
            ask(unseen)
    assert ner.marginals(nlp("Ann left")).shape == (2, len(ner.tags))
