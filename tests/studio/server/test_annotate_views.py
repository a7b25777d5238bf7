"""Views of Annotate with few and many labels: wide, narrow, dark, right to left, and by axe."""

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
from playwright.sync_api import expect

from spacy_psa.studio.active_learning.beginning import Beginning, without_knowledge
from spacy_psa.studio.active_learning.queue import Order
from spacy_psa.studio.active_learning.store import Note
from tests.helpers.annotating import annotating
from tests.helpers.decided import accept, complete
from tests.helpers.serving import running
from tests.helpers.views import RTL, VIEWS, some_labels

LINES = [RTL, "Ada Lovelace met Charles Babbage in London .", *(f"Text {i} ." for i in range(200))]
GUIDELINES = (
    "# Persons\n\nMark <b>names</b>, [see](https://example.org).\n\n- ![x](https://e.org/x)\n"
)


@pytest.fixture(scope="module")
def labels(request):
    """How many labels there are."""
    return getattr(request, "param", 60)


@pytest.fixture(scope="module")
def opened(labels, tmp_path_factory):
    """The work of two annotators, and the address of its server."""
    folder = tmp_path_factory.mktemp("views")
    (folder / "rules.md").write_text(GUIDELINES, encoding="utf8")
    begin = Beginning(labels=some_labels(labels))
    nlp = without_knowledge(begin)
    options = {"begin": begin, "guidelines": folder / "rules.md", "order": Order.random}
    with annotating(nlp, folder, LINES, model=None, **options) as (work, app):
        first, second = work.component.labels[:2]
        for name, label in (("ann", first), ("eve", second)):
            made = [accept(0, 2, label), accept(6, 7, second), complete(0, 8)]
            work.store.decide(2, name, "ner", made)
            work._note(2, name, True)
        work.store.note(2, "eve", Note(True, "Is this one person?"))
        with running(app) as address:
            yield work, address


@pytest.mark.parametrize(
    ("labels", "view"),
    [(n, view) for n in (60, 3) for view in ("wide", "narrow", "dark", "narrow-dark-rtl")],
    indirect=["labels"],
)
def test_a_view_fits_and_axe_finds_nothing(opened, open_page, shoot, violations, labels, view):
    width, scheme = VIEWS[view]
    address, text = opened[1], 1 if view.endswith("rtl") else 2
    page = open_page(
        f"{address}/annotate#{text}",
        "#result .word",
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
    )
    expect(page.locator("#names li")).to_have_count(labels)
    keys = page.locator("#names kbd").all_inner_texts()
    assert keys == [f"{i + 1}" for i in range(min(labels, 9))]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    top = page.locator("#result .word").first.bounding_box()["y"]
    assert page.evaluate("document.querySelector('#list').open") == (width > 1024)
    assert page.locator("#list").bounding_box()["y"] <= top < 800
    direction = "getComputedStyle(document.querySelector('.words')).direction"
    assert page.evaluate(direction) == ("rtl" if text == 1 else "ltr")
    shoot(page, f"view-{view}-{labels}")
    assert violations(page) == []
    page.locator("#result .word").nth(4).click()
    shoot(page, f"view-{view}-{labels}-menu")
    assert violations(page) == []


@pytest.mark.parametrize("labels", [3, 60], indirect=True)
def test_the_page_project_fits_and_axe_finds_nothing(opened, open_page, look_at, labels):
    look_at(open_page(f"{opened[1]}/project", "#agreement article"), f"project-{labels}")


def test_a_label_among_many_is_found_by_typing_and_then_comes_first(opened, open_page):
    work, address = opened
    page = open_page(f"{address}/annotate#3", "#result .word")
    page.locator("#result .word").first.focus()
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("/")
    page.keyboard.type("event_7")
    expect(page.locator("#names li")).to_have_text(["EVENT_7"])
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_have_text("Saved.")
    assert work.store.decided(3, "ann", "ner").accepted == ((0, 2, "EVENT_7"),)
    expect(page.locator("#names li").first).to_have_text("EVENT_7")
    page.keyboard.press("/")
    page.keyboard.press("Enter")  # nothing is typed: nothing happens
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    expect(page.locator(".span.required")).to_have_count(0)


def test_a_menu_of_many_labels_is_searched_by_typing(opened, open_page, shoot):
    work, address = opened
    page = open_page(f"{address}/annotate#4", "#result .word")
    page.locator("#result .word").first.focus()
    page.keyboard.press("Enter")
    page.keyboard.type("nt_7")  # the digit is a part of the name
    expect(page.locator("#menu button:visible")).to_have_text(["EVENT_7"])
    shoot(page, "menu-found")
    page.keyboard.press("Enter")
    expect(page.locator(".span.required")).to_have_count(1)
    page.locator("#result .word").nth(1).click()
    page.keyboard.press("0")
    expect(page.locator("#result .word.outside")).to_have_text(["1"])
    decided = work.store.decided(4, "ann", "ner")
    assert decided.accepted == ((0, 1, "EVENT_7"),) and decided.outside == {1}


def listed(page):
    return [text.split()[0] for text in page.locator("#texts button").all_inner_texts()]


def test_the_list_of_texts_is_searched_filtered_and_paged(opened, open_page):
    page = open_page(f"{opened[1]}/annotate#2", "#texts button")
    expect(page.locator("#found")).to_have_text("1 to 50 of 202")
    expect(page.locator("#texts [aria-current]")).to_have_text(f"2 ✓ ⚑ ✎ {LINES[1]}")
    page.click("#later")
    expect(page.locator("#found")).to_have_text("51 to 100 of 202")
    page.fill("#search", "text 19")
    expect(page.locator("#found")).to_have_text("1 to 11 of 11")
    assert listed(page) == ["22", *map(str, range(193, 203))]
    page.locator("#texts button").nth(1).click()
    expect(page.locator("#result .word").nth(1)).to_have_text("190")
    page.fill("#search", "")
    for name in ("flagged", "disagreed", "done"):
        page.select_option("#filter", name)
        expect(page.locator("#found")).to_have_text("1 to 1 of 1")
        assert listed(page) == ["2"]
    page.select_option("#filter", "undecided")
    expect(page.locator("#found")).to_have_text("1 to 50 of 201")


def test_flags_comments_and_guidelines_are_beside_the_text(opened, open_page):
    work, address = opened
    page = open_page(f"{address}/annotate#2", "#guidelines h3")
    assert page.locator("#guidelines").inner_text().split("\n")[0] == "Persons"
    assert "Mark <b>names</b>, see." in page.locator("#guidelines").inner_text()
    assert page.locator("#guidelines a").first.get_attribute("rel") == "noopener"
    assert page.locator("#guidelines img").count() == 0
    expect(page.locator("#others")).to_have_text("eve ⚑ Is this one person?")
    page.keyboard.press("g")
    expect(page.locator("#flag")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("c")
    page.keyboard.type("yes: bfgsu")
    page.keyboard.press("Escape")
    expect(page.locator("body.busy")).to_have_count(0)
    assert work.store.notes(2)[2]["ann"] == Note(True, "yes: bfgsu")
    page.keyboard.press("g")
    expect(page.locator("#flag")).to_have_attribute("aria-pressed", "false")
    assert work.store.notes(2)[2]["ann"] == Note(False, "yes: bfgsu")
    page.fill("#annotator", "eve")
    page.keyboard.press("Enter")
    expect(page.locator("#others")).to_have_text("ann yes: bfgsu")
    page.click("#flag")
    expect(page.locator("#flag")).to_have_attribute("aria-pressed", "false")
    assert work.store.notes(2)[2]["eve"] == Note(False, "Is this one person?")
    page.click("#flag")
    page.goto(f"{address}/annotate#3")
    page.reload()
    page.wait_for_selector("#result .word")
    assert page.input_value("#comment") == ""
    expect(page.locator("#others li")).to_have_count(0)
