"""`crf_tagger`: tags, their probabilities, and tags that stand on a doc."""

import pytest
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.tagger import TagPrediction
from tests.helpers.pipelines import text_docs
from tests.helpers.tasks import make_task_nlp, train_tasks


@pytest.mark.parametrize("head", ["transition", "label_pair", "softmax"])
def test_tags_are_learnt_by_heart(head):
    nlp = make_task_nlp("crf_tagger", head)
    examples = train_tasks(nlp)
    assert nlp.evaluate(examples)["tag_acc"] == 1.0


@pytest.mark.parametrize("confidence", [False, True])
def test_prediction_is_the_best_tags_and_their_probabilities_where_asked_for(confidence):
    nlp = make_task_nlp("crf_tagger", confidence=confidence)
    train_tasks(nlp, steps=2)
    tagger = nlp.get_pipe("crf_tagger")
    docs = text_docs(nlp, ["the dogs bark", "", "Run"])
    found = tagger.predict(docs)
    assert [type(predicted) for predicted in found] == [TagPrediction] * 3
    for doc, (tags, probabilities) in zip(docs, found, strict=True):
        names = [tagger.tags[tag] for tag in tags]
        assert names == tagger.kbest(doc, 1)[0][1]
        if confidence:
            expected = tagger.marginals(doc)[range(len(doc)), tags]
            assert probabilities == pytest.approx(expected, abs=1e-6)
        else:
            assert probabilities is None


def test_a_tag_that_is_kept_is_sure_whether_the_component_knows_it_or_not():
    nlp = make_task_nlp("crf_tagger", overwrite=False, confidence=True)
    train_tasks(nlp, steps=1)
    words, tags = ["the", "cat", "sleeps"], ["XYZ", "", "NNS"]
    doc = nlp.get_pipe("crf_tagger")(Doc(nlp.vocab, words=words, tags=tags))
    kept, predicted, known = (token._.tag_confidence for token in doc)
    assert kept == known == 1.0 and 0 < predicted < 1
    assert doc[0].tag_ == "XYZ"


def test_tags_on_a_doc_are_evidence_and_own_ones_not():
    nlp = make_task_nlp("crf_tagger", overwrite=False)
    train_tasks(nlp, steps=0)
    tagger = nlp.get_pipe("crf_tagger")
    words = ["Ann", "saw", "dogs", "in", "Bath"]
    done = tagger(Doc(nlp.vocab, words=words))
    assert tagger.entropy(done) == tagger.entropy(Doc(nlp.vocab, words=words)) > 0
    fixed = Doc(nlp.vocab, words=words, tags=["", "NNP", "", "", ""])
    assert tagger.marginals(fixed)[1, tagger.tags.index("NNP")] == pytest.approx(1.0)
    assert tagger(fixed)[1].tag_ == "NNP" and all(token.tag_ for token in fixed)


def test_tokens_without_a_tag_are_summed_out():
    nlp = make_task_nlp("crf_tagger")
    train_tasks(nlp, steps=1)
    tagger = nlp.get_pipe("crf_tagger")
    words = ["the", "cat"]
    bare = Example(Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words))
    potentials = tagger.model.predict([bare.predicted])
    loss, gradient = tagger.get_loss([bare], potentials)
    assert loss == pytest.approx(0, abs=1e-6)
    assert abs(gradient[0]).max() < 1e-6


def test_a_tag_unseen_at_initialization_is_an_error():
    nlp = make_task_nlp("crf_tagger")
    train_tasks(nlp, steps=1)
    words = ["odd"]
    with pytest.raises(InputError, match="'XX'"):
        nlp.update([Example(Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words, tags=["XX"]))])


def test_probability_of_each_tag_is_written_and_survives_saving(tmp_path):
    nlp = make_task_nlp("crf_tagger", confidence=True)
    train_tasks(nlp, steps=0)
    tagger = nlp.get_pipe("crf_tagger")
    doc = nlp("Ann saw her")
    marginals = tagger.marginals(doc)
    chosen = [marginals[i, tagger.tags.index(token.tag_)] for i, token in enumerate(doc)]
    given_by = [token._.tag_confidence for token in doc]
    assert given_by == pytest.approx(chosen, abs=1e-6)
    doc.to_disk(tmp_path / "doc")
    kept = DocBin(docs=[doc], store_user_data=True)
    for copy in (
        next(kept.get_docs(nlp.vocab)),
        Doc(nlp.vocab).from_json(doc.to_json(underscore=["tag_confidence"])),
        Doc(nlp.vocab).from_disk(tmp_path / "doc"),
    ):
        assert [token._.tag_confidence for token in copy] == given_by
    log_prob, tags = tagger.kbest(doc, 1)[0]
    assert tags == [token.tag_ for token in doc] and log_prob < 0
