"""The outermost layer of the app: who may ask, how much, and the counters of the requests."""

import hmac
import time
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode, urlsplit

import anyio
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
COOKIE = "spacy_psa_token"
LONG = "/api/annotate"
"""The route whose requests may have many texts."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Settings:
    """The limits of a server, and who may ask it."""

    token: str | None = None
    """The token that each request must show; None for no token."""
    hosts: tuple[str, ...] | None = LOOPBACK
    """The names under which the server may be asked; None for any."""
    max_bytes: int = 10_000_000
    """Bytes of a request; those of the page have one text and may have fewer."""
    max_texts: int = 1000
    """Texts of a request."""
    max_chars: int = 100_000
    """Characters of a text."""
    max_seconds: float = 60.0
    """Seconds for reading a request, and again for answering it."""
    batch: int = 256
    """Texts that go through the model together."""
    waiting: int = 10_000
    """Texts that may wait for the model."""
    allowed: tuple[str, ...] = ()
    """Further names of the server, those of a proxy before it, with the port if it is unusual."""
    root_path: str = ""
    """The path of the server behind a proxy, such as /names."""


class Metrics:
    """The counters of one server, for Prometheus."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        self.requests = Counter("spacy_psa_requests", "Requests.", ("path", "status"), registry=own)
        self.seconds = Histogram(
            "spacy_psa_request_seconds", "Time to answer.", ("path",), registry=own
        )
        self.texts = Counter("spacy_psa_texts", "Texts annotated.", registry=own)
        self.characters = Counter("spacy_psa_characters", "Characters annotated.", registry=own)
        self.batches = Histogram(
            "spacy_psa_batch_texts", "Texts in a batch.", buckets=SIZES, registry=own
        )
        self.waiting = Gauge(
            "spacy_psa_waiting_texts", "Texts that wait for the model.", registry=own
        )

    def text(self) -> bytes:
        """Write all counters as text."""
        return generate_latest(self._registry)


class TooLarge(Exception):
    """The body of a request has more bytes than it may have."""


class Guard:
    """Answers requests of strangers, and bodies that are too large or too slow, before the app.

    - A request under a name of the server that is not among `hosts` or `allowed` is refused, so
      that a page of another site cannot reach the server by a name of its own (DNS rebinding).
    - A request whose `Origin` is another site is refused.
    - If there is a token, a request needs it: as `Authorization: Bearer …`, or as `?token=…` in the
      address of the page, which moves to a cookie.
    - The whole body is read here, within `max_seconds` and its number of bytes.
    - HEAD is answered as GET, without the body.
    """

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics):
        self.app = app
        self.settings = settings
        self.metrics = metrics
        self._names = {urlsplit(f"//{site}").hostname for site in settings.allowed}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status, head = time.perf_counter(), 500, scope["method"] == "HEAD"

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(HEADERS)
            elif head:
                message = {**message, "body": b""}
            await send(message)

        # Starlette expects the path with the prefix, which a proxy may have removed.
        root, path = self.settings.root_path, scope["path"]
        if path.startswith(f"{root}/"):
            path = path.removeprefix(root)
        inner = {**scope, "root_path": root, "path": root + path}
        inner["method"] = "GET" if head else scope["method"]
        try:
            await self._pass(inner, path, receive, answer)
        except ClientDisconnect:
            status = 499
        finally:
            # Only known paths: a stranger must not fill the memory with names.
            route = getattr(inner.get("route"), "path", "other")
            self.metrics.requests.labels(path=route, status=str(status)).inc()
            self.metrics.seconds.labels(path=route).observe(time.perf_counter() - begin)

    async def _pass(self, scope: Scope, path: str, receive: Receive, send: Send) -> None:
        """Read the body and let the app answer, or refuse the request."""
        limit = self.settings.max_bytes
        if path != LONG:  # the page sends one text, in which JSON has up to 12 bytes a character
            limit = min(limit, 100_000 + 12 * self.settings.max_chars)
        refusal = self._refusal(scope, path, limit)
        body = b""
        if refusal is None:
            try:
                with anyio.fail_after(self.settings.max_seconds):
                    body = await _body(Request(scope, receive), limit)
            except TooLarge:
                refusal = _too_large(limit)
            except TimeoutError:
                refusal = _error(
                    408,
                    f"The body took more than {self.settings.max_seconds:g} seconds: send it "
                    "faster, or in several parts.",
                )
        if refusal is not None:
            refusal.headers["Connection"] = "close"  # the rest of the body is not read
            await refusal(scope, receive, send)
            return
        left: list[Message] = [{"type": "http.request", "body": body}]

        async def again() -> Message:
            return left.pop() if left else await receive()

        await self.app(scope, again, send)

    def _refusal(self, scope: Scope, path: str, limit: int) -> Response | None:
        headers, hosts = Headers(scope=scope), self.settings.hosts
        host, origin = headers.get("host", "").lower(), headers.get("origin")
        try:
            name = urlsplit(f"//{host}").hostname
            site = None if origin is None else urlsplit(origin).netloc.lower()
        except ValueError:  # [ without ]
            return _error(403, "Host or Origin is not an address.")
        if hosts is not None and name not in hosts and name not in self._names:
            return _error(
                403,
                f"This server is not {name!r}: ask it by its own name, or start it with "
                "--allow-host and this name.",
            )
        if site is not None and site != host and site not in self.settings.allowed:
            return _error(
                403,
                "Requests of other sites are refused. If this is the site of a proxy before the "
                "server, start the server with --allow-host and its name.",
            )
        length = headers.get("content-length", "")
        if length.isascii() and length.isdecimal() and int(length) > limit:
            return _too_large(limit)
        encoding = headers.get("content-encoding", "identity")
        if encoding != "identity":
            return _error(415, f"The body is compressed ({encoding}): send it as it is.")
        if path == self.settings.root_path != "":  # so that relative addresses go below it
            return RedirectResponse(f"{path.rpartition('/')[2]}/", 308)
        return self._without_token(scope, path, headers)

    def _without_token(self, scope: Scope, path: str, headers: Headers) -> Response | None:
        token = self.settings.token
        if token is None or path == "/health":
            return None
        query = dict(parse_qsl(scope.get("query_string", b"").decode("latin1")))
        if path == "/" and _same(query.pop("token", "").encode(), token):
            response = RedirectResponse(f"./?{urlencode(query)}" if query else "./", 303)
            response.set_cookie(
                COOKIE,
                quote(token, safe=""),
                path=f"{self.settings.root_path}/",
                secure=scope.get("scheme") == "https",
                httponly=True,
                samesite="strict",
            )
            return response
        kind, _, shown = headers.get("authorization", "").partition(" ")
        # Cookies of all ports of a host come here, and those of others may have any form.
        cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE)
        if (kind.lower() == "bearer" and _same(shown.encode("latin1"), token)) or (
            cookie is not None and _same(unquote_to_bytes(cookie), token)
        ):
            return None
        return _error(
            401, "A token is needed: open /?token=…, or send the header Authorization: Bearer …"
        )


async def _body(request: Request, limit: int) -> bytes:
    """Read the body, which may have more bytes than its header declares."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > limit:
            raise TooLarge
    return bytes(body)


def _too_large(limit: int) -> Response:
    return _error(413, f"The request has more than {limit:,} bytes: send it in several parts.")


def _error(status: int, detail: str) -> Response:
    return JSONResponse({"detail": detail}, status)


def _same(shown: bytes, token: str) -> bool:
    return hmac.compare_digest(shown, token.encode())
