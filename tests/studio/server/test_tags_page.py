"""Annotate for tags, in a real browser: without a mouse, from nothing and with suggestions."""

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
from playwright.sync_api import expect

from spacy_psa.errors import InputError
from spacy_psa.studio.active_learning.beginning import Beginning, without_knowledge
from tests.helpers.annotating import annotating
from tests.helpers.serving import running
from tests.helpers.views import RTL, some_labels

LINES = ["Ada met Bob .", "Rain fell ."]
LABELS = ("NAME", "WORD", "MARK")


def tags(work, text=1):
    return [label for _, _, label in work.store.decided(text, "ann", "tagger").accepted]


def test_tags_are_given_from_nothing_without_a_mouse(open_page, tmp_path, shoot):
    begin = Beginning(labels=LABELS, task="tagger")
    nlp = without_knowledge(begin)
    with (
        annotating(nlp, tmp_path, LINES, model=None, begin=begin) as (work, app),
        running(app) as address,
    ):
        page = open_page(f"{address}/annotate", "#result .word")
        expect(page.locator("#begin .for-tags")).to_be_visible()
        expect(page.get_by_role("button", name="Nothing else here")).to_have_count(0)
        page.wait_for_function("document.activeElement.classList.contains('word')")
        for key in "12":
            page.keyboard.press(key)
        expect(page.locator(".span.required .name")).to_contain_text(["NAME 100%", "WORD 100%"])
        shoot(page, "tags-from-nothing")
        page.keyboard.press("/")
        page.keyboard.type("na")
        page.keyboard.press("Enter")
        page.keyboard.press("3")
        expect(page.locator("#counts")).to_contain_text("1 of 2 texts done")
        assert tags(work) == ["NAME", "WORD", "NAME", "MARK"]
        expect(page.locator("#result .word").first).to_have_text("Rain")
        page.keyboard.press("u")
        expect(page.locator("#counts")).to_contain_text("0 of 2 texts done")
        assert tags(work) == ["NAME", "WORD", "NAME"]


@pytest.mark.parametrize("count", [3, 60])
def test_a_view_of_tags_fits_and_axe_finds_nothing(open_page, tmp_path, look_at, count):
    begin = Beginning(labels=some_labels(count), task="tagger")
    nlp = without_knowledge(begin)
    with (
        annotating(nlp, tmp_path, [RTL], model=None, begin=begin) as (_, app),
        running(app) as address,
    ):
        page = open_page(f"{address}/annotate", "#result .word")
        page.wait_for_function("document.activeElement.classList.contains('word')")
        page.keyboard.press("1")
        expect(page.locator(".span.required")).to_have_count(1)
        look_at(page, f"tags-{count}")


def test_suggested_tags_are_accepted_rejected_and_given_to_several_words(
    served, open_page, tmp_path, shoot, drag
):
    options = {"component": "tagger"}
    with annotating(served.nlp, tmp_path, LINES, **options) as (work, app), running(app) as address:
        page = open_page(f"{address}/annotate#1", "#result .span")
        page.locator("#least").fill("0")
        assert page.locator(".span").count() == 4
        shoot(page, "tags-suggested")
        page.keyboard.press("x")
        page.wait_for_selector(".chips button")
        ((start, end, wrong),) = work.store.decided(1, "ann", "tagger").rejected
        assert (start, end) == (0, 1)
        names = page.locator(".span .name")
        expect(names.first).not_to_contain_text(wrong)
        drag(page, page.locator("#result .word"), 0, 1)
        page.locator("#menu").get_by_role("button", name="NAME", exact=True).click()
        expect(page.locator(".span.required")).to_have_count(2)
        assert tags(work) == ["NAME", "NAME"]
        page.keyboard.press("y")
        expect(page.locator(".span.required")).to_have_count(3)
        page.keyboard.press("d")
        expect(page.locator("#status")).to_have_text("Saved. The next text:")
        assert len(tags(work)) == 4
        page.click("#names button")  # it goes to the words that are clicked
        page.locator("#result .word").nth(1).click()
        expect(page.locator(".span.required .name")).to_contain_text(["MARK 100%"])


def test_patterns_are_refused_for_tags(served, tmp_path):
    patterns = tmp_path / "p.jsonl"
    patterns.write_text('{"label": "NAME", "pattern": "Ada"}\n', encoding="utf8")
    options = {"component": "tagger", "patterns": (patterns,)}
    with (
        pytest.raises(InputError, match="tagger predicts tags"),
        annotating(served.nlp, tmp_path, LINES, **options),
    ):
        pass
