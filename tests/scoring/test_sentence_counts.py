"""Counts by sentence add up to the scores of spaCy and of the package."""

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_psa.pipeline.chain.chunker import score_chunks
from spacy_psa.scoring.sentence_counts import entity_counts, span_counts, tag_counts, total

WORDS = ["Ada", "met", "Bob", "Lee", ".", "Leeds", "is", "far", "."]
STARTS = [i in (0, 5) for i in range(len(WORDS))]


def examples(seed=0):
    """Docs of two sentences with tags, entities and chunks, some of them wrong or missing."""
    import random

    draw = random.Random(seed)
    vocab = spacy.blank("en").vocab
    found = []
    for _ in range(6):
        docs = []
        for _ in range(2):
            doc = Doc(vocab, words=WORDS, sent_starts=STARTS)
            for token in doc:
                token.tag_ = draw.choice(["NNP", "VBD", "."])
            at = sorted(draw.sample(range(len(WORDS) + 1), 4))
            spans = [Span(doc, *at[:2], draw.choice("AB")), Span(doc, *at[2:], draw.choice("AB"))]
            doc.set_ents(
                spans, missing=[doc[6:7]] if draw.random() < 0.5 else [], default="outside"
            ) if all(6 not in range(s.start, s.end) for s in spans) else doc.set_ents(spans)
            doc.spans["chunks"] = spans
            docs.append(doc)
        found.append(Example(*docs))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_counts_add_up_to_the_scores(seed):
    from spacy.scorer import Scorer, get_ner_prf

    made = examples(seed)
    ents, chunks, tags = entity_counts(made), span_counts(made, "chunks"), tag_counts(made)
    assert len(ents) == len(chunks) == len(tags) == 12  # two sentences each
    assert total(ents).f1 == pytest.approx(get_ner_prf(made)["ents_f"])
    assert total(chunks).f1 == pytest.approx(score_chunks(made, spans_key="chunks")["chunks_f"])
    assert total(tags).f1 == pytest.approx(Scorer.score_token_attr(made, "tag")["tag_acc"])


def test_a_unit_counts_in_the_sentence_where_it_begins():
    vocab = spacy.blank("en").vocab
    gold, found = (Doc(vocab, words=WORDS, sent_starts=STARTS) for _ in range(2))
    gold.set_ents([Span(gold, 2, 4, "PER")])
    found.set_ents([Span(found, 2, 4, "PER"), Span(found, 5, 6, "LOC")])
    assert entity_counts([Example(found, gold)]) == [(1, 1, 1), (0, 1, 0)]


def test_docs_without_annotation_have_no_counts():
    doc = Doc(spacy.blank("en").vocab, words=["Ada"])
    example = Example(doc.copy(), doc)
    assert entity_counts([example]) == span_counts([example], "chunks") == []
    assert total([]) == (0, 0, 0)
