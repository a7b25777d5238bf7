"""The view Compare and the report, in a real browser: the same scripts on a page and in a file."""

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
import spacy
from playwright.sync_api import expect

from spacy_psa.studio.server.app import create_app
from spacy_psa.studio.server.compare import compare_view
from spacy_psa.studio.server.compare_file import comparison_page
from spacy_psa.studio.server.models import ServedModel
from tests.helpers.compared import GOLD, compared, rules, write_gold
from tests.helpers.nested_pipelines import deep_pipeline
from tests.helpers.pipelines import MARKED
from tests.helpers.serving import running

RULES = {"Ada": "PER", "Bob": "LOC", "Leeds": "LOC", "Acme": "ORG", "towns": "ORG", "onerror": "X"}
MORE = ["<img src=x onerror=document.title='bad'> <b>[Ada|PER]</b>", "ذهب [بوب|PER] إلى [ليدز|LOC]"]

# In one go, since the list grows by itself when its end comes near.
DOWN_FROM_THE_LAST = """() => {
    const list = document.getElementById("errors");
    const before = list.childElementCount;
    list.lastElementChild.focus();
    const down = new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true });
    list.lastElementChild.dispatchEvent(down);
    return list.childElementCount - before;
}"""


@pytest.fixture(scope="module")
def gold(tmp_path_factory):
    return write_gold(tmp_path_factory.mktemp("gold") / "gold.spacy", [*MARKED, *GOLD, *MORE])


@pytest.fixture(scope="module")
def nlps(trained_path):
    return {"crf": spacy.load(trained_path), "rules": rules(RULES)}


@pytest.fixture(scope="module")
def report(nlps, gold):
    return compared(nlps, gold, train=gold)


@pytest.fixture(scope="module")
def server(nlps, gold):
    """The address of a server with the view."""
    models = [ServedModel(*item) for item in nlps.items()]
    app = create_app(models, views=[compare_view(models, gold, None, gold)])
    with running(app) as address:
        yield address


@pytest.fixture
def open_report(open_page):
    """Opens the address of a comparison, or writes a report to a file and opens it."""

    def opened(report, tmp_path=None, **settings):
        if tmp_path:
            path = tmp_path / "report.html"
            path.write_text(comparison_page(report), encoding="utf8")
            report = path.as_uri()
        return open_page(report, "article.error", **settings)

    return opened


def count(page):
    return int(page.inner_text("#found").split()[0].replace(",", ""))


@pytest.mark.parametrize("where", ["server", "file"])
def test_scores_figures_and_errors_are_shown(open_report, server, report, tmp_path, shoot, where):
    page = open_report(f"{server}/compare") if where == "server" else open_report(report, tmp_path)
    titles = page.locator("h2").all_inner_texts()
    assert titles[:3] == ["Scores", "Partial credit", "Confusion"]
    cells = page.locator(".scores tbody tr").first.locator("td").all_inner_texts()
    values = [report["scores"][0]["models"][m][n]["value"] for m in (0, 1) for n in "prf"]
    assert [cells[i] for i in (1, 2, 3, 5, 6, 7)] == [f"{100 * value:.2f}" for value in values]
    assert page.locator("svg.plot").count() == 3  # calibration of one model, lengths, seen
    assert page.locator("svg circle.m0").count() > 0
    assert count(page) == len(report["errors"])
    shoot(page, "compare-wide")


def test_errors_are_filtered_and_sorted_by_how_sure_the_model_was(open_report, report, tmp_path):
    page = open_report(report, tmp_path)
    page.select_option("#who", "is0")
    own = [error for error in report["errors"] if error["wrong"][0]]
    assert count(page) == len(own) > 3
    order = [f"Sentence {e['sentence'] + 1}" for e in sorted(own, key=lambda e: -e["sure"][0])]
    boxes = page.locator("article.error")
    assert [boxes.nth(i).get_attribute("aria-label") for i in range(len(order))] == order
    page.select_option("#order", "least")
    assert boxes.first.get_attribute("aria-label") == order[-1]
    page.select_option("#who", "only1")
    page.select_option("#kind", "missed")
    alone = [e for e in report["errors"] if e["wrong"] == [False, True]]
    missed = [e for e in alone if e["kinds"][1] == "missed"]
    assert count(page) == len(missed) > 0
    page.select_option("#type", "LOC")
    assert count(page) == sum(e["gold"][2] == "LOC" for e in missed) > 0
    page.fill("#find", "no such word")
    assert count(page) == boxes.count() == 0


def test_an_error_has_its_sentence_and_the_probabilities_of_both_spans(
    open_report, report, tmp_path
):
    page = open_report(report, tmp_path)
    page.select_option("#order", "text")
    error = report["errors"][0]
    box = page.locator("article.error").first
    words = report["sentences"][error["sentence"]]["tokens"]
    assert words[0][0] in box.locator(".line .words").first.text_content()
    assert box.locator(".line").count() == 3
    rows = box.locator(".posteriors tbody tr")
    assert rows.count() == len(error["units"])
    shown = [float(p) for p in rows.locator("td.number").evaluate_all("a => a.map(x => x.title)")]
    assert shown == pytest.approx(error["posteriors"][0], abs=1e-5)
    assert "gold" in rows.first.text_content()


def test_html_of_the_corpus_stays_text(open_report, report, tmp_path):
    page = open_report(report, tmp_path)
    page.fill("#find", "onerror")
    assert count(page) >= 1
    assert page.locator("#errors img, #errors article b:not(.kinds b)").count() == 0
    assert "<img" in page.locator("article.error .words").first.text_content()
    assert page.title() != "bad"


def test_the_keyboard_alone_suffices(open_report, report, tmp_path):
    page = open_report(report, tmp_path)
    before = count(page)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "kind":
            break
    page.keyboard.press("m")  # missed
    assert page.input_value("#kind") == "missed"
    assert 0 < count(page) < before
    for _ in range(4):
        page.keyboard.press("Tab")
    focus = "document.activeElement.getAttribute('aria-label')"
    boxes = page.locator("article.error")
    assert page.evaluate(focus) == boxes.first.get_attribute("aria-label")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focus) == boxes.nth(1).get_attribute("aria-label")
    page.keyboard.press("ArrowUp")
    assert page.evaluate(focus) == boxes.first.get_attribute("aria-label")


@pytest.mark.parametrize(
    ("name", "width", "scheme"), [("narrow", 360, "light"), ("narrow-dark", 360, "dark")]
)
def test_the_page_fits_narrow_and_dark(open_report, report, tmp_path, shoot, name, width, scheme):
    page = open_report(report, tmp_path, color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is (scheme == "light")
    page.fill("#find", "ليدز")
    line = page.locator("article.error .words").first
    assert line.evaluate("node => getComputedStyle(node).direction") == "rtl"
    shoot(page, f"compare-{name}")


def test_thousands_of_errors_become_rows_where_they_are_seen(open_report, report, tmp_path):
    many = {**report, "errors": report["errors"] * (6000 // len(report["errors"]) + 1)}
    page = open_report(many, tmp_path)
    boxes = page.locator("article.error")
    assert count(page) >= 6000
    first = boxes.count()
    assert first <= 200
    boxes.nth(first - 1).scroll_into_view_if_needed()
    expect(boxes.nth(first)).to_be_attached()
    assert boxes.count() <= 600
    assert page.evaluate(DOWN_FROM_THE_LAST) > 0


def test_the_view_is_linked_and_the_report_can_be_saved(open_report, server, tmp_path):
    page = open_report(f"{server}/compare")
    assert page.locator("#views [aria-current]").inner_text() == "Compare"
    with page.expect_download() as download:
        page.click("#save")
    download.value.save_as(tmp_path / "saved.html")
    saved = open_report((tmp_path / "saved.html").as_uri())
    assert count(saved) == count(page)


def test_an_error_of_the_server_is_shown(open_page, server):
    page = open_page(server, "#model option")
    page.route("**/api/compare", lambda r: r.fulfill(status=422, json={"detail": "crf: no"}))
    page.goto(f"{server}/compare")
    expect(page.locator("#error")).to_have_text("crf: no")


def test_one_model_without_probabilities_is_shown_as_well(open_report, gold, tmp_path):
    report = compared({"rules": rules(RULES)}, gold)
    page = open_report(report, tmp_path)
    assert "no probabilities" in page.inner_text("#comparison")
    assert "no training data was given" in page.inner_text("#comparison")
    assert page.locator("#who").count() == page.locator(".posteriors").count() == 0
    assert count(page) == len(report["errors"])


def test_nested_units_are_boxes_inside_each_other(open_report, tmp_path):
    gold = tmp_path / "gold.spacy"
    deep_pipeline(gold)
    ruler = (nlp := spacy.blank("en")).add_pipe("span_ruler", config={"spans_key": "sc"})
    ruler.add_patterns([{"label": "LOC", "pattern": "England head"}])
    page = open_report(compared({"rules": nlp}, gold), tmp_path)
    page.fill("#find", "staff")
    case = page.locator("#errors article").first
    case.scroll_into_view_if_needed()  # articles out of sight are not rendered and have no text
    line = case.locator(".line").first
    assert line.locator(".span").count() == 5
    assert line.locator(".span .span .span .span").count() == 1
    assert line.locator(".words").inner_text().startswith("AdaPER saw the Bank of EnglandLOCORG")
