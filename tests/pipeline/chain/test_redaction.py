"""Texts without the spans of a promise: which spans these are, and the offsets in both texts."""

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Span

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.redaction import redact, shown_spans, thresholds
from spacy_psa.pipeline.coverage import Promise
from tests.helpers.analyses import enumerate_doc
from tests.helpers.pipelines import random_nlp

NLP = spacy.blank("en")
TEXT = "Ada Lovelace met Charles  Babbage, in Bath."
SPANS = st.lists(
    st.tuples(st.integers(0, 8), st.integers(1, 3), st.sampled_from("AB"), st.floats(0.01, 1)),
    max_size=5,
)


def promise(least):
    return Promise(0.9, 0.95, least, 100)


@given(SPANS)
def test_the_new_text_has_all_but_the_spans_and_offsets_lead_to_and_fro(drawn):
    doc = NLP(TEXT)
    shown = [(Span(doc, s, min(s + n, len(doc)), label), p) for s, n, label, p in drawn]
    redaction = redact(doc, shown, [])
    hidden = {i for span, _ in shown for i in range(span.start_char, span.end_char)}
    rebuilt, place = "", 0
    for part in redaction.replaced:
        assert redaction.text[part.start : part.end] == f"[{part.label}]"
        assert hidden >= {
            i for i in range(part.source_start, part.source_end) if not TEXT[i].isspace()
        }
        rebuilt += redaction.text[place : part.start] + TEXT[part.source_start : part.source_end]
        place = part.end
    assert rebuilt + redaction.text[place:] == TEXT
    parts = [(part.source_start, part.source_end) for part in redaction.replaced]
    assert all(any(a <= i < b for a, b in parts) for i in hidden)
    for i, letter in enumerate(TEXT):
        if not any(a <= i < b for a, b in parts):
            assert redaction.text[redaction.moved(i)] == letter
    assert redaction.moved(len(TEXT)) == len(redaction.text)


def test_overlapping_spans_are_one_part_with_the_most_probable_label():
    doc = NLP(TEXT)
    pairs = [((0, 1, "LOC"), 0.1), ((0, 2, "PER"), 0.8), ((1, 3, "ORG"), 0.3), ((7, 8, "LOC"), 0.2)]
    shown = [(Span(doc, *span), p) for span, p in pairs]
    redaction = redact(doc, shown, [Span(doc, 0, 2, "PER")])
    assert redaction.text == "[PER] Charles  Babbage, [LOC] Bath."
    assert [(part.score, part.review) for part in redaction.replaced] == [(0.8, False), (0.2, True)]
    assert redaction.replaced[0][-3:-1] == (0, 16)


def test_shown_spans_are_all_above_the_threshold_of_their_label():
    nlp = random_nlp()
    ner = nlp.get_pipe("ner")
    ner.calibrated.recall = {"": promise(0.3), "PER": promise(0.05)}
    doc = nlp.make_doc("Ada met Bob")
    truth = enumerate_doc(ner, doc)
    (shown,) = shown_spans(ner, [doc])
    every = {span for analysis in truth.values for span in analysis}
    least = dict.fromkeys(ner.labels, 0.3) | {"PER": 0.05}
    expected = {span: truth.of(span) for span in every if truth.of(span) >= least[span[2]]}
    assert {(s.start, s.end, s.label_): p for s, p in shown} == pytest.approx(expected, abs=1e-6)
    (only,) = shown_spans(ner, [doc], ["PER"])
    assert {span.label_ for span, _ in only} <= {"PER"} and len(expected) > len(only) > 0


@pytest.mark.parametrize(
    ("promises", "labels", "recall", "reason"),
    [
        (None, ["PER"], 0.0, "ner: no recall is promised for PER"),
        ({"PER": 0.1}, ["PER", "LOC"], 0.0, "ner: no recall is promised for LOC"),
        ({"": 0.1}, ["PER"], 0.99, "ner: only a recall of 0.9 is promised for PER.*--recall 0.99"),
        ({"": 0.1}, ["SHIP"], 0.0, "ner: has no label SHIP; choose LOC"),
    ],
)
def test_what_is_not_promised_is_an_error(promises, labels, recall, reason):
    ner = random_nlp().get_pipe("ner")
    ner.calibrated.recall = promises and {
        label: promise(least) for label, least in promises.items()
    }
    with pytest.raises(InputError, match=reason):
        thresholds(ner, labels, recall)
