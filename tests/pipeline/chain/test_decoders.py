"""Ways to choose spans: the best analysis, the highest expected F1, all above a threshold."""

from types import SimpleNamespace

import pytest
import spacy
from spacy.cli.find_threshold import find_threshold
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Adam

from spacy_psa.pipeline.chain.decoders import (
    ExpectedF1Decoder,
    ThresholdDecoder,
    ViterbiDecoder,
    make_decoder,
)
from spacy_psa.pipeline.chain.expected_f1 import best_expected_f1
from tests.helpers.analyses import enumerate_all, random_chain
from tests.helpers.pipelines import (
    MARKED,
    TEXTS,
    entities,
    make_examples,
    make_nlp,
    random_nlp,
    read_marked,
    spans_of,
    train,
)

DECODERS = {"viterbi": ViterbiDecoder, "mbr": ExpectedF1Decoder, "threshold": ThresholdDecoder}
LABELS = ["A", "B"]
LENGTHS = [3, 1, 2]


# By name


@pytest.mark.parametrize("name", DECODERS)
def test_decoder_is_found_by_its_name(name):
    decoder = make_decoder(name, 0.25, scores=False, entropy=True)
    assert type(decoder) is DECODERS[name]
    assert decoder.entropy and decoder.scores == (name != "viterbi")
    assert decoder.overlapping == (name == "threshold")
    assert getattr(decoder, "threshold", 0.25) == 0.25


# Sentences of a chain


@pytest.mark.parametrize("tag_format", ["BIOES", "BIO"])
@pytest.mark.parametrize("name", DECODERS)
def test_each_decoder_chooses_by_the_truth_of_enumeration(name, tag_format):
    scheme, chain = random_chain(tag_format, LENGTHS, seed=3, scale=1.0, labels=LABELS)
    found = make_decoder(name, 0.1, scores=True, entropy=True).read(chain, scheme)
    for row, (n, predicted) in enumerate(zip(LENGTHS, found, strict=True)):
        truth = enumerate_all(chain.potentials[row, :n], LABELS, scheme.tags)
        if name == "viterbi":
            expected = list(truth.best)
        elif name == "mbr":
            best = best_expected_f1(chain, scheme)[row]
            expected = [(s, e, LABELS[label]) for s, e, label in best]
        else:
            spans = [(s, e, x) for s in range(n) for e in range(s + 1, n + 1) for x in LABELS]
            expected = [span for span in spans if truth.of(span) >= 0.1]
        assert predicted.spans == expected
        assert predicted.scores == pytest.approx([truth.of(span) for span in expected])
        assert predicted.entropy == pytest.approx(truth.entropy)


def test_nothing_is_computed_that_was_not_asked_for():
    scheme, chain = random_chain("BIO", LENGTHS, seed=3, scale=1.0, labels=LABELS)
    for predicted in ViterbiDecoder(scores=False, entropy=False).read(chain, scheme):
        assert predicted.scores is None and predicted.entropy is None


# Docs


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("confidence", [False, True])
def test_prediction_of_a_doc_has_what_was_asked_for(unsure, name, confidence):
    nlp = unsure(decode=name, confidence=confidence, threshold=0.05)
    ner = nlp.get_pipe("ner")
    (found,) = ner.predict([nlp.make_doc(TEXTS[0])])
    assert found.spans
    assert (found.scores is not None) == (confidence or name != "viterbi")
    assert (found.entropy is not None) == confidence
    if confidence:
        assert found.entropy == pytest.approx(ner.entropy(nlp.make_doc(TEXTS[0])), abs=1e-4)


def test_mbr_keeps_evidence_and_gives_posteriors():
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
        assert spans_of(doc.spans["ner"]) == found
        posteriors = mbr.get_pipe("ner").posterior(doc.ents)
        assert doc.spans["ner"].attrs["scores"] == pytest.approx(posteriors, abs=1e-6)


def test_mbr_reads_sentences_of_one_document_as_one_doc():
    scheme, chain = random_chain("BIOES", LENGTHS, seed=2, scale=2.0, labels=LABELS)
    docs = [Doc(Vocab(), words=["a"] * n) for n in LENGTHS]
    mbr = make_decoder("mbr", 0.0, scores=True, entropy=False)

    def infer(docs, read):
        return [[(0, row)] for row in read(SimpleNamespace(dist=chain))]

    apart = [own.spans for own in mbr.predict(docs, infer, scheme)]
    for doc in docs:
        doc.user_data["document"] = "one"
    together = [own.spans for own in mbr.predict(docs, infer, scheme)]
    assert together == [own.spans for own in mbr.read(chain, scheme)]
    assert together != apart


def test_mbr_of_a_sure_model_is_what_it_learnt(trained_bytes):
    nlp = make_nlp(decode="mbr").from_bytes(trained_bytes)
    for line, text in zip(MARKED, TEXTS):
        assert entities(nlp(text)) == read_marked(line)[1]


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
