"""Jackknifing: how sentences are dealt, and which tagger predicts which tags."""

from itertools import count

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

from spacy_psa.errors import InputError
from spacy_psa.laboratory.jackknife import deal, jackknife, predict_tags, retag

NUMBERS = count()
VOCAB = spacy.blank("en").vocab


def made(number, document=None):
    """Docs of one word each, whose gold tag is GOLD."""
    docs = [Doc(VOCAB, words=[f"w{i}"], tags=["GOLD"]) for i in range(number)]
    for i, doc in enumerate(docs):
        doc.spans["constituents"] = [Span(doc, 0, 1, "NP")]
        if document:
            doc.user_data["document"] = document(i)
    return docs


def with_pipe(nlp, function):
    """Add a component under a name of its own, since spaCy keeps the first function of a name."""
    name = f"jackknife_test_{next(NUMBERS)}"
    spacy.Language.component(name, func=function)
    nlp.add_pipe(name)
    return nlp


def memory(name, docs):
    """A tagger that knows what it has learned from."""
    seen = {doc[0].text: doc[0].tag_ for doc in docs}
    nlp = spacy.blank("en")

    def tag(doc):
        for token in doc:
            token.tag_ = f"SEEN-{seen[token.text]}" if token.text in seen else name
        return doc

    return with_pipe(nlp, tag)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=30), st.integers(2, 4), st.integers(0, 3))
def test_documents_stay_together_and_no_fold_is_empty(documents, folds, seed):
    if len(documents) < folds:
        with pytest.raises(InputError, match="fewer --folds"):
            deal(documents, folds, seed)
        return
    dealt = deal(documents, folds, seed)
    assert set(dealt) == set(range(folds))
    if len(set(documents)) >= folds:
        assert len(set(zip(documents, dealt, strict=True))) == len(set(documents))
    assert dealt == deal(documents, folds, seed)


def test_another_seed_deals_otherwise():
    assert deal(range(20), 4, seed=0) != deal(range(20), 4, seed=1)


def test_no_tagger_has_learned_from_what_it_tags():
    docs = made(7)
    parts = {}

    def tagger(name, part):
        parts[name] = [doc[0].text for doc in part]
        return memory(name, part)

    tagged = jackknife(docs, 3, 0, tagger)
    assert tagged.docs == docs and (tagged.same, tagged.tokens) == (0, 7)
    assert {doc[0].tag_ for doc in docs} == {"fold-1", "fold-2", "fold-3"}
    for doc in docs:
        assert doc[0].text not in parts[doc[0].tag_]
        assert [span.label_ for span in doc.spans["constituents"]] == ["NP"]
    for part in parts.values():
        assert 7 - 3 <= len(part) <= 7 - 2


def test_every_tagger_learns_from_gold_tags():
    def tagger(name, part):
        assert {doc[0].tag_ for doc in part} == {"GOLD"}
        return memory(name, part)

    jackknife(made(6, document=lambda i: i // 2), 3, 0, tagger)


def test_tags_that_stay_are_counted():
    docs = made(3)
    for doc in docs[:2]:
        doc[0].tag_ = "all"
    assert retag(memory("all", []), docs).share == pytest.approx(2 / 3)


def test_sentences_and_spaces_reach_the_tagger():
    doc = Doc(VOCAB, words=["a", "b", "c"], spaces=[False, True, False],
              sent_starts=[True, False, True], tags=["T"] * 3)  # fmt: skip
    seen = []
    nlp = with_pipe(memory("x", []), lambda doc: seen.append(doc) or doc)
    list(predict_tags(nlp, [doc]))
    assert seen[0].text == "ab c" and [sent.text for sent in seen[0].sents] == ["ab", "c"]
    assert "T" not in {token.tag_ for token in seen[0]}


def test_sentences_of_a_document_reach_the_tagger_together():
    docs = made(5, lambda i: i // 3)
    docs[4].user_data["part"] = "1"
    seen = []

    class Noting:
        def pipe(self, stream, batch_size):
            batch = list(stream)
            seen.append([(doc.user_data["document"], doc.user_data.get("part")) for doc in batch])
            yield from batch

        def __call__(self, doc):
            raise AssertionError("docs go through `pipe`")

    name = f"jackknife_test_{next(NUMBERS)}"
    spacy.Language.factory(name, func=lambda nlp, name: Noting())
    nlp = memory("x", [])
    nlp.add_pipe(name)
    nlp.batch_size = 1
    list(predict_tags(nlp, docs))
    assert seen == [[(0, None)] * 3, [(1, None)], [(1, "1")]]


def test_a_pipeline_without_tags_is_an_error():
    with pytest.raises(InputError, match="predict no parts of speech"):
        retag(spacy.blank("en"), made(1))
