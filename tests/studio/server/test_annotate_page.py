"""The page Annotate, in a real browser."""

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
from playwright.sync_api import expect

from spacy_psa.studio.active_learning.decisions import Decided
from tests.helpers.annotating import SPOKEN, annotating, fail_on_bad
from tests.helpers.serving import running

HTML = "<img src=x onerror=\"document.title='bad'\"> <b>Ada</b> met <script>alert(1)</script> Evans"


@pytest.fixture
def lines():
    return SPOKEN


@pytest.fixture
def nlp(served):
    return served.nlp


@pytest.fixture
def options():
    return {}


@pytest.fixture
def opened(nlp, lines, options, tmp_path):
    """The work, and the address of its server."""
    with annotating(nlp, tmp_path, lines, **options) as (work, app), running(app) as address:
        yield work, address


@pytest.fixture
def page(opened, open_page):  # in this order: the page ends before its server
    """The page shows the first text."""
    return open_page(f"{opened[1]}/annotate", "#result .word")


@pytest.fixture
def work(opened):
    return opened[0]


def shown(page):
    # Not the inner text, which is empty until the browser has rendered the sentence.
    return "".join(page.locator("#result .word").all_text_contents())


def number(work, page):
    """The number of the text that is shown."""
    texts = work.store.texts(work.store.lengths())
    (number,) = [t.number for t in texts if "".join(t.tokens.words) == shown(page)]
    return number


def decided(work, page, annotator="ann"):
    return work.store.decided(number(work, page), annotator, "ner")


def saved(page):
    expect(page.locator("#status")).to_have_text("Saved.")


def test_suggestions_below_a_threshold_that_can_be_moved_are_hidden(page, work):
    probabilities = page.locator("#result .span .name").all_text_contents()
    sure = [name for name in probabilities if "100%" in name or ">99" in name]
    page.locator("#least").fill("95")
    expect(page.locator("#share")).to_have_text("95%")
    shown = page.locator("#result .span .name").all_text_contents()
    assert set(sure) <= set(shown) < set(probabilities) or len(sure) == len(probabilities)
    page.locator("#least").fill("0")
    assert page.locator("#result .span .name").all_text_contents() == probabilities


def test_a_suggestion_is_accepted_and_rejected_by_mouse(page, work, shoot):
    shoot(page, "annotate-wide")
    assert "%" in page.locator(".span .name").first.text_content()
    assert page.locator(".span.required").count() == 0
    page.locator(".span").first.click(position={"x": 5, "y": 8})
    shoot(page, "annotate-menu")
    page.get_by_role("button", name="Right:").click()
    saved(page)
    assert page.locator(".span.required").count() == 1
    ((start, end, label),) = decided(work, page).accepted
    page.locator(".span.required").click(position={"x": 5, "y": 8})
    page.get_by_role("button", name=f"Wrong: not {label}").click()
    page.wait_for_selector(".chips button")
    assert decided(work, page) == Decided((), ((start, end, label),))
    shoot(page, "annotate-rejected")
    page.click(".chips button")
    page.wait_for_selector(".chips button", state="detached")
    assert decided(work, page) == Decided()
    assert "0 of 3 texts done" in page.inner_text("#counts")


def test_a_span_is_made_by_dragging_and_corrected_to_another_label_and_bounds(page, work, drag):
    def label_by_dragging(first, last, label):
        drag(page, page.locator("#result .word"), first, last)
        page.locator("#menu").get_by_role("button", name=label, exact=True).click()
        expect(page.locator(".span.required .name")).to_contain_text(f"{label} 100%")

    label_by_dragging(0, 2, "ORG")
    assert decided(work, page).accepted == ((0, 3, "ORG"),)
    label_by_dragging(0, 1, "PER")
    assert decided(work, page).accepted == ((0, 2, "PER"),)
    page.locator(".span.required").click(position={"x": 5, "y": 8})
    page.locator("#menu").get_by_role("button", name="LOC", exact=True).click()
    expect(page.locator(".span.required .name")).to_contain_text("LOC")
    assert decided(work, page) == Decided(((0, 2, "LOC"),))


def test_nothing_here_and_undecided_again(page, work):
    page.locator("#result .word").nth(1).click()
    page.locator("#menu").get_by_role("button", name="Nothing here").click()
    page.wait_for_selector(".word.outside")
    assert decided(work, page).outside == {1}
    page.locator("#result .word").nth(1).click()
    page.locator("#menu").get_by_role("button", name="Undecided again").click()
    page.wait_for_selector(".word.outside", state="detached")
    assert decided(work, page) == Decided()


def test_right_as_shown_saves_all_suggestions_and_shows_the_next_text(page, work, shoot):
    first = number(work, page)
    spans = page.locator(".span").count()
    before = shown(page)
    page.get_by_role("button", name="Right as shown").click()
    expect(page.locator("#status")).to_have_text("Saved. The next text:")
    saved_decisions = work.store.decided(first, "ann", "ner")
    assert len(saved_decisions.accepted) == spans
    assert saved_decisions.covers(work.store.lengths()[first])
    assert shown(page) != before
    page.get_by_role("button", name="Nothing else here").click()
    expect(page.locator("#status")).to_have_text("Saved. The next text:")
    expect(page.locator("#counts")).to_contain_text("2 of 3 texts done")
    page.get_by_role("button", name="Right as shown").click()
    expect(page.locator("#result")).to_have_text("All texts are done.")
    shoot(page, "annotate-done")
    page.click("#undo")
    page.wait_for_selector("#result .word")
    expect(page.locator("#counts")).to_contain_text("2 of 3 texts done")


def test_the_keyboard_alone_suffices(page, work):
    first = number(work, page)
    length = work.store.lengths()[first]
    assert page.evaluate("document.activeElement.classList.contains('span')")
    page.keyboard.press("y")
    saved(page)
    assert len(decided(work, page).accepted) == 1
    page.keyboard.press("u")
    expect(page.locator(".span.required")).to_have_count(0)
    page.keyboard.press("x")
    page.wait_for_selector(".chips button")
    assert len(decided(work, page).rejected) == 1
    page.keyboard.press("u")
    page.wait_for_selector(".chips button", state="detached")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('word')"):
            break
    page.keyboard.press("Home")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("2")
    expect(page.locator(".span.required .name")).to_contain_text("ORG")
    assert decided(work, page).accepted == ((0, 2, "ORG"),)
    page.keyboard.press("n")
    expect(page.locator("#status")).to_have_text("Saved. The next text:")
    expect(page.locator("#counts")).to_contain_text("1 of 3 texts done")
    assert work.store.decided(first, "ann", "ner") == Decided(
        ((0, 2, "ORG"),), (), frozenset(range(2, length))
    )
    second = number(work, page)
    page.keyboard.press("s")
    expect(page.locator("#counts")).to_contain_text("1 skipped")
    expect(page.locator("#status")).to_have_text("")
    assert number(work, page) != second
    page.keyboard.press("d")
    expect(page.locator("#counts")).to_contain_text("2 of 3 texts done")
    page.keyboard.press("u")
    expect(page.locator("#counts")).to_contain_text("1 of 3 texts done")


def test_keys_in_the_field_of_the_name_are_letters(page, work):
    page.locator("#annotator").fill("")
    page.locator("#annotator").type("dusny")
    page.keyboard.press("Tab")
    expect(page.locator("#counts")).to_contain_text("0 decisions")
    assert work.store.all_decided("ner") == {}
    page.locator(".span").first.press("y")
    saved(page)
    assert decided(work, page, "dusny").accepted
    page.reload()
    page.wait_for_selector("#result .word")
    assert page.input_value("#annotator") == "dusny"


def test_a_browser_that_goes_away_loses_nothing(page, work, opened, open_page):
    text = number(work, page)
    page.locator(".span").first.press("y")
    saved(page)
    accepted = decided(work, page).accepted
    page.goto("about:blank")
    other = open_page(f"{opened[1]}/annotate", "#result .word")
    expect(other.locator("#counts")).to_contain_text("1 decision ")
    assert work.store.decided(text, "ann", "ner").accepted == accepted
    other.evaluate(
        "text => fetch('/api/annotation/decide', {method: 'POST', keepalive: true, "
        "headers: {'Content-Type': 'application/json'}, body: JSON.stringify({annotator: 'ann', "
        "text, decisions: [{verdict: 'complete', start: 0, end: 1}]})}) && null",
        text,
    )
    other.context.close()
    page.goto(f"{opened[1]}/annotate")
    expect(page.locator("#counts")).to_contain_text("2 decisions")


def test_a_decision_that_no_analysis_agrees_with_is_one_line_and_is_not_saved(page, work):
    page.route(
        "**/api/annotation/decide",
        lambda route: route.continue_(
            post_data=route.request.post_data.replace('"end":', '"end":9')
        ),
    )
    page.locator(".span").first.press("y")
    expect(page.locator("#error")).to_contain_text("is not a stretch of a text")
    assert decided(work, page) == Decided()


def test_keys_that_come_before_the_answer_wait_for_it_in_order(page, work):
    """Y, Y and N at once decide the same as with pauses between them."""
    first = number(work, page)
    spans = page.locator("#result .span").count()
    assert spans > 1
    page.evaluate(
        """() => {
            const real = window.fetch;
            window.fetch = async (...all) => {
                const answer = await real(...all);
                await new Promise((done) => setTimeout(done, 300));
                return answer;
            };
        }"""
    )
    for key in "y" * spans + "n":
        page.keyboard.press(key)
    assert page.evaluate("document.body.classList.contains('busy')")
    expect(page.locator("#counts")).to_contain_text("1 of 3 texts done")
    made = work.store.decided(first, "ann", "ner")
    assert len(made.accepted) == spans
    assert made.covers(work.store.lengths()[first])
    expect(page.locator("body.busy")).to_have_count(0)


@pytest.mark.parametrize("arrives", [False, True])
def test_a_decision_is_sent_again_until_the_server_answers(page, work, arrives):
    """It is done once, also if it arrived and its answer was lost."""
    page.evaluate(
        """(arrives) => {
            const real = window.fetch;
            let left = 2;
            window.fetch = async (...all) => {
                if (left-- <= 0) return real(...all);
                if (arrives) await real(...all);
                throw new TypeError("away");
            };
        }""",
        arrives,
    )
    page.keyboard.press("y")
    expect(page.locator("#error")).to_contain_text("What you do is kept")
    saved(page)
    expect(page.locator("#error")).to_be_hidden()
    assert len(decided(work, page).accepted) == work.store.count("ann", "ner") == 1


def test_an_armed_label_goes_to_the_words_that_are_dragged_over(page, work, drag):
    words = page.locator("#result .word")
    page.locator("#names").get_by_role("button", name="ORG").click()
    expect(page.locator("#names").get_by_role("button", name="ORG")).to_have_attribute(
        "aria-pressed", "true"
    )
    drag(page, words, 0, 1)
    saved(page)
    assert decided(work, page).accepted == ((0, 2, "ORG"),)
    page.keyboard.press("3")  # after the mouse, a key arms another label
    expect(page.locator("#names").get_by_role("button", name="PER")).to_have_attribute(
        "aria-pressed", "true"
    )
    words.nth(3).click()
    expect(page.locator(".span.required")).to_have_count(2)
    assert (3, 4, "PER") in decided(work, page).accepted
    page.keyboard.press("Escape")
    expect(page.locator("#names [aria-pressed=true]")).to_have_count(0)
    page.locator("#result .word").nth(4).click()
    page.locator("#menu button", has_text="LOC").press("1")  # and in the menu, keys choose
    expect(page.locator(".span.required")).to_have_count(3)
    assert (4, 5, "LOC") in decided(work, page).accepted


def test_a_text_that_was_done_stays_when_it_is_corrected(page, work):
    first = number(work, page)
    page.keyboard.press("d")
    expect(page.locator("#status")).to_have_text("Saved. The next text:")
    page.keyboard.press("b")
    expect(page.locator("#counts")).to_contain_text("1 of 3 texts done")
    expect(page.locator("#result .sentence.done")).to_have_count(1)
    assert number(work, page) == first
    page.locator(".span").first.press("2")
    saved(page)
    assert number(work, page) == first
    page.keyboard.press("f")
    expect(page.locator("#result .sentence.done")).to_have_count(0)
    assert number(work, page) != first
    page.keyboard.press("b")
    expect(page.locator("#result .sentence.done")).to_have_count(1)


class TestHTML:
    @pytest.fixture
    def lines(self):
        return [HTML]

    def test_html_in_a_text_stays_text(self, page, work):
        assert page.locator("#result img, #result b, #result script").count() == 0
        assert "<img" in shown(page)
        page.locator("#result .word").first.click()
        assert page.locator("#menu img").count() == 0
        assert page.title() == "spacy-psa: annotate"


class TestManySentences:
    @pytest.fixture
    def lines(self):
        return ["Ada met Evans in Bath . " * 3]

    def test_each_sentence_is_completed_by_itself(self, page, work, shoot):
        boxes = page.locator("#result article")
        expect(boxes).to_have_count(3)
        boxes.nth(1).get_by_role("button", name="Nothing else here").click()
        saved(page)
        assert "done" in boxes.nth(1).get_attribute("class")
        assert decided(work, page).tokens == set(range(6, 12))
        shoot(page, "annotate-sentences")
        boxes.nth(1).get_by_role("button", name="Undecided again").click()
        expect(boxes.nth(1).get_by_role("button", name="Right as shown")).to_be_visible()
        assert decided(work, page) == Decided()
        boxes.nth(1).get_by_role("button", name="Nothing else here").click()
        expect(boxes.nth(1).get_by_role("button", name="Undecided again")).to_be_visible()
        page.keyboard.press("d")
        expect(boxes.nth(2).get_by_role("button", name="Undecided again")).to_be_visible()
        page.keyboard.press("d")
        expect(page.locator("#counts")).to_contain_text("1 of 1 texts done")


class TestTextThatFails:
    @pytest.fixture
    def lines(self):
        return ["bad Ada left London", "Ada left"]

    @pytest.fixture
    def nlp(self, served, monkeypatch):
        fail_on_bad(monkeypatch)
        return served.nlp

    def test_it_comes_last_with_the_reason_and_is_annotated_and_skipped(
        self, page, work, drag, shoot
    ):
        assert number(work, page) == 2
        expect(page.locator("#result .hint")).to_have_count(0)
        page.keyboard.press("n")
        expect(page.locator("#result .hint")).to_have_text(
            "The model has no suggestions for this text: no such feature"
        )
        assert number(work, page) == 1
        assert page.locator("#result .span").count() == 0
        expect(page.get_by_role("button", name="Right as shown")).to_have_count(0)
        shoot(page, "annotate-fails")
        page.keyboard.press("s")
        expect(page.locator("#counts")).to_contain_text("1 skipped")
        assert number(work, page) == 1  # no other text is left
        drag(page, page.locator("#result .word"), 1, 1)
        page.locator("#menu").get_by_role("button", name="PER", exact=True).click()
        expect(page.locator(".span.required")).to_have_count(1)
        assert decided(work, page).accepted == ((1, 2, "PER"),)
        page.keyboard.press("n")
        expect(page.locator("#result")).to_have_text("All texts are done.")
        made = work.store.decided(1, "ann", "ner")
        assert made.accepted == ((1, 2, "PER"),) and made.covers(4)
