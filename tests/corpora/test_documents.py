"""Documents joined from their sentences, and the reader of them."""

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training.augment import create_lower_casing_augmenter
from spacy.util import registry
from spacy.vocab import Vocab

from spacy_psa.corpora.documents import join_documents
from spacy_psa.corpora.readers import make_doc
from spacy_psa.errors import InputError

VOCAB = Vocab()
SENTENCES = [
    (["Ada", "met", "Bob"], [(0, 1, "PER"), (2, 3, "PER")], "D1"),
    (["He", "left", "Leeds"], [(2, 3, "LOC")], "D1"),
    (["Rain"], [], "D2"),
    (["Leeds", "won"], [(0, 1, "ORG")], "D1"),
]


def sentences():
    docs = []
    for words, ents, document in SENTENCES:
        doc = make_doc(VOCAB, words, ["X"] * len(words), ents, chunks=[(0, 1, "NP")])
        doc.user_data["document"] = document
        docs.append(doc)
    return docs


def write(path, docs):
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


def read(path, **settings):
    make = registry.readers.get("spacy-psa.DocumentCorpus.v1")
    return list(make(path=path, **settings)(spacy.blank("en")))


def sents(doc):
    return [sentence.text for sentence in doc.sents]


def test_sentences_that_follow_each_other_in_a_document_become_one_doc():
    docs = list(join_documents(sentences()))
    assert [doc.user_data["document"] for doc in docs] == ["D1", "D2", "D1"]
    assert sents(docs[0]) == ["Ada met Bob", "He left Leeds"]
    assert [(ent.text, ent.label_) for ent in docs[0].ents] == [
        ("Ada", "PER"),
        ("Bob", "PER"),
        ("Leeds", "LOC"),
    ]
    assert [(chunk.text, chunk.start) for chunk in docs[0].spans["chunks"]] == [
        ("Ada", 0),
        ("He", 3),
    ]
    assert [token.tag_ for token in docs[0]] == ["X"] * 6


def test_a_sentence_that_is_annotated_in_part_stays_in_its_document():
    docs = sentences()[:2]
    docs[1].spans["missing_spans"] = [docs[1][1:2]]
    docs[1].spans["incorrect_spans"] = [Span(docs[1], 0, 1, "PER")]
    (doc,) = join_documents(docs)
    groups = [doc.spans[key] for key in ("missing_spans", "incorrect_spans")]
    assert [[span.start for span in group] for group in groups] == [[4], [3]]


def test_parts_of_a_document_stay_apart():
    docs = sentences()[:2]
    for part, doc in enumerate(docs):
        doc.user_data["part"] = part
    assert len(list(join_documents(docs))) == 2


def test_docs_without_a_document_stay_as_they_are():
    docs = [Doc(VOCAB, words=["Go"]), Doc(VOCAB, words=["Stop"])]
    assert list(join_documents(docs)) == docs


def test_a_document_is_cut_between_sentences_where_it_grows_too_long():
    docs = list(join_documents(sentences(), max_tokens=5))
    assert [len(doc) for doc in docs] == [3, 3, 1, 2]
    assert [doc.user_data["document"] for doc in docs] == ["D1", "D1", "D2", "D1"]


def test_sentences_without_annotated_boundaries_are_told_apart():
    docs = [Doc(VOCAB, words=["Go", "on"]), Doc(VOCAB, words=["Stop", "it"])]
    for doc in docs:
        doc.user_data["document"] = 7
    assert sents(next(join_documents(docs))) == ["Go on", "Stop it"]


def test_examples_are_predicted_from_gold_words_and_boundaries(tmp_path):
    examples = read(write(tmp_path / "train.spacy", sentences()))
    assert [len(example.reference) for example in examples] == [6, 1, 2]
    first = examples[0].predicted
    assert sents(first) == sents(examples[0].reference)
    assert not first.ents
    assert not first.has_annotation("TAG")
    assert first.user_data == {"document": "D1"}


def test_docs_of_several_sentences_are_documents(tmp_path):
    path = write(tmp_path / "train.spacy", join_documents(sentences()))
    assert [len(example.predicted) for example in read(path)] == [6, 1, 2]
    assert sents(read(path)[0].predicted) == ["Ada met Bob", "He left Leeds"]


def test_known_spaces_are_kept(tmp_path):
    doc = Doc(VOCAB, words=["Go", "!"], spaces=[False, False])
    [example] = read(write(tmp_path / "train.spacy", [doc]))
    assert example.predicted.text == "Go!"


def test_limit_counts_documents(tmp_path):
    assert len(read(write(tmp_path / "train.spacy", sentences()), limit=2)) == 2


def test_a_folder_is_read_in_the_order_of_names(tmp_path):
    for name, doc in zip("ba", sentences()[1:3], strict=True):
        write(tmp_path / f"{name}.spacy", [doc])
    assert [example.text for example in read(tmp_path)] == ["Rain ", "He left Leeds "]


def test_spans_keep_their_labels_and_ids():
    docs = sentences()[:2]
    docs[1].spans["chunks"] = [Span(docs[1], 1, 3, "VP", span_id="v1")]
    [whole] = join_documents(docs)
    [span] = [span for span in whole.spans["chunks"] if span.label_ == "VP"]
    assert (span.text, span.id_) == ("left Leeds", "v1")


def test_no_docs_and_no_path_are_errors(tmp_path):
    with pytest.raises(InputError, match="there are no docs"):
        read(write(tmp_path / "train.spacy", []))
    with pytest.raises(InputError, match=r"set \[paths.train\]"):
        read(None)
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "none.spacy")


def test_an_augmenter_makes_examples_with_the_boundaries_of_their_document(tmp_path):
    def lower_and_same(nlp, example):
        yield from create_lower_casing_augmenter(level=1.0)(nlp, example)
        yield example

    examples = read(write(tmp_path / "train.spacy", sentences()[:2]), augmenter=lower_and_same)
    texts = ["Ada met Bob", "He left Leeds"]
    for example, wanted in zip(examples, [[t.lower() for t in texts], texts], strict=True):
        assert sents(example.predicted) == sents(example.reference) == wanted
        assert example.predicted.user_data == {"document": "D1"}
        assert [ent.text for ent in example.reference.ents] == [
            wanted[0][:3], wanted[0][-3:], wanted[1][-5:]
        ]  # fmt: skip
        assert len(example.reference.spans["chunks"]) == 2


@pytest.mark.parametrize("setting", ["max_tokens", "limit"])
def test_a_negative_number_is_an_error_that_names_it(setting):
    make = registry.readers.get("spacy-psa.DocumentCorpus.v1")
    with pytest.raises(
        InputError, match=f"^DocumentCorpus.v1: {setting} is -1: it must be 0 or more"
    ):
        make(path="train.spacy", **{setting: -1})


def test_docs_that_are_annotated_otherwise_are_not_joined():
    docs = sentences()[:2]
    del docs[1].spans["chunks"]
    assert [sorted(doc.spans) for doc in join_documents(docs)] == [["chunks"], []]
    parsed = Doc(VOCAB, words=["A", "b"], heads=[1, 1], deps=["x", "ROOT"])
    bare = Doc(VOCAB, words=["c", "d"], sent_starts=[True, True])
    for doc in (parsed, bare):
        doc.user_data["document"] = "D"
    assert [sents(doc) for doc in join_documents([parsed, bare])] == [["A b"], ["c", "d"]]
