"""Teach: training from decisions on a tiny model, in this process and in one of its own."""

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_psa.errors import InputError
from spacy_psa.studio.active_learning import beginning, teaching
from spacy_psa.studio.active_learning.beginning import Beginning
from spacy_psa.studio.active_learning.export import ExportCounts, decided_texts, reference_doc
from spacy_psa.studio.active_learning.store import Component, open_store
from spacy_psa.studio.active_learning.teach_process import Lesson, run
from spacy_psa.studio.active_learning.teaching import EPOCHS, teach
from tests.helpers.decided import (
    LABELS,
    accept,
    complete,
    decide_all,
    dev_file,
    reject,
    small_store,
    tokens_of,
)
from tests.helpers.embedders import LISTENER
from tests.helpers.encoders import write_encoder
from tests.helpers.patience import PATIENCE
from tests.helpers.pipelines import (
    TEXTS,
    entities,
    make_chunk_examples,
    make_examples,
    make_nlp,
    parameters,
    small_encoder,
    small_model,
    train,
)


@pytest.fixture(autouse=True)
def short_epochs(monkeypatch):
    monkeypatch.setattr(teaching, "STEPS", 4)


def untrained(rate=0.04, **settings):
    """A pipeline with random weights and a config that learns quickly."""
    nlp = make_nlp(**settings)
    nlp.config["training"]["optimizer"] = {"@optimizers": "Adam.v1", "learn_rate": rate}
    train(nlp, steps=0)
    return nlp


@pytest.fixture
def lesson(tmp_path):
    """A lesson whose model is untrained and whose texts are all decided but for one."""
    untrained().to_disk(tmp_path / "model")
    file = tmp_path / "names.sqlite"
    with small_store(file, TEXTS) as store:
        decide_all(store, skip=lambda number: number == 8)
        store.decide(8, "ann", "ner", [accept(3, 4, "ORG"), reject(1, 2, "PER")])
    return Lesson(
        model=str(tmp_path / "model"), store=file, component="ner", output=tmp_path / "names-model"
    )


def taught(lesson):
    lines = io.StringIO()
    run(lesson, lines)
    return [json.loads(line) for line in lines.getvalue().splitlines()]


def test_a_model_that_is_not_worse_is_saved_and_predicts_what_was_decided(lesson, tmp_path):
    lesson = lesson.model_copy(update={"dev": dev_file(tmp_path / "dev.spacy")})
    *epochs, last = taught(lesson)
    assert last["taken"]
    assert last["score"] > last["before"]
    assert last["score"] == max(epoch["score"] for epoch in epochs)
    assert (last["texts"], last["dev"]) == (8, 8)
    assert [epoch["epoch"] for epoch in epochs] == list(range(1, len(epochs) + 1))
    assert len(epochs) <= EPOCHS
    nlp = spacy.load(lesson.output)
    assert entities(nlp(TEXTS[5])) == [(0, 1, "PER")]
    scores = nlp.evaluate(make_examples(nlp))
    assert scores["ents_f"] == pytest.approx(last["score"])
    assert nlp.get_pipe("ner").store.incorrect_spans_key is None
    assert not (tmp_path / ".names-model.new").exists()
    assert taught(lesson.model_copy(update={"model": str(lesson.output)}))[-1]["before"] == (
        pytest.approx(last["score"])
    )


def _vectors(folder):
    nlp = spacy.blank("en")
    for i, word in enumerate(sorted({*" ".join(TEXTS).lower().split()})):
        nlp.vocab.set_vector(word, numpy.eye(50, dtype="float32")[i])
    nlp.to_disk(folder / "vectors")
    return {"vectors": str(folder / "vectors")}


def _small_encoder(folder):
    return {"base": str(write_encoder(folder / "bert"))}


def _real_encoder(folder):
    encoders = os.environ.get("SPACY_PSA_ENCODERS")
    if not encoders:
        pytest.skip("SPACY_PSA_ENCODERS names no folder with real encoders")
    return {"base": str(Path(encoders) / "all-MiniLM-L6-v2")}


@pytest.mark.parametrize(
    ("task", "means"),
    [
        ("ner", _vectors),
        ("chunker", _small_encoder),
        ("tagger", _small_encoder),
        ("ner", _real_encoder),
    ],
)
def test_the_first_model_is_over_vectors_or_a_pretrained_encoder(
    task, means, tmp_path, monkeypatch
):
    """It loads without the vectors or the encoder that it was made from."""
    monkeypatch.setattr(beginning, "MOST_STEPS", 32)
    given = means(tmp_path)
    begin = Beginning(labels=LABELS, task=task, **given)
    file, output = tmp_path / "names.sqlite", tmp_path / "names-model"
    with small_store(file, TEXTS) as store:
        spans_key = "chunks" if task == "chunker" else None
        store.use(Component(task, LABELS, spans_key, task == "tagger"))
        if task == "tagger":
            for number, length in store.lengths().items():
                tags = [accept(i, i + 1, "PER") for i in range(1, length)]
                first = reject(0, 1, "ORG") if number == 1 else accept(0, 1, "LOC")
                store.decide(number, "ann", task, [first, *tags])
        else:
            decide_all(store, component=task)
    lesson = Lesson(model=None, store=file, component=task, output=output, begin=begin)
    *_, last = taught(lesson)
    assert last["taken"] and last["dev"] == 1
    for path in map(Path, given.values()):
        if tmp_path in path.parents:
            shutil.rmtree(path)
    nlp = spacy.load(output)
    doc = nlp(TEXTS[0])
    assert doc.has_annotation("ENT_IOB") or "chunks" in doc.spans or doc.has_annotation("TAG")
    assert bool(nlp.vocab.vectors.shape[0]) is ("vectors" in given)


def test_the_first_model_is_kept_even_if_random_weights_score_better(tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_psa.studio.active_learning.teaching._score", Falling())
    monkeypatch.setattr(beginning, "MOST_STEPS", 16)
    begin = Beginning(labels=LABELS, **_small_encoder(tmp_path))
    file, output = tmp_path / "names.sqlite", tmp_path / "names-model"
    with small_store(file, TEXTS) as store:
        decide_all(store)
    last = taught(Lesson(model=None, store=file, component="ner", output=output, begin=begin))[-1]
    assert (last["taken"], last["before"]) == (True, 0)
    assert "ner" in spacy.load(output).pipe_names


def test_rules_are_saved_with_the_model_and_their_weights_are_learned(lesson, tmp_path):
    patterns = tmp_path / "towns.jsonl"
    names = ("Leeds", "London", "Bath", "towns", "left", "and")
    lines = (f'{{"label": "LOC", "pattern": "{name}"}}\n' for name in names)
    patterns.write_text("".join(lines), encoding="utf8")
    dev = dev_file(tmp_path / "dev.spacy")
    taught(lesson.model_copy(update={"dev": dev, "patterns": [patterns]}))
    nlp = spacy.load(lesson.output)
    assert nlp.pipe_names == ["towns", "ner"] and len(nlp.get_pipe("towns").patterns) == 6
    weights = nlp.get_pipe("ner").suggested_spans["towns"]
    assert weights["*"] == 2.0 != weights["LOC"]
    again = lesson.model_copy(update={"dev": dev, "model": str(lesson.output)})
    assert taught(again)[-1]["dev"] == 8  # the rules come with the model


def test_without_development_data_texts_are_held_out_and_not_learned(lesson):
    last = taught(lesson)[-1]
    assert (last["texts"], last["dev"]) == (7, 1)


def test_a_model_that_is_worse_changes_nothing(lesson, tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_psa.studio.active_learning.teaching._score", Falling())
    nlp = spacy.load(lesson.model)
    before = nlp.to_bytes()
    with open_store(lesson.store, reading=True) as store:
        docs = [
            reference_doc(item, store.component, nlp.vocab)
            for item in decided_texts(store, None, ExportCounts())
        ]
    result = teach(nlp, "ner", docs, docs)
    assert not result.taken
    assert (result.before, result.score) == pytest.approx((0.9, 0.8))  # of the best epoch
    assert nlp.to_bytes() == before
    monkeypatch.setattr("spacy_psa.studio.active_learning.teaching._score", Falling())
    last = taught(lesson)[-1]
    assert not last["taken"]
    assert not lesson.output.exists()


class Falling:
    """A score that is lower each time."""

    def __init__(self):
        self.value = 1.0

    def __call__(self, *arguments):
        self.value -= 0.1
        return self.value


def test_other_training_data_is_mixed_in(lesson, tmp_path):
    dev = dev_file(tmp_path / "dev.spacy")
    nlp = spacy.load(lesson.model)
    with open_store(lesson.store, reading=True) as store:
        item = next(decided_texts(store, None, ExportCounts()))
        doc = reference_doc(item, store.component, nlp.vocab)
    gold = [example.reference for example in make_examples(nlp)]
    alone = teach(spacy.load(lesson.model), "ner", [doc], gold)
    mixed = teach(nlp, "ner", [doc], gold, replayed=gold)
    assert mixed.score > alone.score
    assert taught(lesson.model_copy(update={"train": dev, "dev": dev}))[-1]["taken"]


def test_only_the_component_learns(lesson):
    nlp = make_nlp()
    nlp.add_pipe("crf_tagger", name="tagger", config={"model": small_model()})
    examples = make_examples(nlp)
    for example in examples:
        for token in example.reference:
            token.tag_ = "X" if token.ent_type else "Y"
    nlp.initialize(lambda: examples)
    nlp.config["training"]["optimizer"] = {"@optimizers": "Adam.v1", "learn_rate": 0.04}
    before = [parameter.clone() for parameter in parameters(nlp.get_pipe("tagger"))]
    old = [parameter.clone() for parameter in parameters(nlp.get_pipe("ner"))]
    gold = [example.reference for example in examples]
    assert teach(nlp, "ner", gold, gold).taken
    after = parameters(nlp.get_pipe("tagger"))
    assert all((a == b).all() for a, b in zip(before, after, strict=True))
    assert any((a != b).any() for a, b in zip(old, parameters(nlp.get_pipe("ner"))))


def listening(*names):
    """Recognizers that share a tok2vec."""
    nlp = spacy.blank("en")
    embed = small_model()["tok2vec"]["embed"]
    shared = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": small_encoder()}
    nlp.add_pipe("tok2vec", config={"model": shared})
    model = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": LISTENER}
    for name in names:
        nlp.add_pipe("crf_ner", name=name, config={"model": model})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    nlp.config["training"]["optimizer"] = {"@optimizers": "Adam.v1", "learn_rate": 0.04}
    return nlp, [example.reference for example in examples]


def test_what_the_component_listens_to_learns_with_it():
    nlp, gold = listening("ner")
    before = nlp.get_pipe("tok2vec").model.to_bytes()
    result = teach(nlp, "ner", gold, gold)
    assert result.score > result.before
    assert nlp.get_pipe("tok2vec").model.to_bytes() != before


def test_the_sentences_of_a_document_are_read_together(monkeypatch):
    nlp = untrained()
    gold = [example.reference for example in make_examples(nlp)]
    for i, doc in enumerate(gold):
        doc.user_data["document"] = i // 5
    read = []
    pipe = nlp.get_pipe("ner")
    predict = pipe.predict
    monkeypatch.setattr(
        pipe,
        "predict",
        lambda docs: read.append([doc.user_data["document"] for doc in docs]) or predict(docs),
    )
    teach(nlp, "ner", gold, gold)
    assert read[0] == [0] * 5 + [1] * 3


def test_a_shared_tok2vec_is_one_error():
    nlp, gold = listening("ner", "other")
    with pytest.raises(InputError, match="ner shares tok2vec with other, which Teach would change"):
        teach(nlp, "ner", gold, gold)


def test_a_chunker_learns_from_complete_texts(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_chunker", name="chunker", config={"model": small_model()})
    examples = make_chunk_examples(nlp)
    nlp.initialize(lambda: examples)
    nlp.config["training"]["optimizer"] = {"@optimizers": "Adam.v1", "learn_rate": 0.04}
    gold = [example.reference for example in examples]
    result = teach(nlp, "chunker", gold, gold)
    assert result.score > result.before


def test_nothing_to_learn_from_or_to_measure_by_is_one_error(lesson, tmp_path):
    nlp = spacy.load(lesson.model)
    gold = [example.reference for example in make_examples(nlp)]
    with pytest.raises(InputError, match="no decided text to learn from"):
        teach(nlp, "ner", [], gold)
    with pytest.raises(InputError, match="no development data"):
        teach(nlp, "ner", gold, [])
    bare = [Doc(nlp.vocab, words=[token.text for token in doc]) for doc in gold]
    with pytest.raises(InputError, match="no annotation that ner predicts"):
        teach(nlp, "ner", gold, bare)
    with open_store(lesson.store) as store:
        while store.undo("ann", "ner"):
            pass
        store.decide(1, "ann", "ner", [accept(0, 2, "PER")])
    with pytest.raises(InputError, match="complete at least two texts with spans, or start the"):
        taught(lesson)
    assert not lesson.output.exists()


def test_texts_that_are_kept_without_a_span_are_joined_by_one_that_has_some(lesson):
    """With rare labels, the texts by whose number they are kept have no span for long."""
    length = len(TEXTS[4].split())
    with open_store(lesson.store) as store:
        while store.undo("ann", "ner"):
            pass
        decide_all(store, skip=lambda number: number == 5)
        store.decide(5, "ann", "ner", [complete(0, length)])
    last = taught(lesson)[-1]
    assert (last["texts"], last["dev"]) == (6, 2)


def test_texts_that_are_all_kept_for_measuring_are_learned_but_for_one(lesson):
    with open_store(lesson.store) as store:
        while store.undo("ann", "ner"):
            pass
        store.add([(tokens_of(text), {}) for text in ("Ada met Eve", "Bob met Ada")])
        for number in (5, 10):
            words = store.text(number).tokens.words
            store.decide(number, "ann", "ner", [accept(0, 1, "PER"), complete(0, len(words))])
    last = taught(lesson)[-1]
    assert (last["texts"], last["dev"]) == (1, 1)


def test_development_data_with_an_unknown_label_counts_as_missed(lesson, tmp_path):
    nlp = spacy.blank("en")
    (doc,) = [example.reference for example in make_examples(nlp, ["[Ada|DATE] left"])]
    DocBin(docs=[doc]).to_disk(tmp_path / "dev.spacy")
    last = taught(lesson.model_copy(update={"dev": tmp_path / "dev.spacy"}))[-1]
    assert (last["before"], last["score"], last["taken"]) == (0, 0, True)


def test_training_data_with_an_unknown_label_is_one_error(lesson, tmp_path):
    dev = dev_file(tmp_path / "dev.spacy")
    (doc,) = [e.reference for e in make_examples(spacy.blank("en"), ["[Ada|DATE] left"])]
    DocBin(docs=[doc]).to_disk(tmp_path / "train.spacy")
    with pytest.raises(InputError, match="the label 'DATE', which is not among the labels"):
        taught(lesson.model_copy(update={"dev": dev, "train": tmp_path / "train.spacy"}))
    assert not lesson.output.exists()


def test_the_process_writes_an_error_as_one_line_of_json(lesson, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    lesson = lesson.model_copy(update={"output": blocked / "names-model"})
    with teach_process(lesson) as process:
        (line,) = process.stdout
    assert "cannot be written" in json.loads(line)["error"]


def test_the_process_ends_with_the_server_that_started_it(lesson, tmp_path):
    lesson = lesson.model_copy(update={"dev": dev_file(tmp_path / "dev.spacy")})
    with teach_process(lesson, "-c", ENDLESS) as it:
        assert "epoch" in json.loads(it.stdout.readline())
        it.stdin.close()
        assert it.wait(PATIENCE) == 1
    assert not lesson.output.exists()


ENDLESS = """
from spacy_psa.studio.active_learning import teach_process
teach_process.EPOCHS = teach_process.PATIENCE = 10**6
teach_process.main()
"""


def teach_process(lesson, *words):
    words = words or ("-m", "spacy_psa.studio.active_learning.teach_process")
    command = [sys.executable, *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write(lesson.model_dump_json() + "\n")
    process.stdin.flush()
    return process


def test_a_model_that_is_not_there_is_one_error(lesson, tmp_path):
    with pytest.raises(InputError, match="no pipeline to open"):
        run(lesson.model_copy(update={"model": str(tmp_path / "none")}), io.StringIO())
