import spacy
from spacy.tokens import Span

from spacy_psa.corpora.own_corpus import KEPT_WHOLE, cut_sentences
from tests.helpers.pipelines import spans_of


def cut(doc):
    counts = {}
    return list(cut_sentences(doc, counts)), counts


def test_bounds_of_the_doc_are_kept():
    doc = spacy.blank("en")("a b. c d")
    for token in doc:
        token.is_sent_start = token.i in (0, 1)
    sentences, _ = cut(doc)
    assert [s.text.strip() for s in sentences] == ["a", "b. c d"]


def test_no_entity_and_no_span_is_cut():
    doc = spacy.blank("en")("Yahoo! Inc. rose. It fell.")
    doc.set_ents([Span(doc, 0, 3, "ORG")])
    doc.spans["chunks"] = [Span(doc, 4, 6, "NP")]
    sentences, counts = cut(doc)
    assert [s.text for s in sentences] == ["Yahoo! Inc. rose. It fell."]
    assert counts == {KEPT_WHOLE: 2}


def test_annotation_goes_with_its_sentence():
    doc = spacy.blank("en")("Ada left.\n\nBob Ray came. ")
    doc.set_ents([Span(doc, 4, 6, "PER")], missing=[Span(doc, 0, 1)])
    doc.spans["chunks"] = [Span(doc, 0, 1, "NP"), Span(doc, 4, 6, "NP")]
    (ada, bob), counts = cut(doc)
    assert (ada.text.strip(), bob.text.strip()) == ("Ada left.", "Bob Ray came.")
    assert [t.ent_iob_ for t in ada] == ["", "O", "O"] and spans_of(bob.ents) == [(0, 2, "PER")]
    assert spans_of(bob.spans["chunks"]) == [(0, 2, "NP")]
    assert [t.is_sent_start for t in bob] == [True, False, False, False]
    assert counts == {}


def test_a_doc_of_one_sentence_stays_as_it_is():
    doc = spacy.blank("en")("Ada left")
    assert cut(doc) == ([doc], {})


def test_nothing_is_left_of_blanks():
    assert cut(spacy.blank("en")(" \n ")) == ([], {})
    assert cut(spacy.blank("en")("")) == ([], {})
