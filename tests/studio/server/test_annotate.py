"""The interface of Annotate: decisions that are evidence, undo, several annotators, Teach."""

import asyncio
from contextlib import contextmanager

import pytest
import spacy
from starlette.testclient import TestClient

from spacy_psa.errors import InputError
from spacy_psa.studio.active_learning.decisions import Decided, Decision
from spacy_psa.studio.active_learning.queue import Order
from spacy_psa.studio.active_learning.store import AnnotationStore
from spacy_psa.studio.server import app
from spacy_psa.studio.server.annotate_plan import AnnotatePlan
from spacy_psa.studio.server.guidelines import guidelines_html
from spacy_psa.studio.server.models import ServedModel
from tests.helpers.annotating import SPOKEN, annotating, fail_on_bad
from tests.helpers.decided import decide_all, dev_file
from tests.helpers.patience import wait_for
from tests.helpers.pipelines import TEXTS, random_nlp, small_model


class Client:
    """Asks the interface for an annotator."""

    def __init__(self, client, work):
        self.client = client
        self.work = work

    def post(self, path, annotator="ann", **body):
        answer = self.client.post(f"/api/annotation/{path}", json={"annotator": annotator, **body})
        return answer.status_code, answer.json()

    def next(self, annotator="ann"):
        return self.post("text", annotator)[1]

    def decide(self, text, *decisions, annotator="ann"):
        keys = ("verdict", "start", "end", "label")
        made = [dict(zip(keys, decision)) for decision in decisions]
        return self.post("decide", annotator, text=text, decisions=made)


@contextmanager
def asking(nlp, folder, lines=SPOKEN, **options):
    with (
        annotating(nlp, folder, lines, **options) as (work, app),
        TestClient(app, "http://localhost") as client,
    ):
        yield Client(client, work)


@pytest.fixture
def asked(served, tmp_path):
    with asking(served.nlp, tmp_path) as asked:
        yield asked


def test_the_mark_at_the_start_of_a_file_of_guidelines_is_no_text(tmp_path):
    (tmp_path / "rules.md").write_bytes(b"\xef\xbb\xbf# Names")
    assert guidelines_html(tmp_path / "rules.md") == "<h3>Names</h3>\n"


def items(answer):
    return [tuple(item[:3]) for s in answer["sentences"] for item in s["analyses"][0]["items"]]


def by_text(asked, number):
    return asked.post("text", text=number)[1]


def test_the_first_text_is_the_most_useful_and_comes_with_suggestions(asked, served):
    ner = served.nlp.get_pipe("ner")
    texts = list(asked.work.store.texts([1, 2, 3]))
    entropies = {
        text.number: ner.entropy(text.tokens.doc(served.nlp.vocab)) / len(text.tokens.words)
        for text in texts
    }
    answer = asked.next()
    assert answer["text"] == max(entropies, key=entropies.get)
    assert answer["counts"] == {"texts": 3, "done": 0, "decisions": 0, "skipped": 0}
    for sentence in answer["sentences"]:
        for start, end, label, probability in sentence["analyses"][0]["items"]:
            assert 0 < probability <= 1 and start < end and label in ("PER", "LOC", "ORG")


def test_a_decision_is_saved_and_the_rest_follows_as_the_component_finds_it(asked, served):
    status, answer = asked.decide(1, ("rejected", 0, 2, "PER"), ("accepted", 3, 4, "ORG"))
    assert status == 200
    text = asked.work.store.text(1)
    doc = text.tokens.doc(served.nlp.vocab)
    (analyses,) = served.nlp.get_pipe("ner").analyses([doc])
    analyses = analyses.given(forbid=[(0, 2, "PER")], require=[(3, 4, "ORG")])
    assert items(answer) == [(s.start, s.end, s.label_) for s in analyses.best]
    assert answer["accepted"] == [[3, 4, "ORG"]]
    assert answer["rejected"] == [[0, 2, "PER"]]
    assert answer["outside"] == []
    assert not answer["done"]
    assert answer["counts"]["decisions"] == 2
    assert by_text(asked, 1)["accepted"] == [[3, 4, "ORG"]]


def test_an_action_that_is_sent_again_is_done_once(asked):
    """The answer was lost, and meanwhile the server may have started again."""
    span = {"verdict": "accepted", "start": 3, "end": 4, "label": "ORG"}
    for key in ("1", "1", "2"):
        _, answer = asked.post("decide", text=1, decisions=[span], key=key)
        assert answer["accepted"] == [[3, 4, "ORG"]]
    assert answer["counts"]["decisions"] == 2
    for key, left in (("3", 1), ("3", 1), ("4", 0), ("4", 0)):
        status, answer = asked.post("undo", key=key)
        assert (status, answer["text"], answer["counts"]["decisions"]) == (200, 1, left)
    assert asked.post("undo", key="5")[0] == 409
    assert asked.post("decide", "eve", text=1, decisions=[span], key="1")[0] == 200
    assert asked.work.store.count("eve", "ner") == 1  # keys are the annotator's own


def test_nothing_else_here_completes_a_text_and_leaves_the_queue(asked):
    length = len(asked.work.store.text(2).tokens.words)
    _, answer = asked.decide(2, ("accepted", 0, 1, "ORG"), ("complete", 0, length))
    assert answer["done"]
    assert answer["counts"]["done"] == 1
    assert answer["outside"] == list(range(1, length))
    assert items(answer) == [(0, 1, "ORG")]
    seen = set()
    while (number := asked.next()["text"]) is not None:
        seen.add(number)
        asked.decide(number, ("complete", 0, len(asked.work.store.text(number).tokens.words)))
    assert seen == {1, 3}


def test_the_next_text_is_the_answer_once_one_is_decided_completely_or_skipped(asked):
    first = asked.next()["text"]
    length = len(asked.work.store.text(first).tokens.words)
    seen = [first]
    for made in (("complete", 0, length - 1), ("complete", 0, length), ("skipped", 0, 1)):
        made = dict(zip(("verdict", "start", "end"), made))
        for _ in range(2):  # sent again, it is done once
            asking = {"text": seen[-1], "decisions": [made], "key": str(made), "next": True}
            _, answer = asked.post("decide", **asking)
        seen.append(answer["text"])
    assert seen[1] == first and sorted(seen[1:]) == [1, 2, 3]
    assert (answer["counts"]["done"], answer["counts"]["skipped"]) == (1, 1)


def test_a_contradiction_is_one_line_and_saves_nothing(asked):
    status, answer = asked.decide(1, ("accepted", 0, 2, "PER"), ("rejected", 0, 2, "PER"))
    assert status == 200  # the later one counts
    for bad, message in [
        ([("accepted", 0, 99, "PER")], "not a stretch of a text"),
        ([("accepted", 0, 1, "DATE")], "the label 'DATE'"),
        ([("accepted", 0, 1, "")], "without a label"),
        ([("accepted", 2, 2, "PER")], "not a stretch of a text"),
    ]:
        before = asked.work.store.count("ann", "ner")
        status, answer = asked.decide(1, *bad)
        assert (status, message in answer["detail"]) == (422, True), answer
        assert asked.work.store.count("ann", "ner") == before
    assert asked.decide(99, ("accepted", 0, 1, "PER"))[0] == 422
    assert asked.post("decide", text=1, decisions=[])[0] == 422
    assert asked.post("text", annotator="")[0] == 422


def test_a_span_over_the_end_of_a_sentence_is_refused(served, tmp_path):
    with asking(served.nlp, tmp_path, ["Ada met Evans . Bath left"]) as asked:
        assert len(asked.next()["sentences"]) == 2
        status, answer = asked.decide(1, ("accepted", 2, 5, "PER"))
        assert (status, "a sentence ends inside of it" in answer["detail"]) == (422, True)
        assert asked.work.store.decided(1, "ann", "ner") == Decided()
        _, answer = asked.decide(1, ("complete", 4, 6))
        assert [sentence["done"] for sentence in answer["sentences"]] == [False, True]
        assert not answer["done"]


def test_undo_takes_the_last_decisions_back_and_shows_their_text(asked):
    length = len(asked.work.store.text(2).tokens.words)
    asked.decide(1, ("accepted", 0, 2, "PER"))
    asked.decide(2, ("accepted", 0, 1, "ORG"), ("complete", 0, length))
    status, answer = asked.post("undo")
    assert (status, answer["text"], answer["accepted"], answer["done"]) == (200, 2, [], False)
    assert answer["counts"]["done"] == 0
    assert asked.post("undo")[1]["text"] == 1
    status, answer = asked.post("undo")
    assert (status, answer["detail"]) == (409, "There is nothing to undo.")


def test_a_skipped_text_comes_last(asked):
    first = asked.next()["text"]
    asked.decide(first, ("skipped", 0, 1))
    seen = []
    for _ in range(2):
        number = asked.next()["text"]
        seen.append(number)
        asked.decide(number, ("complete", 0, len(asked.work.store.text(number).tokens.words)))
    assert first not in seen
    answer = asked.next()
    assert answer["text"] == first
    assert answer["counts"]["skipped"] == 1


def test_annotators_have_texts_and_decisions_of_their_own(asked):
    first, other = asked.next("ann")["text"], asked.next("bob")["text"]
    assert first != other
    length = len(asked.work.store.text(first).tokens.words)
    asked.decide(first, ("complete", 0, length), annotator="ann")
    assert asked.post("text", "bob", text=first)[1]["outside"] == []
    assert asked.next("bob")["text"] != first  # ann's texts come last for bob
    about = asked.client.get("/api/annotation", params={"annotator": "bob"}).json()
    assert about["annotators"] == ["ann"]
    assert about["counts"]["done"] == 0


def test_an_annotator_who_only_skips_leaves_finished_texts_finished(asked):
    asked.decide(1, ("complete", 0, len(asked.work.store.text(1).tokens.words)))
    assert asked.work._is_done(1)
    asked.decide(2, ("skipped", 0, 1), annotator="eve")
    assert asked.work._is_done(1)


def test_a_list_that_became_shorter_shows_its_last_page(asked):
    _, answer = asked.post("texts", search="", filter="all", first=50)
    assert answer["first"] == 0 and len(answer["rows"]) == answer["total"]


def test_work_goes_on_where_it_ended(served, tmp_path):
    with asking(served.nlp, tmp_path) as asked:
        asked.decide(1, ("complete", 0, len(asked.work.store.text(1).tokens.words)))
    with asking(served.nlp, tmp_path, lines=None) as asked:
        assert asked.next()["counts"]["done"] == 1
        assert by_text(asked, 1)["done"]


def test_exports_are_downloaded(asked):
    asked.decide(2, ("accepted", 0, 1, "ORG"))
    for form, name in [("docbin", "names.spacy"), ("jsonl", "names.jsonl")]:
        answer = asked.client.get("/api/annotation/export", params={"form": form})
        assert answer.status_code == 200
        assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
        assert len(answer.content) > 50
    answer = asked.client.get("/api/annotation/export", params={"form": "doccano"})
    assert (answer.status_code, "decided in part" in answer.json()["detail"]) == (422, True)
    assert asked.client.get("/api/annotation/export", params={"form": "auto"}).status_code == 422


def test_the_queue_is_computed_between_the_requests(served, tmp_path):
    lines = [f"{line} {i}" for i in range(12) for line in SPOKEN]
    with asking(served.nlp, tmp_path, lines, order=Order.errors) as asked:
        asked.next()

        def computed():
            assert asked.client.get("/health").status_code == 200
            return asked.work.queue.stale() == []

        wait_for(computed)


def test_a_text_that_fails_does_not_end_the_order_of_the_others(served, tmp_path, monkeypatch):
    fail_on_bad(monkeypatch)
    lines = [f"{'bad' if i in (1, 6) else 'Ada'} left London {i} ." for i in range(9)]
    with asking(served.nlp, tmp_path, lines) as asked:
        assert asked.next()["text"] not in (2, 7)
        wait_for(lambda: asked.work.queue.stale() == [])
        order = []
        while (number := asked.work.queue.next(order)) is not None:
            order.append(number)
        assert order[-2:] == [2, 7]


@pytest.mark.parametrize("model", ["some", None])  # None: nothing is trained
def test_a_text_that_fails_is_annotated_without_suggestions(served, tmp_path, monkeypatch, model):
    fail_on_bad(monkeypatch)
    lines = ["bad Ada left London", "Ada left"]
    with asking(served.nlp, tmp_path, lines, model=model) as asked:
        answer = by_text(asked, 1)
        assert answer["problem"] == "no such feature"
        assert [word for word, _ in answer["sentences"][0]["tokens"]] == lines[0].split()
        assert items(answer) == []
        status, answer = asked.decide(1, ("accepted", 1, 2, "PER"), ("rejected", 3, 4, "ORG"))
        assert status == 200 and items(answer) == [(1, 2, "PER")]
        assert answer["rejected"] == [[3, 4, "ORG"]] and not answer["done"]
        assert asked.decide(1, ("accepted", 1, 9, "PER"))[0] == 422
        assert asked.post("undo")[1]["accepted"] == []
        answer = asked.decide(1, ("accepted", 1, 2, "PER"), ("complete", 0, 4))[1]
        assert answer["done"] and answer["counts"]["done"] == 1
        assert "problem" not in asked.next()


def test_a_text_that_fails_comes_last_and_can_be_skipped(served, tmp_path, monkeypatch):
    fail_on_bad(monkeypatch)
    with asking(served.nlp, tmp_path, ["bad Ada left", "Ada left"]) as asked:
        assert asked.next()["text"] == 2
        skip = {"verdict": "skipped", "start": 0, "end": 3}
        _, answer = asked.post("decide", text=1, decisions=[skip], next=True)
        assert answer["text"] == 2 and answer["counts"]["skipped"] == 1
        asked.decide(2, ("complete", 0, 2))
        assert asked.next()["text"] == 1


def test_a_text_whose_decisions_no_analysis_agrees_with_any_more_is_shown(served, tmp_path):
    """Another model ends a sentence within a span that was accepted."""
    with asking(served.nlp, tmp_path, ["Ada met Evans . Bath left"]) as asked:
        asked.work.store.decide(1, "ann", "ner", [Decision("accepted", 2, 5, "PER")], "")
        answer = by_text(asked, 1)
        assert "a sentence ends inside of it" in answer["problem"]
        status, answer = asked.decide(1, ("open", 2, 5))
        assert status == 200 and "problem" not in answer and answer["accepted"] == []


def test_nothing_that_grows_with_a_request_is_done_in_the_event_loop(asked, monkeypatch):
    places = {}

    def watched(owner, name):
        function = getattr(owner, name)

        def called(*arguments):
            places.setdefault(name, set()).add(asyncio._get_running_loop())
            return function(*arguments)

        monkeypatch.setattr(owner, name, called)

    for owner, name in [(Decided, "then"), (Decision, "check"), (AnnotationStore, "decide")]:
        watched(owner, name)
    for name in ("read_texts", "json_line", "json_bytes"):
        watched(app, name)
    texts = {"texts": ["Ada left ."] * 3, "comment": "x" * app.SHORT}
    assert asked.client.post("/api/annotate", json=texts).status_code == 200
    assert asked.client.post("/api/analyse", json={"text": "Ada left ."}).status_code == 200
    asked.decide(1, ("accepted", 0, 2, "PER"))
    assert list(places.values()) == [{None}] * 6


def test_a_label_is_checked_before_the_model_is_asked(asked, monkeypatch):
    monkeypatch.setattr(asked.work, "shown", None)
    status, answer = asked.decide(1, ("accepted", 0, 1, "DATE"))
    assert (status, "the label 'DATE' is not among those of" in answer["detail"]) == (422, True)


# Teach


def taught(client):
    def ended():
        status = client.get("/api/annotation/teach").json()
        return status["state"] != "running" and status

    return wait_for(ended, pause=0.1)


@pytest.fixture
def teachable(tmp_path):
    """A server of a model with random weights, and a file whose texts are decided."""
    nlp = random_nlp()
    nlp.config["training"]["optimizer"] = {"@optimizers": "Adam.v1", "learn_rate": 0.02}
    nlp.to_disk(tmp_path / "model")
    dev = dev_file(tmp_path / "dev.spacy")
    with asking(nlp, tmp_path, TEXTS, model=tmp_path / "model", dev=dev) as asked:
        yield asked, lambda: decide_all(asked.work.store)


def test_teach_puts_a_better_model_in_place_and_renews_the_queue(teachable, tmp_path):
    asked, decide = teachable
    decide()
    before = asked.client.post("/api/annotate", json={"texts": ["Ada met Evans in Bath"]}).json()
    assert asked.client.post("/api/annotation/teach").json()["state"] == "running"
    assert asked.client.get("/health").status_code == 200
    status, answer = asked.client.post("/api/annotation/teach"), None
    assert (status.status_code, "Teach is running" in status.json()["detail"]) == (422, True)
    answer = taught(asked.client)
    assert answer["state"] == "taken", answer
    assert "The new model is in use" in answer["message"]
    after = asked.client.post("/api/annotate", json={"texts": ["Ada met Evans in Bath"]}).json()
    assert after != before
    saved = spacy.load(tmp_path / "names-model")
    assert [ent["label"] for ent in after["docs"][0]["ents"]] == [
        ent.label_ for ent in saved("Ada met Evans in Bath").ents
    ]
    assert asked.work.queue.stale()
    assert asked.work.teacher.lesson.model == str(tmp_path / "names-model")


def test_a_teach_that_fails_is_one_message_and_changes_nothing(teachable, tmp_path):
    asked, _ = teachable
    before = by_text(asked, 1)
    asked.client.post("/api/annotation/teach")
    answer = taught(asked.client)
    assert answer["state"] == "failed"
    assert answer["message"].startswith("Teach failed, and nothing changed: Teach has no decided")
    assert not (tmp_path / "names-model").exists()
    assert by_text(asked, 1) == before


def test_a_teach_whose_process_is_killed_is_one_message(teachable, tmp_path):
    asked, decide = teachable
    decide()
    asked.client.post("/api/annotation/teach")
    wait_for(lambda: asked.work.teacher._process)
    asked.work.teacher._process.kill()
    answer = taught(asked.client)
    assert (answer["state"], "ended without an answer" in answer["message"]) == ("failed", True)
    assert not (tmp_path / "names-model").exists()


def test_a_teach_that_is_stopped_changes_nothing(teachable, tmp_path):
    asked, decide = teachable
    decide()
    asked.client.post("/api/annotation/teach")
    wait_for(lambda: asked.work.teacher._process)
    answer = asked.client.post("/api/annotation/teach/stop").json()
    assert (answer["state"], taught(asked.client)["state"]) == ("stopped", "stopped")
    assert not (tmp_path / "names-model").exists()


# Refusals


@pytest.mark.parametrize("lines", [["", "  "], None])
def test_no_text_at_all_is_one_error(served, tmp_path, lines):
    with pytest.raises(InputError, match="use --texts with a file"):
        annotating(served.nlp, tmp_path, lines).__enter__()


def test_an_added_label_and_its_decisions_are_there_after_the_next_start(tmp_path):
    with asking(random_nlp(), tmp_path) as asked:
        assert asked.post("labels", label=" EVENT ")[0] == 200
        assert asked.decide(1, ("accepted", 0, 1, "EVENT"))[0] == 200
    with asking(random_nlp(), tmp_path) as asked:
        assert "EVENT" in asked.client.get("/api/annotation").json()["labels"]
        assert (0, 1, "EVENT") in items(by_text(asked, 1))


def test_a_line_that_is_no_json_is_named_and_nothing_is_imported(served, tmp_path):
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"text": "Ada left", "id": 1}\n{"name": "Bob"}\n')
    plan = AnnotatePlan(tmp_path / "names.sqlite", texts)
    with plan.open() as store:
        with pytest.raises(InputError, match=r"texts.jsonl:2: not an object with a string"):
            plan.work(store, ServedModel("small", served.nlp), "none")
        assert store.lengths() == {}


def test_a_model_without_spans_or_with_several_components_is_one_error(tmp_path):
    blank = spacy.blank("en")
    with pytest.raises(InputError, match="no crf_ner, crf_chunker or crf_tagger"):
        annotating(blank, tmp_path).__enter__()
    two = random_nlp()
    two.add_pipe("crf_ner", name="other", config={"model": small_model()})
    with pytest.raises(InputError, match="choose one with --component ner or other"):
        annotating(two, tmp_path).__enter__()


@pytest.mark.parametrize("option", ["texts", "dev", "train"])
def test_a_path_that_does_not_exist_is_one_error(tmp_path, option):
    plan = AnnotatePlan(tmp_path / "names.sqlite", **{option: tmp_path / "none.spacy"})
    with pytest.raises(InputError, match=f"--{option} .*there is no such file"):
        plan.open()
    assert not (tmp_path / "names.sqlite").exists()
