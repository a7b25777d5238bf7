"""A served pipeline, its app, and a real server with a browser."""

import os
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from spacy_psa.studio.server.app import create_app
from spacy_psa.studio.server.models import ServedModel
from tests.helpers.patience import PATIENCE
from tests.helpers.served import served_pipeline
from tests.helpers.serving import running
from tests.helpers.views import VIEWS

MILLISECONDS = 1000 * PATIENCE
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def served():
    return ServedModel("small", served_pipeline())


@pytest.fixture
def client(served):
    with TestClient(create_app([served]), "http://localhost") as client:
        yield client


@pytest.fixture(scope="session")
def address(served):
    """The address of a server that runs in a thread."""
    with running(create_app([served])) as address:
        yield address


@pytest.fixture(scope="module")  # while it is open, its event loop runs in the thread of the tests
def browser():
    if CHROMIUM is None:
        pytest.skip("no chromium here: apt-get install chromium, or set CHROMIUM")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=MILLISECONDS)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"], timeout=MILLISECONDS
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Opens an address in a page of its own, until something is there.

    No script may fail, nothing may be refused by the policy or come from elsewhere. A page may ask
    a server that has ended before it.
    """
    contexts, faults = [], []

    def opened(address, awaited, **settings):
        site = urlsplit(address)[:2]
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        context.set_default_timeout(MILLISECONDS)  # as `expect` waits
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda m: m.type == "error" and faults.append(m.text))
        page.on("request", lambda r: urlsplit(r.url)[:2] != site and faults.append(r.url))
        page.goto(address)
        page.wait_for_selector(awaited, state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    allowed = re.compile("status of 4|net::ERR_(CONNECTION|EMPTY_RESPONSE)")
    assert [fault for fault in faults if not allowed.search(fault)] == []


@pytest.fixture
def page(open_page, address):
    return open_page(address, "#model option")


@pytest.fixture
def violations():
    """The rules of axe-core that a page breaks, with the elements."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="axe-core is not installed: pip install axe-playwright-python",
    )

    def broken(page):
        rules = axe.Axe().run(page).response["violations"]
        return [(rule["id"], node["html"]) for rule in rules for node in rule["nodes"]]

    return broken


@pytest.fixture
def look_at(shoot, violations):
    """Looks at a page in all views: it fits its width, and axe-core finds nothing."""

    def looked(page, name):
        for view, (width, scheme) in VIEWS.items():
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, view
            shoot(page, f"{name}-{view}")
            assert violations(page) == [], view

    return looked


@pytest.fixture(scope="session")
def shoot():
    """Makes a screenshot of a page, if PAGE_SHOTS names a folder for them."""
    folder = os.environ.get("PAGE_SHOTS")

    def shot(page, name):
        if folder:
            page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)

    return shot


@pytest.fixture(scope="session")
def drag():
    """Drags the mouse over words from one to another, by their numbers."""

    def dragged(page, words, first, last):
        begin, end = words.nth(first).bounding_box(), words.nth(last).bounding_box()
        page.mouse.move(begin["x"] + 3, begin["y"] + 8)
        page.mouse.down()
        page.mouse.move(end["x"] + 3, end["y"] + 8, steps=6)
        page.mouse.up()

    return dragged
