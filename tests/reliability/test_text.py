"""Any text, with any annotation, goes through every component."""

from itertools import pairwise
from typing import Any

import numpy
import pytest
import spacy
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin
from spacy.util import raise_error

from spacy_psa.sentences import sentence_bounds
from tests.helpers.odd_docs import annotated, batches, docs, texts
from tests.helpers.pipelines import spans_of
from tests.helpers.properties import cases
from tests.helpers.whole_pipelines import NAMES


def layers(doc: Doc) -> dict[str, Any]:
    """All that the components write, but for probabilities."""
    return {
        "tags": [token.tag_ for token in doc],
        "ents": spans_of(doc.ents),
        **{name: spans_of(group) for name, group in doc.spans.items()},
    }


def probabilities(doc: Doc) -> numpy.ndarray:
    groups = (doc.spans[name].attrs["scores"] for name in ("ner", "chunker", "constituents"))
    return numpy.concatenate([*groups, [token._.tag_confidence for token in doc]])


def same(doc: Doc, other: Doc) -> bool:
    """Whether two docs have the same tokens and annotation."""
    return (
        [(t.text, t.whitespace_) for t in doc] == [(t.text, t.whitespace_) for t in other]
        and layers(doc) == layers(other)
        and numpy.allclose(probabilities(doc), probabilities(other), atol=1e-3)
    )


def assert_well_formed(doc: Doc, before: Doc, nlp: Any) -> None:
    """Annotation of every component, within the doc and its sentences, beside that before."""
    bounds = sentence_bounds(doc)
    sentence = [i for i, (start, end) in enumerate(bounds) for _ in range(start, end)]
    labels = {name: set(nlp.get_pipe(name).labels) for name in NAMES}
    known = {"ner": spans_of(before.ents), "chunker": spans_of(before.spans.get("chunks") or [])}
    found = {"ner": spans_of(doc.ents), "chunker": spans_of(doc.spans["chunks"])}
    for name, spans in found.items():
        assert set(known[name]) <= set(spans)
        assert spans == sorted(spans) == spans_of(doc.spans[name])
        assert all(one[1] <= other[0] for one, other in pairwise(spans))
        for start, end, label in set(spans) - set(known[name]):
            assert 0 <= start < end <= len(doc) and label in labels[name]
            assert sentence[start] == sentence[end - 1]
    assert {token.tag_ for token in doc} <= labels["tagger"]
    open_ends: list[tuple[int, int]] = []
    for start, end, label in spans_of(doc.spans["constituents"]):
        assert 0 <= start < end <= len(doc) and sentence[start] == sentence[end - 1]
        assert label in " ".join(labels["parser"]).split()
        assert not doc[start].is_space and not doc[end - 1].is_space
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1]
        open_ends.append(end)
    filled = [any(not token.is_space for token in doc[start:end]) for start, end in bounds]
    assert len(doc._.parse_trees) == sum(filled)
    values = probabilities(doc)
    assert ((values >= 0) & (values <= 1.001)).all()


def round_trip(doc: Doc) -> list[Doc]:
    """The doc through its bytes, and through a .spacy file's."""
    binary = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (stored,) = DocBin().from_bytes(binary).get_docs(doc.vocab)
    return [Doc(doc.vocab).from_bytes(doc.to_bytes()), stored]


@cases(0.25, makers=batches, size=st.integers(1, 4))
def test_each_doc_comes_out_once_in_order_and_well_formed(whole, makers, size):
    docs, before = ([make(whole) for make in makers] for _ in range(2))
    found = list(whole.pipe(docs, batch_size=size))
    assert [id(doc) for doc in found] == [id(doc) for doc in docs]
    for doc, former in zip(found, before):
        assert [(t.text, t.whitespace_) for t in doc] == [(t.text, t.whitespace_) for t in former]
        assert_well_formed(doc, former, whole)
        for other in round_trip(doc):
            assert layers(other) == layers(doc)


@cases(0.15, makers=batches)
def test_a_doc_in_a_batch_is_annotated_as_it_is_alone(whole, makers):
    for doc, make in zip(whole.pipe([make(whole) for make in makers]), makers):
        assert same(doc, whole(make(whole)))


@cases(0.1, given=st.lists(texts, max_size=4), as_docs=st.booleans())
def test_texts_keep_their_contexts(whole, given, as_docs):
    pairs = [(whole.make_doc(text) if as_docs else text, i) for i, text in enumerate(given)]
    found = list(whole.pipe(pairs, as_tuples=True, batch_size=2))
    assert [context for _, context in found] == list(range(len(given)))
    assert [doc.text for doc, _ in found] == given


@cases(0.1, makers=batches, bad=st.sets(st.integers(0, 4)), name=st.sampled_from(NAMES))
def test_a_doc_that_fails_goes_to_the_error_handler_and_the_rest_comes_out(
    whole, makers, bad, name
):
    docs = [make(whole) for make in makers]
    for i, doc in enumerate(docs):
        doc.user_data["bad"] = i in bad
    pipe = whole.get_pipe(name)
    told: list[tuple[str, list[Doc]]] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pipe, "predict", failing(pipe.predict))
        whole.set_error_handler(lambda name, pipe, docs, error: told.append((name, docs)))
        found = list(whole.pipe(docs))
        whole.set_error_handler(raise_error)
    failed = [doc for i, doc in enumerate(docs) if i in bad]
    assert [where for where, _ in told] == [name] * len(failed)
    assert [id(doc) for _, group in told for doc in group] == [id(doc) for doc in failed]
    rest = [i for i in range(len(docs)) if i not in bad]
    assert [id(doc) for doc in found] == [id(docs[i]) for i in rest]
    assert all(same(docs[i], whole(makers[i](whole))) for i in rest)


def failing(predict: Any) -> Any:
    """A `predict` that fails on the docs that are marked as bad."""

    def fail(docs: Any) -> Any:
        docs = list(docs)
        if any(doc.user_data["bad"] for doc in docs):
            raise RuntimeError("a doc that fails")
        return predict(docs)

    return fail


@cases(0.05, maker=annotated())
def test_evidence_that_no_analysis_agrees_with_is_told_of_its_doc_alone(whole, maker):
    docs = [maker(whole), whole.make_doc("Ada met Evans"), maker(whole)]
    docs[1].spans["chunks"] = [docs[1][0:2], docs[1][1:3]]
    told: list[list[Doc]] = []
    whole.set_error_handler(lambda name, pipe, docs, error: told.append(docs))
    found = list(whole.pipe(docs))
    whole.set_error_handler(raise_error)
    assert told == [[docs[1]]] and found == [docs[0], docs[2]]


WRITTEN = {
    "ner": {"ents", "ner"},
    "chunker": {"chunks", "chunker"},
    "parser": {"constituents", "tags"},
    "tagger": {"tags"},
}


@cases(0.1, maker=docs, off=st.sets(st.sampled_from(NAMES)))
def test_components_that_are_disabled_change_nothing_and_the_others_say_the_same(whole, maker, off):
    before, expected = layers(maker(whole)), layers(whole(maker(whole)))
    with whole.select_pipes(disable=list(off)):
        found = layers(whole(maker(whole)))
    kept = set().union(*(WRITTEN[name] for name in off)) - {"tags"}
    if {"tagger", "parser"} <= off:
        kept.add("tags")
    assert {key: found.get(key) for key in kept} == {key: before.get(key) for key in kept}
    rest = expected.keys() - kept - {"tags"}
    if "tagger" not in off:  # the others embed its tags
        assert {key: found[key] for key in rest} == {key: expected[key] for key in rest}


@pytest.fixture(scope="module")
def variants(listening):
    """Pipelines that should say the same as the one with listeners."""
    replaced, sourced = copy_of(listening), spacy.blank("en")
    for name in NAMES:
        place = "model.tok2vec.embed" if name == "chunker" else "model.tok2vec"
        replaced.replace_listeners("tok2vec", name, [place])
    for name in ("tok2vec", *NAMES):
        sourced.add_pipe(name, source=copy_of(listening))
    return [replaced, copy_of(replaced), sourced]


def copy_of(nlp: Any) -> Any:
    return spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())


@cases(0.05, makers=batches)
def test_replaced_listeners_and_sourced_components_say_the_same_also_when_saved(
    listening, variants, makers
):
    expected = list(listening.pipe([make(listening) for make in makers]))
    for nlp in variants:
        for doc, other in zip(expected, nlp.pipe([make(nlp) for make in makers]), strict=True):
            assert same(doc, other)


@cases(0.05, makers=st.lists(annotated(), min_size=1, max_size=3))
@pytest.mark.filterwarnings("ignore:.*W101")  # spaCy cannot join what is noted of whole docs
def test_annotated_docs_that_are_joined_are_annotated_as_if_they_were_not_annotated(whole, makers):
    docs = [make(whole) for make in makers]
    expected = whole(Doc.from_docs(docs))
    assert same(whole(Doc.from_docs(list(whole.pipe(docs)))), expected)


@cases(0.05, given=texts, at=st.integers(0, 40), half=st.characters(categories=["Cs"]))
def test_half_of_a_surrogate_pair_is_refused_by_spacy_before_any_component(whole, given, at, half):
    with pytest.raises(UnicodeEncodeError):
        whole(given[:at] + half + given[at:])
