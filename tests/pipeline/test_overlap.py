"""Batches that a thread predicts ahead, as on a GPU, are annotated as without it."""

import threading

import pytest

from spacy_psa.pipeline import overlap
from tests.helpers.pipelines import entities, random_nlp, scored


@pytest.fixture
def nlp():
    return random_nlp({"confidence": True})


@pytest.fixture
def on_gpu(monkeypatch):
    monkeypatch.setattr(overlap, "DEVICE", "cpu")


def texts():
    return [f"Ada {'met Bob ' * (i % 7)}in Leeds {i}" for i in range(23)]


def annotated(nlp, size=4):
    return [(entities(doc), scored(doc)) for doc in nlp.pipe(texts(), batch_size=size)]


def noted(nlp, monkeypatch, name):
    """The threads that call a method of the component, and the number of docs in each call."""
    pipe, calls = nlp.get_pipe("ner"), []
    method = getattr(pipe, name)

    def called(docs, *others):
        calls.append((threading.current_thread() is threading.main_thread(), len(docs)))
        return method(docs, *others)

    monkeypatch.setattr(pipe, name, called)
    return calls


def test_docs_have_the_same_annotation_and_order(nlp, monkeypatch, request):
    alone = annotated(nlp)
    request.getfixturevalue("on_gpu")
    calls = [noted(nlp, monkeypatch, name) for name in ("predict", "set_annotations")]
    assert annotated(nlp) == alone
    sizes = [4, 4, 4, 4, 4, 3]
    assert calls == [[(False, size) for size in sizes], [(True, size) for size in sizes]]


def test_one_batch_is_predicted_ahead_and_the_thread_ends(nlp, monkeypatch, on_gpu):
    calls = noted(nlp, monkeypatch, "predict")
    before = threading.active_count()
    docs = nlp.get_pipe("ner").pipe(map(nlp.make_doc, texts()), batch_size=4)
    next(docs)
    assert len(calls) <= 2 and threading.active_count() == before + 1
    docs.close()
    assert threading.active_count() == before


def test_a_doc_that_fails_goes_to_the_error_handler(nlp, monkeypatch, on_gpu):
    pipe, failed = nlp.get_pipe("ner"), []
    predict = pipe.predict

    def fail(docs):
        if any(doc.text.endswith(" 9") for doc in docs):
            raise ValueError("no prediction")
        return predict(docs)

    expected = [names for i, (names, _) in enumerate(annotated(nlp)) if i != 9]
    monkeypatch.setattr(pipe, "predict", fail)
    pipe.set_error_handler(lambda name, pipe, docs, error: failed.append((docs, str(error))))
    found = list(pipe.pipe(map(nlp.make_doc, texts()), batch_size=4))
    assert [entities(doc) for doc in found] == expected
    assert [([doc.text for doc in docs], error) for docs, error in failed] == [
        ([texts()[9]], "no prediction")
    ]


def test_on_a_cpu_there_is_no_thread(nlp, monkeypatch):
    calls = noted(nlp, monkeypatch, "predict")
    annotated(nlp)
    assert {main for main, _ in calls} == {True}
