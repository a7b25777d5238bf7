"""Downloads from a server on this machine that cuts, stalls, lies and serves wrong bytes."""

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from spacy_psa.corpora import assets as module
from spacy_psa.corpora.assets import BLOCK, TRIES, download
from spacy_psa.errors import InputError
from tests.helpers.patience import PATIENCE

CONTENT = bytes(range(256)) * 1000
SIZE = len(CONTENT)
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()
WRONG = CONTENT[:-1] + b"!"


class Handler(BaseHTTPRequestHandler):
    """Answers each request as the test says; notes what was asked for."""

    protocol_version = "HTTP/1.1"
    answer: Callable[["Handler"], None]
    asked: list[str | None]

    def do_GET(self) -> None:
        self.asked.append(self.headers["Range"])
        type(self).answer(self)
        self.close_connection = True

    def log_message(self, *_: object) -> None: ...

    def head(self, status: int, **headers: object) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def serve(
        self,
        content: bytes = CONTENT,
        upto: int = SIZE,
        ranges: bool = True,
        etag: str = '"1"',
        **headers: object,
    ) -> None:
        """Send the file, or the range that is asked for, but no byte from `upto` on."""
        start = 0
        wanted = self.headers["Range"] if ranges else None
        if wanted and self.headers["If-Range"] in (None, etag):
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])
        if start >= len(content):
            self.head(416, Content_Length=0)
            return
        lengths = {"Content_Length": len(content) - start}
        if start:
            lengths["Content_Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self.head(206 if start else 200, **{**lengths, "ETag": etag, **headers})
        self.wfile.write(content[start:upto])


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Handler], None]], tuple[str, list[str | None]]]]:
    """Starts a server that answers with a function; its address, and what it was asked for."""
    servers = []

    def start(answer: Callable[[Handler], None]) -> tuple[str, list[str | None]]:
        asked: list[str | None] = []
        bound = type("Bound", (Handler,), {"answer": answer, "asked": asked})
        server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
        server.daemon_threads = True
        servers.append(server)
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/eng.train", asked

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def pauses(monkeypatch) -> list[float]:
    """The pauses between tries, which take no time here."""
    found: list[float] = []
    monkeypatch.setattr(module.time, "sleep", found.append)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return found


@pytest.fixture
def path(tmp_path) -> Path:
    """A file that is there already, in a folder of its own."""
    found = tmp_path / "eng.train"
    found.write_bytes(b"former")
    return found


def left(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


def test_file_replaces_the_former_one(serve, path):
    url, asked = serve(Handler.serve)
    download(url, path, size=SIZE, checksum=MD5)
    assert path.read_bytes() == CONTENT
    assert left(path) == ["eng.train"]
    assert asked == [None]


def test_folder_is_made(serve, tmp_path):
    url, _ = serve(Handler.serve)
    download(url, tmp_path / "a" / "b" / "eng.train")
    assert (tmp_path / "a" / "b" / "eng.train").read_bytes() == CONTENT


@pytest.mark.parametrize("checksum", [MD5, None])
def test_a_cut_connection_is_resumed(serve, path, pauses, checksum):
    def answer(handler: Handler) -> None:
        handler.serve(upto=BLOCK * len(handler.asked))

    url, asked = serve(answer)
    download(url, path, checksum=checksum)
    assert path.read_bytes() == CONTENT
    assert asked == [None, *(f"bytes={times * BLOCK}-" for times in (1, 2, 3))]
    assert pauses == [1, 1, 1]


def test_the_next_call_goes_on_with_the_part(serve, path):
    url, asked = serve(lambda handler: handler.serve(upto=BLOCK))
    with pytest.raises(InputError, match=r"cannot be downloaded \(the connection was cut"):
        download(url, path, checksum=MD5)
    assert asked == [None] + TRIES * [f"bytes={BLOCK}-"]
    assert path.read_bytes() == b"former"
    assert left(path) == ["eng.train", "eng.train.part"]
    url, asked = serve(Handler.serve)
    download(url, path, checksum=MD5)
    assert asked == [f"bytes={BLOCK}-"]
    assert path.read_bytes() == CONTENT
    assert left(path) == ["eng.train"]


def test_without_a_checksum_a_part_of_another_call_is_not_trusted(serve, path):
    path.with_name("eng.train.part").write_bytes(b"of another file")
    url, asked = serve(Handler.serve)
    download(url, path)
    assert asked == [None]
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("part", [b"of another file", WRONG, CONTENT + b"and more"])
def test_a_part_of_another_file_is_downloaded_anew(serve, path, part):
    path.with_name("eng.train.part").write_bytes(part)
    url, _ = serve(Handler.serve)
    download(url, path, size=SIZE, checksum=MD5)
    assert path.read_bytes() == CONTENT


def test_a_file_that_changes_between_tries_is_downloaded_anew(serve, path):
    def answer(handler: Handler) -> None:
        if len(handler.asked) == 1:
            handler.serve(content=bytes(SIZE), upto=BLOCK)
        else:
            handler.serve(etag='"2"')

    url, asked = serve(answer)
    download(url, path)
    assert len(asked) == 2
    assert path.read_bytes() == CONTENT


def test_a_server_without_ranges_sends_all_again(serve, path):
    def answer(handler: Handler) -> None:
        handler.serve(upto=BLOCK if len(handler.asked) == 1 else SIZE, ranges=False)

    url, asked = serve(answer)
    download(url, path, checksum=MD5)
    assert len(asked) == 2
    assert path.read_bytes() == CONTENT


def test_a_stalled_connection_counts_as_cut(serve, path, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", 1.0)
    end = Event()

    def answer(handler: Handler) -> None:
        if handler.headers["Range"]:
            handler.serve()
        else:
            handler.serve(upto=BLOCK)
            handler.wfile.flush()
            end.wait(PATIENCE)

    url, asked = serve(answer)
    download(url, path, checksum=MD5)
    end.set()
    # On a busy machine, a connection may count as stalled before its first byte.
    first, *more, last = asked
    assert {first, *more} == {None} and last == f"bytes={BLOCK}-"
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_busy_server_is_asked_again(serve, path, pauses, status):
    def answer(handler: Handler) -> None:
        if len(handler.asked) < 4:
            handler.head(status, Content_Length=0)
        else:
            handler.serve()

    url, _ = serve(answer)
    download(url, path, checksum=MD5)
    assert path.read_bytes() == CONTENT
    assert pauses == [2, 4, 8]


def refused(url: str, path: Path, message: str, **expected: object) -> None:
    """Nothing is replaced, and the error names the address."""
    with pytest.raises(InputError, match=message) as caught:
        download(url, path, **expected)
    assert str(caught.value).startswith(url)
    assert path.read_bytes() == b"former"


def test_a_missing_file_is_an_error_at_once(serve, path):
    url, asked = serve(lambda handler: handler.head(404, Content_Length=0))
    refused(url, path, "the server answers 404 Not Found", checksum=MD5)
    assert len(asked) == 1
    assert left(path) == ["eng.train"]


def test_wrong_bytes_are_an_error(serve, path):
    url, asked = serve(lambda handler: handler.serve(content=WRONG))
    refused(url, path, f"another file \\(its MD5 is not {MD5}", size=SIZE, checksum=MD5)
    assert len(asked) == 1
    assert left(path) == ["eng.train"]


@pytest.mark.parametrize("length", [SIZE - 1, SIZE + 1])
def test_another_length_than_that_of_the_file_is_an_error(serve, path, length):
    url, asked = serve(lambda handler: handler.serve(Content_Length=length))
    message = f"another file \\({length:,} bytes instead of {SIZE:,}"
    refused(url, path, message, size=SIZE)
    assert len(asked) == 1


def test_a_length_that_is_never_reached_is_an_error(serve, path):
    url, _ = serve(lambda handler: handler.serve(Content_Length=SIZE + 1, ranges=False))
    refused(url, path, "cannot be downloaded", checksum=MD5)


def test_a_length_that_is_too_short_is_found_by_the_checksum(serve, path):
    url, _ = serve(lambda handler: handler.serve(Content_Length=SIZE - 1))
    refused(url, path, "its MD5 is not", checksum=MD5)


def endless(handler: Handler) -> None:
    handler.head(200, Transfer_Encoding="chunked")
    while True:
        try:
            handler.wfile.write(b"10000\r\n" + bytes(0x10000) + b"\r\n")
        except OSError:
            return


def test_an_endless_answer_is_cut_at_the_size(serve, path):
    url, _ = serve(endless)
    refused(url, path, f"more than {SIZE:,} bytes", size=SIZE, checksum=MD5)
    assert path.with_name("eng.train.part").stat().st_size < SIZE + 2**20


def test_an_answer_of_unknown_length_needs_a_size(serve, path):
    url, _ = serve(endless)
    refused(url, path, "does not send the size")


def test_another_range_than_the_one_asked_for_is_not_taken(serve, path):
    def answer(handler: Handler) -> None:
        if handler.headers["Range"]:
            handler.head(206, Content_Length=10, Content_Range=f"bytes 5-14/{SIZE}")
            handler.wfile.write(CONTENT[5:15])
        else:
            handler.serve(upto=BLOCK if len(handler.asked) == 1 else SIZE)

    url, asked = serve(answer)
    download(url, path, checksum=MD5)
    assert asked == [None, f"bytes={BLOCK}-", None]
    assert path.read_bytes() == CONTENT


def test_no_server_is_an_error(path):
    refused("http://127.0.0.1:9/eng.train", path, "cannot be downloaded")


@pytest.mark.parametrize("url", ["ftp://example.org/a", "file:///etc/hosts", "nothing"])
def test_other_addresses_are_an_error(path, url):
    refused(url, path, "cannot be downloaded")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")
def test_a_folder_that_cannot_be_made_is_an_error(serve, path):
    url, _ = serve(Handler.serve)
    with pytest.raises(InputError, match="cannot be written"):
        download(url, path / "inside")
