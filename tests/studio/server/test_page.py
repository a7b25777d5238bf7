"""The page, in a real browser."""

import re
import threading
import time

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
from playwright.sync_api import expect
from spacy.lang.en.examples import sentences

from spacy_psa.pipeline.coverage import Coverage
from spacy_psa.studio.server.app import create_app
from spacy_psa.studio.server.models import ServedModel
from tests.helpers.nested_pipelines import DEEP, deep_pipeline
from tests.helpers.patience import PATIENCE
from tests.helpers.pipelines import random_nlp
from tests.helpers.served import TEXT
from tests.helpers.serving import running

HTML = "<img src=x onerror=\"document.title='bad'\"> <b>Ada</b> met <script>alert(1)</script> Evans"


def analyse(page, text=TEXT):
    page.fill("#text", text)
    page.click("button.primary")
    page.wait_for_selector(".sentence .word")
    expect(page.locator("#status")).not_to_have_text("…")


def spans(page, component=0):
    names = page.locator(".component").nth(component).locator(".span .name")
    return names.all_text_contents()


def test_a_text_shows_entities_with_probabilities_and_other_analyses(page, shoot):
    analyse(page)
    assert any(name.startswith("PER") and "%" in name for name in spans(page))
    assert page.locator(".tree svg").count() == 2
    page.locator(".sentence summary").first.click()
    rows = page.locator(".sentence table").first.locator("tr")
    assert rows.count() == 5
    assert page.inner_text("#status") == "2 sentences"
    shoot(page, "wide")


def test_an_example_fills_an_empty_page(page):
    page.click("button.primary")
    expect(page.locator("#status")).to_have_text("The text is empty: paste or type one.")
    page.click("#example")
    page.wait_for_selector(".sentence .word")
    assert page.input_value("#text") == sentences[0]


def test_the_spans_that_hold_the_true_ones_are_below_a_sentence(page, served, shoot):
    ner = served.nlp.get_pipe("ner")
    ner.calibrated.coverage = Coverage(0.98, 0.001, 100)
    try:
        analyse(page)
        sets = page.locator(".sets").first
        sets.locator("summary").click()
        expect(sets).to_contain_text("98% of true spans are among these")
        (wanted, *_) = ner.prediction_sets([served.nlp.make_doc(TEXT)])
        expect(sets.locator("tr").first).to_contain_text(wanted[0][0].text)
        assert "PER" in sets.text_content() and "%" in sets.text_content()
        shoot(page, "sets")
    finally:
        ner.calibrated.coverage = None


def test_a_span_that_is_forbidden_goes_and_the_rest_follows(page, shoot):
    analyse(page)
    first = page.locator(".component").first.locator(".span").first
    before = first.text_content()
    first.click(position={"x": 5, "y": 8})
    page.get_by_role("button", name="Wrong: not PER").click()
    page.wait_for_selector(".chips button")
    after = page.locator(".component").first.locator(".span")
    assert before not in [after.nth(i).text_content() for i in range(after.count())]
    assert "is not PER" in page.inner_text(".chips")
    assert "probability of the evidence before" in page.text_content(".sentence summary >> nth=0")
    shoot(page, "forbidden")
    page.click(".chips button")
    page.wait_for_selector(".chips button", state="detached")
    assert page.locator(".component").first.locator(".span").first.text_content().startswith("Ada")


def test_words_that_are_dragged_over_become_a_span(page, drag, shoot):
    analyse(page)
    nodes = page.locator(".component").first.locator(".word")
    drag(page, nodes, 2, 5)
    shoot(page, "menu")
    page.locator("#menu").get_by_role("button", name="ORG", exact=True).click()
    page.wait_for_selector(".chips button")
    assert "met Charles Babbage in is ORG" in page.inner_text(".chips")
    required = page.locator(".span.required").first.text_content()
    assert "ORG 100%" in required.replace("\n", " ")
    assert "new" in required


def test_the_keyboard_alone_suffices(page):
    page.locator("#text").focus()
    page.keyboard.type(TEXT)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".word")
    page.locator("#text").focus()
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('word')"):
            break
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('#menu') !== null")
    page.keyboard.press("Escape")
    assert page.locator("#menu").is_hidden()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")  # the second label
    page.wait_for_selector(".chips button")
    assert "met Charles is ORG" in page.inner_text(".chips")


def test_html_in_a_text_stays_text(page):
    analyse(page, HTML)
    assert page.locator("#result img, #result b, #result script").count() == 0
    shown = page.locator(".component").first.locator(".words")
    assert "<img" in "".join(shown.all_text_contents())
    assert page.title() == "spacy-psa"


def test_a_contradiction_is_one_line_and_the_evidence_is_taken_back(page):
    analyse(page, "Ada met Evans")
    tags = page.locator(".component").nth(1)
    for count in (1, 2, 2):
        tags.locator(".span").first.click(position={"x": 4, "y": 4})
        page.locator("#menu").get_by_role("button", name="Wrong").click()
        expect(page.locator(".chips button")).to_have_count(count)
    expect(page.locator("#error")).to_contain_text("no tag is left for token 0 'Ada'")
    expect(page.locator(".chips button")).to_have_count(2)


def test_attention_of_a_word_is_a_heat_map(page, shoot):
    analyse(page, "Ada met Evans in Bath")
    page.locator(".component").first.locator(".word").nth(1).click()
    page.get_by_role("button", name="Attention of “met”").click()
    page.wait_for_selector(".heat td")
    assert page.locator(".heat tr").first.locator("td").count() == 5
    assert "own features" in page.text_content(".heat th >> nth=0")
    shoot(page, "attention")


def test_a_constituent_can_be_forbidden_and_folded(page):
    analyse(page, "Acme hired Ada and left Bath")
    tree = page.locator(".tree").first
    count = tree.locator("text").count()
    tree.locator(".node").first.press(" ")
    assert page.locator(".tree").first.locator("text").count() < count
    page.locator(".tree .node").first.press(" ")
    assert page.locator(".tree").first.locator("text").count() == count
    page.locator(".tree .node").nth(1).press("Enter")
    page.get_by_role("button", name="Wrong: not").click()
    page.wait_for_selector(".chips button")
    assert "is not" in page.inner_text(".chips")


@pytest.mark.parametrize(
    ("name", "width", "scheme", "text"),
    [
        ("narrow", 360, "light", TEXT),
        ("dark", 1280, "dark", TEXT),
        ("narrow-dark-rtl", 360, "dark", "ذهب Ada Lovelace إلى London . שלום Evans"),
    ],
)
def test_the_page_fits_narrow_dark_and_right_to_left(page, shoot, name, width, scheme, text):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    analyse(page, text)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if "rtl" in name:
        direction = "getComputedStyle(document.querySelector('.words')).direction"
        assert page.evaluate(direction) == "rtl"
    shoot(page, name)


def test_the_http_api_is_described_without_another_server(page, address, shoot):
    page.goto(f"{address}/docs")
    page.wait_for_selector("section h2")
    assert "POST /api/annotate" in page.inner_text("main")
    shoot(page, "docs")


def test_another_model_component_is_named_when_there_is_nothing_to_show(page, address):
    page.route(
        "**/api/models",
        lambda route: route.fulfill(
            json={"models": [{"name": "small", "components": []}], "max_chars": 9, "views": []}
        ),
    )
    page.reload()
    page.wait_for_selector("#model option", state="attached")
    page.fill("#text", "Ada left .")
    page.click("button.primary")
    expect(page.locator("#status")).to_contain_text("has no component of spacy-psa to show")


def test_a_long_text_is_asked_for_where_it_is_seen(page):
    analyse(page, "Ada met Evans in Bath . " * 500)
    assert page.inner_text("#status") == "500 sentences"
    boxes = page.locator("article.sentence")
    assert boxes.count() == 500
    filled = page.locator("article.sentence:has(.word)")
    assert filled.count() <= 160
    last = boxes.last
    last.scroll_into_view_if_needed()
    word = last.locator(".component").first.locator(".word").first
    word.wait_for()
    assert filled.count() <= 320
    word.press("Enter")
    page.locator("#menu").get_by_role("button", name="Nothing here").click()
    page.wait_for_selector(".chips button")
    assert last.locator(".chips button").count() == 1


@pytest.fixture
def slow(monkeypatch):
    """Answers of the model need time."""
    analyse = ServedModel.analyse

    def slowly(self, *arguments):
        time.sleep(0.3)
        return analyse(self, *arguments)

    monkeypatch.setattr(ServedModel, "analyse", slowly)


def test_a_correction_waits_for_the_one_before_and_is_taken_back_alone(page, slow):
    analyse(page, "Ada met Evans in Bath .")
    words = page.locator(".component").first.locator(".word")

    def choose(word, name):
        words.nth(word).click()
        page.locator("#menu").get_by_role("button", name=name).first.click()

    choose(1, "LOC")
    expect(page.locator(".chips button")).to_have_count(1)
    choose(1, "Nothing here")  # which contradicts it
    choose(4, "ORG")
    expect(page.locator(".chips button")).to_have_text([re.compile(" is LOC ×"), "Bath is ORG ×"])


def test_a_late_answer_for_another_model_is_not_shown(open_page, monkeypatch):
    """The answers of the first model wait until the page shows the second."""
    analyse_now, chosen = ServedModel.analyse, threading.Event()

    def late(self, text, evidence, sentences, *rest):
        if self.name == "first" and sentences and max(sentences) > 40:
            chosen.wait(PATIENCE)
        return analyse_now(self, text, evidence, sentences, *rest)

    monkeypatch.setattr(ServedModel, "analyse", late)
    pipelines = {"first": deep_pipeline(), "second": random_nlp()}
    for nlp in pipelines.values():
        nlp.add_pipe("sentencizer", first=True)
    models = [ServedModel(name, nlp) for name, nlp in pipelines.items()]
    with running(create_app(models)) as address:
        page = open_page(address, "#model option")
        analyse(page, "Ada left . " * 90)
        names = page.locator(".component h2")
        expect(names.first).to_have_text("crf_spans")
        with page.expect_request("**/api/analyse"):
            page.locator("article.sentence").nth(45).scroll_into_view_if_needed()
        page.select_option("#model", "second")
        expect(names.first).to_have_text("ner")
        chosen.set()
        last = page.locator("article.sentence").nth(45)
        last.scroll_into_view_if_needed()
        expect(last.locator(".component h2")).to_have_text("ner")
        assert set(names.all_text_contents()) == {"ner"}


# Nested spans


@pytest.fixture(scope="module")
def deep():
    """The address of a server whose model finds spans of depth 4."""
    with running(create_app([ServedModel("deep", deep_pipeline())])) as address:
        yield address


@pytest.fixture
def boxes(open_page, deep):
    """The page with `DEEP`, in a narrow window as well as in a wide one."""
    page = open_page(deep, "#model option")
    analyse(page, DEEP)
    return page


BOXES = """spans => spans.map(span => {
    const { left, top, right, bottom } = span.getBoundingClientRect();
    const name = span.querySelector(":scope > .name");
    const own = name.getBoundingClientRect();
    const centre = [(own.left + own.right) / 2, (own.top + own.bottom) / 2];
    const seen = name.contains(document.elementFromPoint(...centre));
    const outer = spans.indexOf(span.parentElement.closest(".span"));
    return { left, top, right, bottom, seen, outer };
})"""


def test_nested_boxes_lie_inside_each_other_and_show_their_labels(boxes, shoot):
    shown = boxes.locator(".span").evaluate_all(BOXES)
    assert [box["outer"] for box in shown] == [-1, -1, 1, 2, 3]
    for box in shown:
        assert box["seen"]
        if box["outer"] >= 0:
            outer = shown[box["outer"]]
            assert outer["top"] + 2 <= box["top"] and box["bottom"] + 2 <= outer["bottom"]
            assert outer["left"] <= box["left"] and box["right"] + 2 <= outer["right"]
    words = boxes.locator(".words").bounding_box()
    assert min(box["top"] for box in shown) >= words["y"]
    assert max(box["bottom"] for box in shown) <= words["y"] + words["height"]
    assert boxes.locator(".words").text_content().startswith("AdaPER ")
    shoot(boxes, "nested")


def test_each_nested_box_can_be_clicked(boxes, shoot):
    names = boxes.locator(".span > .name")
    for number, text in [(4, "the Bank of England head office staff"), (1, "England")]:
        names.nth(number).click()
        expect(boxes.locator("#menu p")).to_have_text(text)
        boxes.keyboard.press("Escape")
    names.nth(3).click()  # inner labels come first
    boxes.get_by_role("button", name="Wrong: not ORG").click()
    expect(boxes.locator(".chips button")).to_have_text(
        "the Bank of England head office is not ORG ×"
    )
    expect(boxes.locator(".span")).to_have_count(4)


def test_evidence_stays_unless_another_span_crosses_it(boxes, drag, shoot):
    words = boxes.locator(".word")
    chips = boxes.locator(".chips button")
    cases = [(2, 8, "staff", 1), (3, 5, "Bank of England", 2), (4, 6, "of England head", 2)]
    for first, last, text, wanted in cases:
        drag(boxes, words, first, last)
        boxes.locator("#menu").get_by_role("button", name="ORG", exact=True).click()
        expect(chips).to_have_count(wanted)
        expect(chips.last).to_contain_text(f"{text} is ORG")
    expect(chips.first).to_contain_text("the Bank of England head office staff is ORG")
    shoot(boxes, "nested-evidence")
