"""Sentence boundaries, and the sentences of docs as docs of their own."""

import pytest
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_psa import sentences
from spacy_psa.sentences import EMBEDDED, Sentences, SplitDocs, sentence_bounds, split_sentences


@pytest.fixture
def docs():
    """Without boundaries, without tokens, and of two sentences."""
    vocab = Vocab()
    two = Doc(vocab, words=["c", "d", "e"], spaces=[True, False, True], sent_starts=[1, 0, 1])
    return [Doc(vocab, words=["a", "b"]), Doc(vocab), two]


def words_of(docs):
    return [[token.text for token in doc] for doc in docs]


def test_a_doc_without_boundaries_or_without_tokens_is_one_sentence(docs):
    assert [sentence_bounds(doc) for doc in docs] == [[(0, 2)], [(0, 0)], [(0, 2), (2, 3)]]


def test_sentences_of_docs_are_found_in_order(docs):
    found = split_sentences(docs)
    assert words_of(found) == [["a", "b"], [], ["c", "d"], ["e"]]
    assert found[0] is docs[0]


def test_a_sentence_keeps_its_spaces_and_what_embedders_read(docs):
    *_, doc = docs
    for token in doc:
        token.tag_, token.lemma_, token.norm_ = f"T{token.i}", f"l{token.i}", f"n{token.i}"
        token.pos_ = "NOUN"
        token.set_morph("Case=Nom")
        token.dep_ = f"d{token.i}"
    doc.set_ents([Span(doc, 0, 1, "PER", kb_id="Q1", span_id="e1")])
    first, second = split_sentences([doc])
    assert (first.text, second.text) == ("c d", "e ")
    attributes = doc.to_array(EMBEDDED)
    assert (first.to_array(EMBEDDED) == attributes[:2]).all()
    assert (second.to_array(EMBEDDED) == attributes[2:]).all()
    assert [token.tag_ for token in (*first, *second)] == ["T0", "T1", "T2"]
    assert [token.dep_ for token in (*first, *second)] == ["d0", "d1", "d2"]
    read = [(token.ent_iob_, token.ent_type_, token.ent_kb_id_) for token in (*first, *second)]
    assert read == [("B", "PER", "Q1"), ("O", "", ""), ("O", "", "")]
    assert first[0].ent_id_ == "e1"


def test_sentences_are_not_split_again(docs):
    found = split_sentences(docs)
    assert split_sentences(found) is found
    chosen = found.chosen([3, 0])
    assert isinstance(chosen, Sentences) and words_of(chosen) == [["e"], ["a", "b"]]


def test_split_docs_know_their_docs_bounds_and_sizes(docs):
    split = SplitDocs(iter(docs))
    assert split.docs == docs
    assert split.bounds == [sentence_bounds(doc) for doc in docs]
    assert split.sizes == [2, 0, 2, 1]
    assert words_of(split.sentences) == words_of(split_sentences(docs))
    assert split.sentences is split.sentences


def test_a_doc_of_one_sentence_is_taken_as_it_is():
    bounded = Doc(Vocab(), words=["a", "b"], sent_starts=[True, False])
    assert split_sentences([bounded])[0] is bounded


def test_bounds_that_are_given_are_not_looked_for(docs, monkeypatch):
    monkeypatch.setattr(sentences, "sentence_bounds", None)
    found = split_sentences(docs, [[(0, 1), (1, 2)], [(0, 0)], [(0, 3)]])
    assert words_of(found) == [["a"], ["b"], [], ["c", "d", "e"]]
    assert found[1] is not docs[0] and found[3] is docs[2]


def test_split_docs_look_for_boundaries_once(docs, monkeypatch):
    asked = []

    def spy(doc):
        asked.append(doc)
        return sentence_bounds(doc)

    monkeypatch.setattr(sentences, "sentence_bounds", spy)
    split = SplitDocs(docs)
    assert asked == docs
    for _ in range(2):
        assert len(split.sentences) == len(split.sizes) == 4
    assert asked == docs


def test_docs_of_a_genre_are_no_document():
    docs = [Doc(Vocab(), words=["a"]) for _ in range(4)]
    for doc, named in zip(docs, [{"genre": "x"}, {"genre": "x"}, {"document": 1}, {"document": 1}]):
        doc.user_data.update(named)
    first, second, *others = [sentences.document_key(doc, i) for i, doc in enumerate(docs)]
    assert first != second and others[0] == others[1] not in (first, second)
