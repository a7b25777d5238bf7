"""The view Review: probable errors decided over HTTP, and in a real browser."""

import pytest
import spacy
from spacy.tokens import Doc
from starlette.testclient import TestClient

from spacy_psa.analysis.corrections import make_rows, read_decisions, write_rows
from spacy_psa.analysis.label_errors import Suspect
from spacy_psa.errors import InputError
from spacy_psa.studio.server.app import create_app
from spacy_psa.studio.server.models import ServedModel
from spacy_psa.studio.server.review import review_view
from tests.helpers.serving import running


@pytest.fixture
def errors(tmp_path):
    nlp = spacy.blank("en")
    docs = [Doc(nlp.vocab, words=words.split()) for words in ("Ada met Bob", "<b> Rome <i>")]
    suspects = [
        Suspect(0, "type", [(0, 1, "ORG")], [(0, 1, "PER")], 0.1, 0.9),
        Suspect(1, "missed", [], [(1, 2, "LOC")], 0.2, 0.8),
    ]
    write_rows(make_rows(suspects, "ents", docs), tmp_path / "errors.jsonl")
    return tmp_path / "errors.jsonl"


@pytest.fixture
def app(errors):
    return create_app([ServedModel("blank", spacy.blank("en"))], views=[review_view(errors)])


@pytest.fixture
def address(app):
    with running(app) as address:
        yield address


def test_each_decision_is_saved_and_the_next_row_shown(app, errors):
    with TestClient(app, "http://localhost") as client:
        assert client.get("/api/review").json()["row"]["number"] == 1

        def decide(number, accept):
            answer = client.post("/api/review", json={"number": number, "accept": accept}).json()
            return (answer["row"] or {}).get("number"), answer["done"], answer["accepted"]

        assert decide(1, True) == (2, 1, 1)
        assert read_decisions(errors) == {1: True}
        assert decide(1, None) == (1, 0, 0)
        assert decide(1, False) == (2, 1, 0)
        assert decide(2, True) == (None, 2, 1)
        assert client.post("/api/review", json={"number": 3, "accept": True}).status_code == 404
    assert read_decisions(errors) == {1: False, 2: True}
    assert review_view(errors)  # goes on with these
    log = errors.parent / "errors.decisions.jsonl"
    with log.open("a") as stream:
        stream.write('{"number": 2, "acc')  # as a full disk leaves it
    review_view(errors)
    assert read_decisions(errors) == {1: False, 2: True}
    log.write_text("{\n")
    with pytest.raises(InputError, match=r"errors.decisions.jsonl:1: not a line"):
        review_view(errors)


def test_keys_accept_keep_and_undo(address, errors, request):
    pytest.importorskip("playwright", reason="playwright is not installed")
    from playwright.sync_api import expect

    page = request.getfixturevalue("page")
    page.goto(f"{address}/review")
    counts = page.locator("#counts")
    expect(counts).to_have_text("0 of 2 decided, 0 accepted")
    expect(page.locator("#result .span")).to_have_count(2)
    page.keyboard.press("y")
    expect(counts).to_have_text("1 of 2 decided, 1 accepted")
    expect(page.locator("#result")).to_contain_text("<b> Rome")
    page.keyboard.press("u")
    expect(counts).to_have_text("0 of 2 decided, 0 accepted")
    page.keyboard.press("x")
    expect(counts).to_have_text("1 of 2 decided, 0 accepted")
    page.keyboard.press("y")
    expect(page.locator("#result")).to_have_text("All is decided.")
    assert read_decisions(errors) == {1: False, 2: True}
