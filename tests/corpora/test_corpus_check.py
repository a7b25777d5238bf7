import json

import spacy
from spacy.tokens import Doc, Span

from spacy_psa.corpora.corpus_check import check_corpus, possible_mistakes
from spacy_psa.corpora.readers import make_doc

VOCAB = spacy.blank("en").vocab


def doc(text, ents=(), **more):
    return make_doc(VOCAB, text.split(), ents=list(ents), **more)


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
    two = Doc(VOCAB, words=["in", "New", "York", "now"], sent_starts=[True, False, True, False])
    two.set_ents([Span(two, 1, 3, "LOC")])
    found = check_corpus({"train": [two, doc("x")], "dev": [doc("y")]})
    across = found["layers"]["entities"]["across_sentences"]
    assert across == {"train": 1, "dev": 0, "examples": ["train: 'New York' (LOC)"]}
    assert found["parts"]["train"]["sentences"] == 3


def test_examples_of_each_part_are_told():
    two = Doc(VOCAB, words=["in", "New", "York", "now"], sent_starts=[True, False, True, False])
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
    tagged = make_doc(VOCAB, ["a", "b"], tags=["DT", "NN"])
    found = check_corpus({"train": [tagged, make_doc(VOCAB, ["c"])], "dev": [tagged]})
    assert list(found["layers"]) == ["parts of speech"]
    assert found["layers"]["parts of speech"]["without_annotation"] == {"train": 1, "dev": 0}
