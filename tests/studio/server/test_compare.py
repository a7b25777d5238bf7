"""The view Compare over HTTP: progress, report, and other requests in between."""

import re
import threading
import time

import pytest
from starlette.testclient import TestClient

from spacy_psa.errors import InputError
from spacy_psa.studio.server.app import create_app
from spacy_psa.studio.server.compare import compare_view
from spacy_psa.studio.server.guard import Settings
from spacy_psa.studio.server.models import ServedModel
from tests.helpers.compared import FIRST, SECOND, rules, write_gold
from tests.helpers.patience import PATIENCE


@pytest.fixture
def gold(tmp_path):
    return write_gold(tmp_path / "gold.spacy")


@pytest.fixture
def models():
    return [ServedModel("first", rules(FIRST)), ServedModel("second", rules(SECOND))]


def client_of(models, *arguments, settings=None):
    view = compare_view(models, *arguments)
    return TestClient(create_app(models, settings, views=[view]), "http://localhost")


def report_of(client):
    while True:
        answer = client.post("/api/compare", json={})
        assert answer.status_code == 200, answer.text
        if "report" in answer.json():
            return answer.json()["report"]
        time.sleep(0.02)


def test_a_comparison_is_made_in_the_background(models, gold):
    with client_of(models, gold) as client:
        first = client.post("/api/compare", json={}).json()
        assert (first["done"], first["total"]) == (0, 2)
        report = report_of(client)
        assert [model["name"] for model in report["models"]] == ["first", "second"]
        assert len(report["errors"]) == 5
        assert report_of(client) == report
        listed = client.get("/api/models").json()
        assert listed["views"] == [{"name": "Compare", "path": "/compare"}]


def test_the_report_is_saved_as_the_file_that_the_command_writes(models, gold):
    with client_of(models, gold) as client:
        assert client.get("/compare/report.html").status_code == 409
        report_of(client)
        answer = client.get("/compare/report.html")
        assert answer.headers["content-disposition"].startswith("attachment")
        assert re.search(r'id="data">\{"format": 1', answer.text)


def test_other_requests_are_answered_while_it_runs(models, gold, monkeypatch):
    """A step of the comparison ends only after the other model has answered."""
    answered = threading.Event()
    predict = "spacy_psa.studio.comparison.answers.Answers.predict"
    monkeypatch.setattr(predict, lambda self, batch: answered.wait(PATIENCE))
    with client_of(models, gold) as client:
        client.post("/api/compare", json={})
        assert client.post("/api/compare", json={}).json()["done"] == 0
        answer = client.post("/api/annotate?model=second", json={"texts": ["Bob"]})
        assert answer.json()["docs"][0]["ents"][0]["label"] == "PER"
        answered.set()
        assert report_of(client)["scores"][0]["models"][0]["counts"] == [0, 0, 4]


def test_a_step_may_take_longer_than_a_request_and_all_components_stay_listed(models, gold):
    for model in models:
        pipe = model.nlp.pipe
        model.nlp.pipe = lambda docs, pipe=pipe: [time.sleep(0.3), *pipe(docs)][1:]
    names = [[c["name"] for c in model.components] for model in models]
    with client_of(models, gold, settings=Settings(max_seconds=0.2)) as client:
        client.post("/api/compare", json={})
        while "report" not in client.post("/api/compare", json={}).json():
            listed = client.get("/api/models").json()["models"]
            assert [[c["name"] for c in model["components"]] for model in listed] == names
            time.sleep(0.02)


def test_an_error_of_a_step_is_told_each_time(models, gold, monkeypatch):
    def fails(self, batch):
        raise InputError("first: returns other tokens")

    monkeypatch.setattr("spacy_psa.studio.comparison.answers.Answers.predict", fails)
    with client_of(models, gold) as client:
        answers = [client.post("/api/compare", json={})]
        while answers[-1].status_code == 200 or len(answers) < 4:
            time.sleep(0.02)
            answers.append(client.post("/api/compare", json={}))
        assert answers[-1].status_code == 422
        assert answers[-1].json() == {"detail": "first: returns other tokens"}


def test_bad_data_are_an_error_before_the_server_begins(models, gold):
    with pytest.raises(InputError, match="cannot be read"):
        compare_view(models, gold.with_name("none.spacy"))
    with pytest.raises(InputError, match="no component for --component ner"):
        compare_view(models, gold, "ner")
