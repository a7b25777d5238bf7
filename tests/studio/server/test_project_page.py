"""The page Project, in a real browser: Teach, Export, and agreement."""

import re

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
from playwright.sync_api import expect
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_psa.studio.server import teacher
from tests.helpers import endless_lesson
from tests.helpers.annotating import annotating
from tests.helpers.decided import accept, complete, decide_all, dev_file
from tests.helpers.patience import wait_for
from tests.helpers.pipelines import TEXTS, random_nlp
from tests.helpers.serving import running


@pytest.fixture
def opened(tmp_path):
    nlp = random_nlp()
    nlp.config["training"]["optimizer"] = {"@optimizers": "Adam.v1", "learn_rate": 0.02}
    nlp.to_disk(tmp_path / "model")
    options = {"model": tmp_path / "model", "dev": dev_file(tmp_path / "dev.spacy")}
    with annotating(nlp, tmp_path, TEXTS, **options) as (work, app), running(app) as address:
        yield work, address


def test_teach_trains_while_others_go_on(opened, open_page, shoot, monkeypatch):
    monkeypatch.setattr(teacher, "PROGRAM", endless_lesson.__name__)
    decide_all(opened[0].store, skip=lambda text: text == 1)
    other = open_page(f"{opened[1]}/annotate", "#result .word")
    page = open_page(f"{opened[1]}/project", "#agreement p")
    page.click("#teach")
    expect(page.locator("#taught")).to_have_text(
        "Teach: pass 1 of at most 5, score 50.0%, before 25.0%"
    )
    expect(page.locator("#teach")).to_be_disabled()
    shoot(page, "project-teaching")
    other.locator("#result .word").first.click()
    other.locator("#menu").get_by_role("button", name="Nothing here").click()
    expect(other.locator("#status")).to_have_text("Saved.")
    page.click("#stop")
    expect(page.locator("#taught")).to_have_text("Teach was stopped; nothing changed.")
    expect(page.locator("#teach")).to_be_enabled()


def test_teach_puts_the_model_in_place(opened, open_page, tmp_path):
    decide_all(opened[0].store, skip=lambda text: text == 1)
    page = open_page(f"{opened[1]}/project", "#agreement p")
    page.click("#teach")
    scores = r"The new model is in use: score \d+\.\d% instead of \d+\.\d% on \d+ texts"
    expect(page.locator("#taught")).to_contain_text(re.compile(scores))
    expect(page.locator("#teach")).to_be_enabled()
    assert (tmp_path / "names-model" / "meta.json").exists()


def test_teach_shows_its_sign_before_the_server_answers(opened, open_page):
    page, held = open_page(f"{opened[1]}/project", "#agreement p"), []
    page.route("**/annotation/teach", lambda route: held.append(route))
    page.click("#teach")
    expect(page.locator("#taught")).to_have_text("Teach begins …")
    expect(page.locator("#teach")).to_be_disabled()
    wait_for(lambda: held or page.wait_for_timeout(10))  # the request comes after its sign
    held[0].fulfill(json={"state": "idle", "message": ""})
    expect(page.locator("#teach")).to_be_enabled()


def test_teach_and_export_need_no_mouse(opened, open_page):
    work, address = opened
    decide_all(work.store)
    page, reached = open_page(f"{address}/project", "#agreement p"), []
    while ".spacy" not in reached:
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent"))
        assert len(reached) < 40
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename == "names.spacy"
    page.locator("#teach").focus()
    assert page.locator("#teach").inner_text() in reached
    page.keyboard.press("Enter")
    expect(page.locator("#taught")).to_contain_text("The new model is in use")


def test_an_export_is_saved_and_an_empty_one_is_one_line(opened, open_page, tmp_path):
    work, address = opened
    page = open_page(f"{address}/project", "#agreement p")
    page.get_by_role("button", name="doccano").click()
    expect(page.locator("#error")).to_contain_text("no text is decided")
    decide_all(work.store)
    with page.expect_download() as download:
        page.get_by_role("button", name=".spacy").click()
    assert download.value.suggested_filename == "names.spacy"
    expect(page.locator("#error")).to_be_hidden()
    download.value.save_as(tmp_path / "names.spacy")
    docs = list(DocBin().from_disk(tmp_path / "names.spacy").get_docs(Vocab()))
    assert [doc.text for doc in docs] == TEXTS


def test_agreement_leads_to_the_texts_where_annotators_differ(opened, open_page, shoot):
    work, address = opened
    decide_all(work.store)
    decide_all(work.store, "eve", skip=lambda text: text == 3)
    length = work.store.lengths()[3]
    work.store.decide(3, "eve", "ner", [accept(0, 1, "ORG"), complete(0, length)])
    page = open_page(f"{address}/project", "#agreement article")
    agreement = page.locator("#agreement article")
    expect(agreement.locator("h3")).to_have_text("ann and eve")
    expect(agreement).to_contain_text("They differ in 1 text: 3")
    shoot(page, "project-agreement")
    agreement.get_by_role("link", name="3").click()
    page.wait_for_selector("#result .word")
    assert page.locator("#result .word").first.text_content() == "Babbage"
