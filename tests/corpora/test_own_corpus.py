"""Own files: their formats, parts and statistics."""

import json

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_psa.corpora.corpus_check import check_corpus, possible_mistakes
from spacy_psa.corpora.own_corpus import KEPT_WHOLE, cut_sentences
from spacy_psa.corpora.readers import make_doc
from spacy_psa.corpora.split_parts import FEWEST, Source, split_off
from spacy_psa.errors import InputError
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


VOCAB = Vocab()


def sources(sizes):
    return [
        Source(("a", number), Doc(VOCAB, words=[f"w{number}", f"s{i}"]))
        for number, size in enumerate(sizes)
        for i in range(size)
    ]


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 9), min_size=FEWEST, max_size=60),
    st.floats(0.05, 0.5),
    st.integers(0, 9),
)
def test_documents_stay_whole_and_about_the_share_is_drawn(sizes, share, seed):
    given_ = sources(sizes)
    split = split_off(given_, share, seed)
    assert split.unit == "document"
    assert sorted(map(id, split.rest + split.drawn)) == sorted(map(id, given_))
    assert not {s.document for s in split.rest} & {s.document for s in split.drawn}
    assert split.rest and split.drawn
    assert abs(len(split.drawn) - share * len(given_)) <= max(sizes)


def test_the_seed_decides():
    given_ = sources([3] * 30)
    assert split_off(given_, 0.2, 1) == split_off(given_, 0.2, 1)
    assert split_off(given_, 0.2, 1) != split_off(given_, 0.2, 2)


def test_few_documents_are_drawn_by_sentence():
    split = split_off(sources([20, 30]), 0.1, 0)
    assert split.unit == "sentence" and len(split.drawn) == 5


def test_equal_texts_are_not_drawn_apart():
    doubled = [Source(("a", i), Doc(VOCAB, words=[f"w{i // 2}"])) for i in range(80)]
    split = split_off(doubled, 0.3, 3)
    words = [{s.doc.text for s in part} for part in (split.rest, split.drawn)]
    assert split.unit == "document" and not words[0] & words[1]


def test_one_sentence_cannot_be_split():
    with pytest.raises(InputError, match="too few to draw development data"):
        split_off(sources([1]), 0.1, 0)


WORDS = spacy.blank("en").vocab


def doc(text, ents=(), **more):
    return make_doc(WORDS, text.split(), ents=list(ents), **more)


def test_labels_lengths_and_rare_labels_are_counted():
    train = [doc("Ada Byron left", [(0, 2, "PER")])] * 10 + [doc("Rome fell", [(0, 1, "LOC")])]
    found = check_corpus({"train": train, "dev": [doc("IBM fell", [(0, 1, "ORG")])]})
    ents = found["layers"]["entities"]
    assert ents["labels"] == {
        "LOC": {"train": 1, "dev": 0},
        "ORG": {"train": 0, "dev": 1},
        "PER": {"train": 10, "dev": 0},
    }
    assert ents["lengths"] == {"1": 2, "2": 10}
    assert ents["rare"] == ["LOC"] and ents["not in train"] == ["ORG"]
    assert found["parts"]["train"] == {
        "documents": 11, "sentences": 11, "tokens": 32, "longest": 3,
    }  # fmt: skip
    assert json.loads(json.dumps(found)) == found


def test_entities_over_the_bounds_of_sentences_are_counted_with_examples():
    two = Doc(WORDS, words=["in", "New", "York", "now"], sent_starts=[True, False, True, False])
    two.set_ents([Span(two, 1, 3, "LOC")])
    found = check_corpus({"train": [two, doc("x")], "dev": [doc("y")]})
    across = found["layers"]["entities"]["across_sentences"]
    assert across == {"train": 1, "dev": 0, "examples": ["train: 'New York' (LOC)"]}
    assert found["parts"]["train"]["sentences"] == 3


def test_examples_of_each_part_are_told():
    two = Doc(WORDS, words=["in", "New", "York", "now"], sent_starts=[True, False, True, False])
    two.set_ents([Span(two, 1, 3, "LOC")])
    two.spans["constituents"] = [Span(two, 1, 3, "NP")]
    found = check_corpus({"train": [two] * 20, "dev": [two]})
    lines = [line for line in possible_mistakes(found) if "go over the bounds" in line]
    assert "dev: 1 in" not in lines[0] and "dev: 'New York' (LOC)" in lines[1]
    assert all("training leaves them out" in line for line in lines if "entities" in line)
    trees = [line for line in lines if line.startswith("constituents")]
    assert len(trees) == 2 and all("is not possible before" in line for line in trees)


def test_duplicates_are_counted_between_and_within_parts():
    parts = {"train": [doc("a b"), doc("a b"), doc("c")], "dev": [doc("A b"), doc("d")]}
    found = check_corpus(parts)["duplicates"]
    assert found == {"train": {"twice": 1}, "dev": {"in train": 1, "twice": 0}}


def test_words_without_a_vector_are_counted_by_word_or_its_lower_case():
    parts = {"train": [doc("Ada ada xyz Qu")], "dev": [doc("")]}
    found = check_corpus(parts, has_vector={"ada", "Qu"}.__contains__)
    assert found["without_vector"] == {"train": 0.25, "dev": 0.0}
    assert check_corpus(parts)["without_vector"] is None


def test_layers_that_the_corpus_lacks_are_left_out():
    tagged = make_doc(WORDS, ["a", "b"], tags=["DT", "NN"])
    found = check_corpus({"train": [tagged, make_doc(WORDS, ["c"])], "dev": [tagged]})
    assert list(found["layers"]) == ["parts of speech"]
    assert found["layers"]["parts of speech"]["without_annotation"] == {"train": 1, "dev": 0}
