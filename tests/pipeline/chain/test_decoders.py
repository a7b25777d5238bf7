"""What is predicted: n best analyses, the highest expected F1, all above a threshold."""

import pytest
import spacy
from spacy.cli.find_threshold import find_threshold
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from thinc.api import Adam

from tests.helpers.pipelines import (
    MARKED,
    TEXTS,
    entities,
    make_examples,
    make_nlp,
    random_nlp,
    read_marked,
    train,
)

# n best


# Minimum Bayes risk


def test_mbr_pipeline_keeps_evidence_and_gives_posteriors():
    nlp = random_nlp()
    mbr = make_nlp(decode="mbr", confidence=True).from_bytes(nlp.to_bytes())
    for text in ["", " ", *TEXTS]:
        doc = mbr.make_doc(text)
        if len(doc) > 3:
            doc.ents = [Span(doc, 1, 3, "ORG")]
        given_spans = entities(doc)
        doc = mbr.get_pipe("ner")(doc)
        found = entities(doc)
        assert set(given_spans) <= set(found)
        assert [(s.start, s.end, s.label_) for s in doc.spans["ner"]] == found
        posteriors = mbr.get_pipe("ner").posterior(doc.ents)
        assert doc.spans["ner"].attrs["scores"] == pytest.approx(posteriors, abs=1e-6)


def test_mbr_of_a_sure_model_is_what_it_learnt(trained_bytes):
    nlp = make_nlp(decode="mbr").from_bytes(trained_bytes)
    for line, text in zip(MARKED, TEXTS):
        assert entities(nlp(text)) == read_marked(line)[1]


# Threshold


@pytest.mark.parametrize("threshold", [0.0, 0.02, 0.2, 0.9])
def test_threshold_writes_every_span_that_passes_and_no_entities(threshold):
    nlp = make_nlp(decode="threshold", threshold=threshold)
    train(nlp, 4, Adam(0.05))
    ner = nlp.get_pipe("ner")
    doc = nlp("Ada met Evans in Bath")
    spans = [Span(doc, s, e, x) for s in range(5) for e in range(s + 1, 6) for x in ner.labels]
    expected = {span: p for span, p in zip(spans, ner.posterior(spans)) if p >= threshold}
    group = doc.spans["ner"]
    assert set(group) == set(expected)
    assert group.attrs["scores"] == pytest.approx([expected[s] for s in group], abs=1e-6)
    assert not doc.ents and not doc.has_annotation("ENT_IOB")
    if threshold == 0.0:
        assert len(group) == 45  # overlapping ones too


def test_threshold_is_found_by_spacy(trained_bytes, tmp_path, capsys):
    """The real command: recall at a low threshold, precision at a high one."""
    nlp = make_nlp(decode="threshold").from_bytes(trained_bytes)
    nlp.get_pipe("ner").temperature = 3.0  # so that thresholds differ
    nlp.to_disk(tmp_path / "model")
    gold = [example.reference for example in make_examples(nlp)]
    DocBin(docs=gold).to_disk(tmp_path / "dev.spacy")
    best, score, scores = find_threshold(
        str(tmp_path / "model"),
        tmp_path / "dev.spacy",
        "ner",
        "threshold",
        "spans_ner_f",
        n_trials=5,
    )
    assert list(scores) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert 0 < best < 1 and score == max(scores.values()) > 0.8
    assert scores[0.0] < 0.2 and scores[1.0] < score
    nlp = spacy.load(tmp_path / "model", config={"components": {"ner": {"threshold": 0.0}}})
    figures = nlp.evaluate([Example(Doc(nlp.vocab, words=[t.text for t in g]), g) for g in gold])
    assert figures["spans_ner_r"] == 1.0 and figures["spans_ner_p"] < 0.1
