"""Documents of several sentences in a recognizer with document memory."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.util import load_config
from thinc.api import Adam

from spacy_psa.corpora.documents import join_documents
from spacy_psa.scoring.result import read_examples
from tests.helpers.commands import command, succeed
from tests.helpers.paths import CONFIGS
from tests.helpers.pipelines import (
    entities,
    make_nlp,
    parameters,
    randomize,
    scored,
    small_encoder,
    small_model,
    train,
)

# The last sentence of each document says nothing of the name; the first one does.
DOCUMENTS = [
    [("Mr Kim came", [(1, 2, "PER")]), ("Kim won", [(0, 1, "PER")])],
    [("Near Kim it rained", [(1, 2, "LOC")]), ("Kim won", [(0, 1, "LOC")])],
    [("Mr Lee came", [(1, 2, "PER")]), ("It rained", []), ("Lee won", [(0, 1, "PER")])],
    [("Near Lee it rained", [(1, 2, "LOC")]), ("Lee won", [(0, 1, "LOC")])],
]


def memory_model(**settings):
    model = small_model()
    memory = {"@architectures": "spacy-psa.DocumentMemory.v1", "width": 8, "dropout": 0.0}
    model["tok2vec"] = {**memory, **settings, "tok2vec": model["tok2vec"]}
    return model


def memory_below_an_encoder():
    """A model whose sentences are encoded once more, with what the memory has found."""
    model = memory_model()
    above = small_encoder()
    model["tok2vec"] = {
        "@architectures": "spacy.Tok2Vec.v2",
        "embed": model["tok2vec"],
        "encode": above,
    }
    return model


MODELS = {"above the encoder": memory_model, "between encoders": memory_below_an_encoder}


def sentences(nlp, number):
    """The gold sentences of a document, each a Doc."""
    docs = []
    for text, ents in DOCUMENTS[number]:
        doc = Doc(nlp.vocab, words=text.split())
        doc.set_ents([Span(doc, *ent) for ent in ents])
        doc.user_data["document"] = number
        docs.append(doc)
    return docs


def gold(nlp, number):
    """A gold document."""
    [doc] = join_documents(sentences(nlp, number))
    return doc


def blank(doc):
    """The words, the sentence boundaries and the document of a doc."""
    starts = [token.is_sent_start for token in doc]
    copy = Doc(doc.vocab, words=[token.text for token in doc], sent_starts=starts)
    copy.user_data.update(doc.user_data)
    return copy


def make_documents(nlp):
    docs = [gold(nlp, number) for number in range(len(DOCUMENTS))]
    return [Example(blank(doc), doc) for doc in docs]


def learn(model):
    nlp = make_nlp(model)
    train(nlp, steps=60, optimizer=Adam(0.02), examples=make_documents(nlp))
    return nlp


@pytest.fixture(scope="module", params=list(MODELS))
def make_model(request):
    return MODELS[request.param]


@pytest.fixture(scope="module")
def trained(make_model):
    return learn(make_model())


@pytest.fixture(scope="module")
def random(make_model):
    nlp = make_nlp(make_model(), confidence=True)
    train(nlp, steps=0, examples=make_documents(nlp))
    randomize(nlp.get_pipe("ner"))
    return nlp


def test_a_name_gets_the_label_that_another_sentence_gives_it(trained):
    for number in range(len(DOCUMENTS)):
        doc = gold(trained, number)
        assert entities(trained(blank(doc))) == entities(doc)


def test_a_memory_of_certain_occurrences_learns_them_too():
    nlp = learn(memory_model(max_uncertainty=0.8))
    for number in range(len(DOCUMENTS)):
        doc = gold(nlp, number)
        assert entities(nlp(blank(doc))) == entities(doc)


def test_without_the_memory_equal_sentences_have_equal_labels():
    nlp = learn(small_model())
    found = [nlp(blank(gold(nlp, number)))[-2].ent_type_ for number in (0, 1)]
    assert found[0] == found[1]


def test_a_stream_of_sentences_is_annotated_as_its_documents_are(trained):
    stream = [blank(doc) for number in range(4) for doc in sentences(trained, number)]
    found = [doc[0].ent_type_ for doc in trained.pipe(stream, batch_size=1)]
    assert [found[i] for i in (1, 3, 6, 8)] == ["PER", "LOC", "PER", "LOC"]


def test_batches_and_processes_change_nothing(random):
    docs = [gold(random, number) for number in (0, 1, 2, 3, 0, 1)]
    expected = [scored(random(blank(doc))) for doc in docs]
    assert any(expected)
    for settings in ({"batch_size": 1}, {"batch_size": 4}, {"n_process": 2, "batch_size": 2}):
        found = [scored(doc) for doc in random.pipe(map(blank, docs), **settings)]
        for a, b in zip(found, expected, strict=True):
            assert a == pytest.approx(b, abs=1e-4)


def test_a_pipeline_is_the_same_after_disk_and_bytes(random, make_model, tmp_path):
    random.to_disk(tmp_path)
    docs = [gold(random, number) for number in range(4)]
    expected = [random.get_pipe("ner").distribution([blank(doc)]).marginals for doc in docs]
    again = make_nlp(make_model(), confidence=True)
    again.from_bytes(random.to_bytes())
    for nlp in (spacy.load(tmp_path), again):
        for doc, marginals in zip(docs, expected, strict=True):
            found = nlp.get_pipe("ner").distribution([blank(doc)]).marginals
            numpy.testing.assert_allclose(found, marginals, atol=1e-6)


def failing(predict, fails):
    """A `predict` that fails for some docs."""

    def fail(docs):
        docs = list(docs)
        if fails(docs):
            raise RuntimeError("bad doc")
        return predict(docs)

    return fail


def stream(nlp):
    """The sentences of two documents, and one that names no document between them."""
    other = Doc(nlp.vocab, words=["bad", "luck"])
    return [*map(blank, sentences(nlp, 0)), other, *map(blank, sentences(nlp, 2))]


@pytest.mark.parametrize("bad", [0, 2, 4])
def test_a_doc_that_fails_leaves_the_documents_of_its_batch_together(random, monkeypatch, bad):
    ner, docs = random.get_pipe("ner"), stream(random)
    rest = stream(random)
    del rest[bad]
    expected = [scored(doc) for doc in random.pipe(rest)]
    assert expected != [scored(random(blank(doc))) for doc in rest]
    monkeypatch.setattr(ner, "predict", failing(ner.predict, lambda group: docs[bad] in group))
    failed = []
    monkeypatch.setattr(ner, "error_handler", lambda *error: failed.append(error), raising=False)
    found = list(ner.pipe(docs, batch_size=9))
    assert [id(doc) for doc in found] == [id(doc) for doc in docs if doc is not docs[bad]]
    for doc, scores in zip(found, expected, strict=True):
        assert scored(doc) == pytest.approx(scores, abs=1e-4)
    ((name, _, group, error),) = failed
    assert (name, str(error)) == ("ner", "bad doc") and group[0] is docs[bad]


def test_docs_that_fail_only_together_are_annotated_alone(random, monkeypatch):
    ner, docs = random.get_pipe("ner"), stream(random)
    expected = [scored(random(blank(doc))) for doc in docs]
    monkeypatch.setattr(ner, "predict", failing(ner.predict, lambda group: len(group) > 1))
    found = list(ner.pipe(docs, batch_size=9))
    assert [id(doc) for doc in found] == list(map(id, docs))
    for doc, scores in zip(found, expected, strict=True):
        assert scored(doc) == pytest.approx(scores, abs=1e-4)


def test_evidence_in_a_document_holds_and_leaves_other_sentences_alone(random):
    doc = blank(gold(random, 2))
    free = random(blank(doc))
    doc.set_ents([Span(doc, 1, 2, "LOC")], default="missing")
    found = random(doc)
    assert (1, 2, "LOC") in entities(found)
    assert [e for e in entities(found) if e[0] > 2] == [e for e in entities(free) if e[0] > 2]


def test_every_weight_learns(make_model):
    nlp = make_nlp(make_model())
    examples = make_documents(nlp)
    train(nlp, steps=1, examples=examples)
    pipe = nlp.get_pipe("ner")
    pipe.update(examples)
    assert all(p.grad is not None for p in parameters(pipe))
    assert len(parameters(pipe)) > 10


@pytest.mark.parametrize("text", ["", "Kim", "  ", "Kim \n Kim"])
def test_odd_texts_are_annotated(random, text):
    assert len(random(text)) == len(random.make_doc(text))


def test_one_word_ten_thousand_times_is_annotated(random):
    words = ["kim", "came"] * 5000 + ["Kim"] * 5000
    starts = [i % 25 == 0 for i in range(len(words))]
    doc = random(Doc(random.vocab, words=words, sent_starts=starts))
    assert len(doc) == 15_000


def test_training_by_a_config_reads_documents_and_so_does_the_report(make_model, tmp_path):
    nlp = spacy.blank("en")
    docs = [doc for number in range(4) for doc in sentences(nlp, number)]
    for part in ("train", "dev"):
        DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / f"{part}.spacy")
    config = load_config(CONFIGS / "ner" / "bilstm_crf.cfg", interpolate=False)
    config["components"]["ner"]["model"] = make_model()
    for part in ("train", "dev"):
        reader = {"@readers": "spacy-psa.DocumentCorpus.v1", "path": f"${{paths.{part}}}"}
        config["corpora"][part] = reader
    config["training"] |= {"max_steps": 60, "eval_frequency": 30, "patience": 0}
    config["training"]["optimizer"] = {"@optimizers": "Adam.v1", "learn_rate": 0.02}
    config.to_disk(tmp_path / "config.cfg")
    paths = [f"--paths.{part}={tmp_path / part}.spacy" for part in ("train", "dev")]
    output = tmp_path / "out"
    succeed(command("train")(tmp_path / "config.cfg", "--output", output, *paths))
    best = spacy.load(output / "model-best")
    examples = read_examples(best, tmp_path / "dev.spacy")
    assert [len(list(example.predicted.sents)) for example in examples] == [2, 2, 3, 2]
    assert best.evaluate(examples)["ents_f"] == 1.0
