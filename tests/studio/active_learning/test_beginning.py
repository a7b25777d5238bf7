"""Annotation that begins without a model: the first model, and the next start."""

import asyncio
import subprocess
from dataclasses import replace

import pytest
import spacy
from starlette.testclient import TestClient

from spacy_psa.errors import InputError
from spacy_psa.studio.active_learning.beginning import (
    MOST_STEPS,
    Beginning,
    check_label,
    first_model,
    without_knowledge,
)
from spacy_psa.studio.active_learning.decisions import Decided
from spacy_psa.studio.server.annotate import annotate_view
from spacy_psa.studio.server.annotate_plan import AnnotatePlan
from spacy_psa.studio.server.app import create_app
from spacy_psa.studio.server.models import ServedModel
from spacy_psa.studio.server.project import project_view
from tests.helpers.decided import accept, complete, reject
from tests.helpers.patience import PATIENCE
from tests.helpers.pipelines import make_examples, random_nlp
from tests.helpers.quick_python import PYTHON

BEGIN = """
import sys
from spacy_psa.studio.active_learning.beginning import Beginning, without_knowledge
print(without_knowledge(Beginning(labels=("A", "B"), task=sys.argv[1])).pipe_names)
"""


@pytest.mark.parametrize("task", ["ner", "chunker", "tagger"])
def test_a_new_process_makes_a_model_that_knows_nothing(task):
    """Other tests have imported all components, a server that begins has not."""
    done = subprocess.run(
        [PYTHON, "-c", BEGIN, task], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout == f"['sentencizer', '{task}']\n", done.stderr


@pytest.mark.parametrize("task", ["ner", "chunker", "tagger"])
def test_the_first_model_knows_all_labels_and_the_words_of_the_decided_texts(task):
    docs = [example.reference for example in make_examples(spacy.blank("en"))]
    for doc in docs:
        doc.spans["chunks"] = list(doc.ents)
        for token in doc:
            token.tag_ = token.ent_type_
    labels = ["PER", "ORG", "LOC", "WORK"]
    nlp, steps = first_model(Beginning(labels=labels, task=task), docs, labels)
    assert set(nlp.get_pipe(task).labels) == set(labels)
    assert nlp.pipe_names == ["sentencizer", task] and 0 < steps <= MOST_STEPS
    assert nlp.config["paths"]["train"] is None
    assert nlp("Ada left.").has_annotation("SENT_START")


def test_texts_without_spans_make_no_model():
    nlp = spacy.blank("en")
    doc = nlp("Nobody came")
    doc.set_ents([])
    with pytest.raises(InputError, match="nothing to learn"):
        first_model(Beginning(labels=["PER"]), [doc], ["PER"])


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"vectors": "none"}, "none"),
        ({"vectors": "empty"}, "has no word vectors; use a pipeline of"),
        ({"base": "empty"}, "has no config.json with a model_type"),
    ],
)
def test_what_the_first_training_would_not_find_is_refused_at_once(
    tmp_path, monkeypatch, given, reason
):
    monkeypatch.chdir(tmp_path)
    spacy.blank("en").to_disk("empty")
    with pytest.raises(InputError, match=reason):
        without_knowledge(Beginning(labels=["PER"], **given))


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ((), "--labels is empty"),
        (("PER", ""), "cannot be a label"),
        (("PER", "O"), "'O' cannot be a label"),
        (("PER", "per"), "already a label 'PER'"),
    ],
)
def test_bad_labels_are_refused(labels, reason):
    with pytest.raises(InputError, match=reason):
        without_knowledge(Beginning(labels=labels))
    assert check_label(" PER ") == "PER"


def plan_of(folder, **options):
    texts = folder / "texts.txt"
    texts.write_text("Ada left Rome .\nBob came .\n", encoding="utf8")
    begin = Beginning(labels=("PER", "ORG"))
    return AnnotatePlan(folder / "work.sqlite", texts, annotator="ann", begin=begin, **options)


def test_labels_that_were_added_are_there_at_the_next_start(tmp_path):
    plan = plan_of(tmp_path)
    with plan.open() as store:
        name, path, nlp = plan.model()
        assert (name, path) == ("no model yet", None)
        served = ServedModel(name, nlp)
        work = plan.work(store, served, path)
        app = create_app([served], None, [annotate_view(work), project_view(work)])
        with TestClient(app, "http://localhost") as client:
            about = client.post("/api/annotation/labels", json={"label": "LOC"}).json()
            assert about["labels"] == ["PER", "ORG", "LOC"] and not about["trained"]
            refused = client.post("/api/annotation/labels", json={"label": "O"})
            assert refused.status_code == 422
            shown = client.post("/api/annotation/text", json={"annotator": "ann"}).json()
            assert [s["analyses"][0]["items"] for s in shown["sentences"]] == [[]]
            decision = {"verdict": "accepted", "start": 2, "end": 3, "label": "LOC"}
            asked = {"annotator": "ann", "text": shown["text"], "decisions": [decision]}
            after = client.post("/api/annotation/decide", json=asked).json()
            (item,) = after["sentences"][0]["analyses"][0]["items"]
            assert item[:3] == [2, 3, "LOC"]
            assert client.post("/api/annotation/teach").json()["state"] == "running"
    with plan.open() as store:
        name, path, nlp = plan.model()
        work = plan.work(store, ServedModel(name, nlp), path)
        assert work.component.labels == ("PER", "ORG", "LOC") and not work.trained


def test_rules_suggest_spans_before_there_is_a_model(tmp_path):
    patterns = tmp_path / "names.jsonl"
    lines = [("PER", "Ada"), ("ORG", "Ada left"), ("ORG", "Rome"), ("PER", "Rome"), ("X", "Bob")]
    patterns.write_text("".join(f'{{"label": "{x}", "pattern": "{p}"}}\n' for x, p in lines))
    plan, warnings = plan_of(tmp_path, patterns=(patterns,)), []
    with plan.open() as store:
        name, path, nlp = plan.model()
        served = ServedModel(name, nlp)
        work = plan.work(store, served, path, warnings.append)

        def shown(*decisions):
            decided = Decided().then(decisions)
            (sentence,) = work.shown(store.text(1), decided, served)["sentences"]
            (analysis,) = sentence["analyses"]
            return [tuple(item) for item in analysis["items"]]

        likely = pytest.approx(0.8808)  # of exp(2) to 1
        assert shown() == [(0, 2, "ORG", likely), (2, 3, "ORG", likely)]
        assert shown(reject(0, 2), reject(2, 3, "ORG")) == [
            (0, 1, "PER", likely),
            (2, 3, "PER", likely),
        ]
        assert shown(accept(0, 1, "PER"), complete(0, 2)) == [
            (0, 1, "PER", 1.0),
            (2, 3, "ORG", likely),
        ]
        assert "does not know X" in warnings[0]
        assert work.teacher.lesson.patterns == [patterns]


def test_a_model_gets_the_labels_that_it_lacks_in_the_order_of_the_work(tmp_path):
    """Not in the order of a set, which differs from run to run, and with it the weights."""
    plan = plan_of(tmp_path)
    added = [f"LABEL_{i}" for i in range(9)]

    async def with_model(_, act, in_time=True):
        return act(served)

    async def add_and_replace(work):
        for label in added:
            await work.add_label(with_model, label)
        await work.replace(with_model, without_knowledge(plan.begin))

    with plan.open() as store:
        name, path, nlp = plan.model()
        served = ServedModel(name, nlp)
        work = plan.work(store, served, path)
        asyncio.run(add_and_replace(work))
        assert served.nlp.get_pipe("ner").labels == work.component.labels == ("PER", "ORG", *added)


def test_labels_that_are_added_while_a_model_is_replaced_are_all_kept(tmp_path):
    plan = plan_of(tmp_path)
    added = [f"LABEL_{i}" for i in range(9)]

    async def with_model(_, act, in_time=True):
        await asyncio.sleep(0.001)
        return act(served)

    async def at_once(work):
        await asyncio.gather(
            *(work.add_label(with_model, label) for label in added[:5]),
            work.replace(with_model, without_knowledge(plan.begin)),
            *(work.add_label(with_model, label) for label in added[5:]),
        )

    with plan.open() as store:
        name, path, nlp = plan.model()
        served = ServedModel(name, nlp)
        work = plan.work(store, served, path)
        asyncio.run(at_once(work))
        assert sorted(store.added) == added
        assert {*served.nlp.get_pipe("ner").labels} == {*work.component.labels} >= {*added}


@pytest.mark.parametrize(
    "line", ['{"text": "Ada met \\ud83d Bob"}', '{"text": "Ada", "id": "\\ud83d"}']
)
def test_half_of_a_surrogate_pair_is_named_in_a_text_and_kept_in_other_keys(tmp_path, line):
    (tmp_path / "texts.jsonl").write_text(line + "\n", "utf8")
    plan = replace(plan_of(tmp_path), texts=tmp_path / "texts.jsonl")
    with plan.open() as store:
        name, path, nlp = plan.model()
        if "id" in line:
            plan.work(store, ServedModel(name, nlp), path)
            assert store.text(1).meta == {"id": "\ud83d"}
        else:
            with pytest.raises(InputError, match="jsonl:1: has half of a surrogate pair"):
                plan.work(store, ServedModel(name, nlp), path)


def test_the_model_of_an_earlier_teach_is_served_at_the_next_start(tmp_path):
    plan = plan_of(tmp_path)
    random_nlp().to_disk(plan.output)
    name, path, nlp = plan.model()
    assert (name, path) == ("work-model", str(plan.output)) and "ner" in nlp.pipe_names
