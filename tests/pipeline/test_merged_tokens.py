"""What components wrote, after spaCy's `merge_entities` has merged tokens."""

import pytest
import spacy
from spacy.pipeline.functions import merge_entities
from spacy.tokens import Doc, DocBin, SpanGroup
from thinc.api import Adam

from spacy_psa.annotation.rows import annotation, docbin_bytes
from spacy_psa.pipeline.written import spans_now
from tests.helpers.parsers import random_parser
from tests.helpers.pipelines import (
    TEXTS,
    make_chunk_examples,
    parameters,
    small_model,
    spans_of,
    train,
)

GROUPS = {
    "ents": "confidence",
    "crf_chunker": "confidence",
    "constituents": "constituent_confidence",
}  # the attribute of each kind of span
pytestmark = pytest.mark.filterwarnings("ignore:[0-9]+ span", "ignore:.W101")


@pytest.fixture(scope="module")
def nlp():
    """Entities, chunks and trees with their confidences, of unsure models."""
    nlp = spacy.blank("en")
    for name in ("crf_ner", "crf_chunker"):
        nlp.add_pipe(name, config={"model": small_model(), "confidence": True})
    train(nlp, 15, Adam(0.02), make_chunk_examples(nlp))
    trees = random_parser(loss="log_likelihood", confidence=True)
    for parameter in parameters(trees.get_pipe("parser")):
        parameter.data.mul_(0.4)
    nlp.add_pipe("parser", source=trees)
    return nlp


def confidences(doc, group):
    spans = doc.ents if group == "ents" else spans_now(doc, group)
    return {(s.start_char, s.end_char, s.label_): s._.get(GROUPS[group]) for s in spans}


def test_confidences_follow_by_characters(nlp):
    docs = list(nlp.pipe(TEXTS[:3]))
    before = [{group: confidences(doc, group) for group in GROUPS} for doc in docs]
    for doc in docs:
        merge_entities(doc)
    assert any(len(doc) < len(text.split()) for doc, text in zip(docs, TEXTS))
    for group in GROUPS:
        kept = 0
        for doc, old in zip(docs, before, strict=True):
            starts = {token.idx for token in doc}
            ends = {token.idx + len(token) for token in doc}
            new = confidences(doc, group)
            assert new == {k: p for k, p in old[group].items() if k[0] in starts and k[1] in ends}
            assert all(0 < p <= 1 for p in new.values())
            kept += len(new)
        assert kept
    for doc in docs:  # groups without scores follow as well
        assert spans_of(spans_now(doc, "chunks")) == spans_of(doc.spans["crf_chunker"])
    joined = Doc.from_docs(docs)
    for group in GROUPS:
        expected = [p for doc in docs for p in confidences(doc, group).values()]
        assert [*confidences(joined, group).values()] == expected


def test_confidences_follow_the_entities_that_span_as_doc_copies(nlp):
    doc = nlp(TEXTS[0])
    last = doc.ents[-1]
    copy = doc[last.start : len(doc)].as_doc(copy_user_data=True)
    assert [ent._.confidence for ent in copy.ents] == [last._.confidence] != [None]


@pytest.mark.parametrize("name", ["crf_ner", "crf_chunker", "parser"])
def test_own_predictions_are_not_evidence_after_a_merge(nlp, name):
    pipe = nlp.get_pipe(name)
    doc = merge_entities(nlp(TEXTS[0]))
    bare = Doc(nlp.vocab, words=[token.text for token in doc])
    assert pipe.entropy(doc) == pytest.approx(pipe.entropy(bare), rel=1e-4)
    assert pipe(doc) is doc


def test_rows_of_merged_docs_have_the_spans_at_their_characters(nlp):
    for doc in nlp.pipe(TEXTS[:3]):
        before = annotation(doc)["spans"]
        merge_entities(doc)
        starts = {token.idx for token in doc}
        ends = {token.idx + len(token) for token in doc}
        for key, spans in annotation(doc)["spans"].items():
            kept = [s for s in before[key] if s["start"] in starts and s["end"] in ends]
            assert sorted(map(str, spans)) == sorted(map(str, kept))
        (saved,) = DocBin().from_bytes(docbin_bytes(doc)).get_docs(nlp.vocab)
        assert confidences(saved, "crf_chunker") == confidences(doc, "crf_chunker")


@pytest.mark.parametrize("group", ["crf_chunker", "constituents"])
def test_probabilities_stay_with_their_spans_where_a_person_changes_a_group(nlp, group):
    doc = nlp(TEXTS[0])
    before = confidences(doc, group)
    spans = list(doc.spans[group])
    own = doc.char_span(0, len(doc.text), "OWN")
    doc.spans[group].append(own)
    assert confidences(doc, group) == before | {(0, len(doc.text), "OWN"): None}
    merge_entities(doc)
    assert all(p is None or before[k] == p for k, p in confidences(doc, group).items())
    doc = nlp(TEXTS[0])
    scores = doc.spans[group].attrs["scores"]
    doc.spans[group] = SpanGroup(doc, attrs={"scores": scores}, spans=list(doc.spans[group])[1:])
    first = next(k for k in before if k[2] == spans[0].label_)
    assert confidences(doc, group) == {k: p for k, p in before.items() if k != first}
