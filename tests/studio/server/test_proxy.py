"""The server behind a real nginx: its own headers or passed ones, below a path, with TLS."""

import re
from contextlib import contextmanager
from urllib.parse import urljoin

import httpx
import pytest
from starlette.testclient import TestClient

from spacy_psa.studio.server.app import create_app
from spacy_psa.studio.server.guard import COOKIE, Settings
from tests.helpers.proxy import NAME, PASSED, free_port, nginx
from tests.helpers.served import TEXT
from tests.helpers.serving import running

PLACES = {
    "at the root": {},
    "below a path": {"path": "/names"},
    "with the path": {"path": "/our/names", "strip": False},
}


@contextmanager
def proxied(served, folder, where, name=NAME, token=None, **options):
    """The address of the server behind a proxy, as `serve --allow-host --root-path` starts it."""
    port = free_port()
    root = "" if where.get("strip", True) else where["path"]
    settings = Settings(allowed=(f"{name}:{port}",), root_path=root, token=token)
    with (
        running(create_app([served], settings)) as address,
        nginx(folder, port, address, **where, **options),
    ):
        scheme = "https" if options.get("tls") else "http"
        yield f"{scheme}://127.0.0.1:{port}{where.get('path', '')}/"


@pytest.mark.parametrize(
    ("place", "headers", "tls"),
    [
        ("at the root", "", False),
        ("below a path", PASSED, True),
        ("with the path", "", True),
        ("with the path", PASSED, False),
    ],
)
def test_the_page_and_its_requests_work_behind_a_proxy(served, tmp_path, place, headers, tls):
    where = PLACES[place]
    options = {"token": "S€cret", "headers": headers, "tls": tls}
    with (
        proxied(served, tmp_path, where, **options) as address,
        httpx.Client(base_url=address, verify=False, follow_redirects=True) as client,
    ):
        site = address.split("/")[2].replace("127.0.0.1", NAME)
        client.headers["Host"] = site
        assert client.get("").status_code == 401
        page = client.get("", params={"token": "S€cret"})
        assert (page.status_code, page.url.path) == (200, httpx.URL(address).path)
        (cookie,) = [cookie for cookie in client.cookies.jar if cookie.name == COOKIE]
        assert cookie.path == ("/" if where.get("strip", True) else "/our/names/")
        assert cookie.secure == (tls and headers == PASSED)
        for link in re.findall(r'(?:href|src)="([^"#]+)"', page.text):
            assert client.get(urljoin(str(page.url), link)).status_code == 200, link
        origin = {"Origin": f"{'https' if tls else 'http'}://{site}"}
        asked = {"text": TEXT, "k": 1}
        assert client.post("api/analyse", json=asked, headers=origin).json()["count"] == 2
        other = {"Origin": "https://evil.example"}
        assert client.post("api/analyse", json=asked, headers=other).status_code == 403
        lines = '{"text": "Ada left."}\n' * 100
        kind = {"Content-Type": "application/x-ndjson"}
        assert client.post("api/annotate", content=lines, headers=kind).text.count("\n") == 100
        assert client.head("health").status_code == 200


def test_the_page_in_a_browser_behind_a_proxy(served, tmp_path, open_page):
    where = {"path": "/our/names", "strip": False}
    with proxied(served, tmp_path, where, name="127.0.0.1", tls=True) as address:
        page = open_page(address, "#model option", ignore_https_errors=True)
        page.fill("#text", TEXT)
        page.click("button.primary")
        page.wait_for_selector(".span")
        page.get_by_role("link", name="HTTP API").click()
        page.wait_for_selector("section h2")
        page.get_by_role("link", name="Back to the page").click()
        page.wait_for_selector("#model option", state="attached")
        assert page.url == address


def test_a_path_without_its_slash_is_completed_and_other_names_are_refused(served):
    settings = Settings(allowed=(NAME,), root_path="/our/names")
    client = TestClient(create_app([served], settings), f"http://{NAME}", follow_redirects=False)
    moved = client.get("/our/names")
    assert (moved.status_code, moved.headers["location"]) == (308, "names/")
    for path in ("/our/names/", "/our/names/api/models", "/api/models"):
        assert client.get(path).status_code == 200
    assert client.get("/our/namesakes").status_code == 404
    for headers, status in [
        ({"Host": "127.0.0.1:8000", "Origin": f"https://{NAME}"}, 200),
        ({"Host": "127.0.0.1:8000", "Origin": f"https://{NAME}:9999"}, 403),
        ({"Host": f"{NAME}:8443"}, 200),
        ({"Host": "other.example.org"}, 403),
        ({"Host": f"{NAME}.evil.example"}, 403),
    ]:
        assert client.get("/api/models", headers=headers).status_code == status, headers
    refused = client.get("/api/models", headers={"Host": "other.example.org"})
    assert "start it with --allow-host" in refused.json()["detail"]
