"""The guard and the end of a server, with real connections: stalled, endless, left, and open."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from urllib.parse import quote, urlsplit

import pytest
import spacy
from starlette.routing import Mount
from starlette.testclient import TestClient

from spacy_psa.studio.server import serve
from spacy_psa.studio.server.app import create_app
from spacy_psa.studio.server.compare import compare_view
from spacy_psa.studio.server.guard import Settings
from spacy_psa.studio.server.models import ServedModel
from tests.helpers.annotating import annotating
from tests.helpers.compared import FIRST, rules, write_gold
from tests.helpers.patience import PATIENCE
from tests.helpers.serving import running


def blank():
    return ServedModel("blank", spacy.blank("en"))


def connect(address):
    url = urlsplit(address)
    return socket.create_connection((url.hostname, url.port), timeout=PATIENCE)


def head(method, path, *headers):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", ""]
    return "\r\n".join(lines).encode()


def answer(connection):
    """Everything until the server closes the connection."""
    return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def walked(routes):
    for route in routes:
        if isinstance(route, Mount):
            yield "GET", f"{route.path}/app.js"
        elif router := getattr(route, "original_router", None):  # of later versions of FastAPI
            yield from walked(router.routes)
        else:
            yield from ((method, route.path) for method in route.methods)


@pytest.fixture
def routes(served, tmp_path):
    """Runs a server with all views, and lists all of its routes as (method, path)."""

    def served_routes(settings):
        view = compare_view([ServedModel("rules", rules(FIRST))], write_gold(tmp_path / "g.spacy"))
        with (
            annotating(served.nlp, tmp_path, settings=settings, views=[view]) as (_, app),
            running(app) as address,
        ):
            yield address, [*walked(app.app.routes)]

    return served_routes


def test_a_stalled_body_is_answered_on_every_route(routes):
    for address, every in routes(Settings(max_seconds=0.2)):
        assert len(every) > 15
        with ExitStack() as stack:
            opened = [stack.enter_context(connect(address)) for _ in every]
            for connection, (method, path) in zip(opened, every, strict=True):
                connection.sendall(head(method, path, "Content-Length: 100") + b"{")
            for connection, route in zip(opened, every, strict=True):
                status, *_ = answer(connection).splitlines()
                assert status.startswith("HTTP/1.1 408"), (route, status)


def test_an_endless_body_is_cut_off_on_every_route(routes):
    for address, every in routes(Settings(max_bytes=1000)):
        for method, path in every:
            with connect(address) as connection:
                connection.sendall(head(method, path, "Transfer-Encoding: chunked"))
                connection.sendall(b"3e8\r\n" + b" " * 1000 + b"\r\n3e8\r\n" + b" " * 1000)
                status, *_ = answer(connection).splitlines()
                assert status.startswith("HTTP/1.1 413"), (method, path, status)


def test_only_texts_to_annotate_may_be_long():
    """A body of other routes is read in the event loop, so it is as long as one text at most."""
    settings = Settings(max_chars=100)
    client = TestClient(create_app([blank()], settings), "http://localhost")
    body = json.dumps({"texts": ["a"], "other": "a" * 150_000})
    headers = {"Content-Type": "application/json"}
    assert client.post("/api/annotate", content=body, headers=headers).status_code == 200
    refused = client.post("/api/analyse", content=body, headers=headers)
    assert (refused.status_code, "more than 101,200 bytes" in refused.text) == (413, True)
    longest = json.dumps({"text": "\U0001f642" * 100})  # 12 bytes a character
    assert client.post("/api/analyse", content=longest, headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/api/annotate", "/api/analyse"])
def test_a_compressed_body_is_one_clear_sentence(path):
    client = TestClient(create_app([blank()]), "http://localhost")
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    refused = client.post(path, content=b"\x1f\x8b\x08", headers=headers)
    assert refused.status_code == 415
    assert refused.json()["detail"] == "The body is compressed (gzip): send it as it is."


@pytest.mark.parametrize("path", ["/health", "/", "/api/models", "/metrics", "/static/app.js"])
def test_head_is_answered_as_get_without_a_body(path):
    client = TestClient(create_app([blank()]), "http://localhost")
    expected, answered = client.get(path), client.head(path)
    assert (answered.status_code, answered.content) == (200, b"")
    assert answered.headers["content-type"] == expected.headers["content-type"]


@pytest.mark.parametrize("token", ["S€cret", "geheim;ü=1", "日本語"])
def test_a_token_may_have_any_letters(token):
    settings = Settings(token=token, hosts=None)
    client = TestClient(create_app([blank()], settings), "http://localhost")
    assert client.get("/api/models").status_code == 401
    bearer = {"Authorization": b"Bearer " + token.encode()}
    assert client.get("/api/models", headers=bearer).status_code == 200
    assert client.get(f"/?token={quote(token)}").status_code == 200  # by the cookie
    assert client.get("/api/models").status_code == 200


def test_lines_are_sent_batch_by_batch():
    """If a client leaves, each write of the batch that is being sent is a warning in the log."""
    texts = b"".join(b'{"text": "Ada left."}\n' for _ in range(150))
    received = [{"type": "http.request", "body": texts}]
    sent = []

    async def receive():
        return received.pop() if received else await asyncio.Event().wait()

    async def send(message):
        sent.append(message.get("body"))

    headers = [(b"host", b"localhost"), (b"content-type", b"application/x-ndjson")]
    scope = {"type": "http", "method": "POST", "path": "/api/annotate", "headers": headers}
    scope |= {"query_string": b"", "scheme": "http", "server": ("localhost", 80)}
    asyncio.run(create_app([blank()], Settings(batch=64))(scope, receive, send))
    assert [part.count(b"\n") for part in sent if part] == [64, 64, 22]


SERVER = """
import time, spacy
from spacy_psa.studio.server import serve
from spacy_psa.studio.server.app import create_app
from spacy_psa.studio.server.models import ServedModel

serve.GRACE, serve.LAST = 0.2, 0.6

class Slow(ServedModel):
    def annotate(self, texts):
        print("busy", flush=True)
        time.sleep(1000)

with serve.open_socket("127.0.0.1", 0) as listening:
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    serve.run(create_app([Slow("slow", spacy.blank("en"))]), listening)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_whatever_is_open(number):
    assert serve.GRACE < serve.LAST < 10  # seconds, which are fewer here
    body = b'{"texts": ["a"]}'
    length = f"Content-Length: {len(body)}"
    kind = "Content-Type: application/json"
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as p:
        address = p.stdout.readline().strip()
        half, idle, stalled, busy = (connect(address) for _ in range(4))
        half.sendall(b"POST /api/annotate HTTP/1.1\r\n")
        idle.sendall(head("GET", "/health"))
        assert b"200 OK" in idle.recv(1000)
        stalled.sendall(head("POST", "/api/annotate", kind, length) + body[:5])
        busy.sendall(head("POST", "/api/annotate", kind, length) + body)
        assert p.stdout.readline().strip() == "busy"
        p.send_signal(number)
        p.wait(PATIENCE)
        for connection in (half, idle, stalled, busy):
            connection.close()
