"""Annotation that begins without a model, in a real browser: labels, Teach, suggestions."""

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
from playwright.sync_api import expect

from spacy_psa.studio.active_learning.beginning import Beginning
from spacy_psa.studio.server.annotate import annotate_view
from spacy_psa.studio.server.annotate_plan import AnnotatePlan
from spacy_psa.studio.server.app import create_app
from spacy_psa.studio.server.models import ServedModel
from spacy_psa.studio.server.project import project_view
from tests.helpers import short_teaching
from tests.helpers.decided import decide_all
from tests.helpers.pipelines import TEXTS
from tests.helpers.serving import running


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """The work on texts without a model, and the address of its server."""
    monkeypatch.setattr("spacy_psa.studio.server.teacher.PROGRAM", short_teaching.__name__)
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS) + "\n", encoding="utf8")
    begin = Beginning(labels=("PER", "ORG"))
    plan = AnnotatePlan(tmp_path / "work.sqlite", texts, annotator="ann", begin=begin)
    with plan.open() as store:
        name, path, nlp = plan.model()
        served = ServedModel(name, nlp)
        work = plan.work(store, served, path)
        with running(
            create_app([served], None, [annotate_view(work), project_view(work)])
        ) as address:
            yield work, address


def mark(page, word, label):
    page.locator("#result .word", has_text=word).first.click()
    page.locator("#menu").get_by_role("button", name=label, exact=True).click()
    expect(page.locator("#status")).to_have_text("Saved.")


def test_from_labels_to_suggestions(opened, open_page, shoot):
    work, address = opened
    page = open_page(f"{address}/annotate", "#result .word")
    assert page.locator("#names li").all_inner_texts() == ["PER1", "ORG2"]
    expect(page.locator("#begin")).to_be_visible()
    assert page.locator(".span").count() == 0
    first = page.locator("#result .word").first.text_content()
    mark(page, first, "PER")
    expect(page.locator(".span.required")).to_have_count(1)
    shoot(page, "begin-without-model")

    page.fill("#label", "LOC")
    page.click("#add")
    expect(page.locator("#names li")).to_have_count(3)
    page.fill("#label", "loc")
    expect(page.locator("#names li")).to_have_text(["LOC3"])
    expect(page.locator("#add")).to_be_hidden()
    page.keyboard.press("Escape")
    page.locator("#result .word").nth(1).click()
    page.locator("#menu").get_by_role("button", name="LOC", exact=True).click()
    expect(page.locator(".span.required")).to_have_count(2)
    page.click("#undo")
    expect(page.locator(".span.required")).to_have_count(1)

    decide_all(work.store)
    page.goto(f"{address}/project")
    page.click("#teach")
    expect(page.locator("#taught")).to_contain_text("The new model is in use")
    page.goto(f"{address}/annotate")
    page.wait_for_selector("#result .word")
    expect(page.locator("#begin")).to_be_hidden()
    assert work.trained and work.component.labels == ("PER", "ORG", "LOC")
    assert (work.teacher.lesson.output / "meta.json").exists()
    shoot(page, "begin-taught")
