"""A served pipeline, its app, and a real server with a browser."""

import os
import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from spacy_psa.studio.server.app import create_app
from spacy_psa.studio.server.models import ServedModel
from tests.helpers.patience import PATIENCE
from tests.helpers.served import served_pipeline
from tests.helpers.serving import running

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
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu"],
            timeout=MILLISECONDS,
        )
        yield browser
        browser.close()


@pytest.fixture
def new_context(browser):
    """Opens a context, whose pages wait as long as `expect` does. Who opens it closes it."""

    def opened(**settings):
        context = browser.new_context(**settings)
        context.set_default_timeout(MILLISECONDS)
        return context

    return opened


@pytest.fixture
def page(new_context, address):
    """The page, on which no script may fail and nothing may be refused by the policy."""
    context = new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "console",
        lambda message: (
            faults.append(message.text)
            if message.type == "error" and "status of 4" not in message.text
            else None
        ),
    )
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith(address) else faults.append(f"elsewhere: {request.url}")
        ),
    )
    page.goto(address)
    page.wait_for_selector("#model option", state="attached")
    yield page
    context.close()
    assert faults == []


@pytest.fixture(scope="session")
def shots():
    """A folder for screenshots, if PAGE_SHOTS names one."""
    folder = os.environ.get("PAGE_SHOTS")
    return Path(folder) if folder else None
