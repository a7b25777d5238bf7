"""The outermost layer of the app: who may ask, how much, and the counters of the requests."""

import hmac
import time
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
COOKIE = "spacy_psa_token"
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
    """Bytes of a request."""
    max_texts: int = 1000
    """Texts of a request."""
    max_chars: int = 100_000
    """Characters of a text."""
    max_seconds: float = 60.0
    """Seconds for reading a request, and again for answering it."""
    batch: int = 64
    """Texts that go through the model together."""
    waiting: int = 10_000
    """Texts that may wait for the model."""


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
    """Refuses requests of strangers and requests that are too large, before they reach the app.

    - A request under a name of the server that is not among `hosts` is refused, so that a page
      of another site cannot reach the server by a name of its own (DNS rebinding).
    - A request whose `Origin` is another site is refused.
    - If there is a token, a request needs it: as `Authorization: Bearer …`, or as `?token=…` in the
      address of the page, which moves to a cookie.
    - A body with more than `max_bytes` is refused.
    """

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics):
        self.app = app
        self.settings = settings
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 500

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refusal(scope)
        try:
            if refusal is not None:
                await refusal(scope, receive, answer)
            else:
                await self.app(scope, self._limited(receive), answer)
        finally:
            # Only known paths: a stranger must not fill the memory with names.
            path = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(path=path, status=str(status)).inc()
            self.metrics.seconds.labels(path=path).observe(time.perf_counter() - begin)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        try:
            asked = urlsplit(f"//{headers.get('host', '')}").hostname
            site = None if origin is None else urlsplit(origin).netloc
        except ValueError:  # [ without ]
            return _error(403, "Host or Origin is not an address.")
        if self.settings.hosts is not None and asked not in self.settings.hosts:
            return _error(403, f"This server is not {asked!r}: ask it by its own name.")
        if site is not None and site != headers.get("host"):
            return _error(403, "Requests of other sites are refused.")
        length = headers.get("content-length", "")
        if length.isascii() and length.isdecimal() and int(length) > self.settings.max_bytes:
            return too_large(self.settings)
        return self._without_token(scope, headers)

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        token = self.settings.token
        if token is None or scope["path"] == "/health":
            return None
        query = dict(parse_qsl(scope.get("query_string", b"").decode("latin1")))
        if scope["path"] == "/" and _same(query.pop("token", ""), token):
            response = RedirectResponse("/" + (f"?{urlencode(query)}" if query else ""), 303)
            response.set_cookie(COOKIE, token, httponly=True, samesite="strict")
            return response
        kind, _, shown = headers.get("authorization", "").partition(" ")
        # Cookies of all ports of a host come here, and those of others may have any form.
        cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE)
        if (kind.lower() == "bearer" and _same(shown, token)) or (
            cookie is not None and _same(cookie, token)
        ):
            return None
        return _error(
            401, "A token is needed: open /?token=…, or send the header Authorization: Bearer …"
        )

    def _limited(self, receive: Receive) -> Receive:
        """Count the bytes of the body, which may be more than its header declares."""
        size = 0

        async def limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self.settings.max_bytes:
                raise TooLarge
            return message

        return limited


def too_large(settings: Settings) -> JSONResponse:
    """The answer to a request with too many bytes."""
    return _error(
        413, f"The request has more than {settings.max_bytes:,} bytes: send it in several parts."
    )


def _error(status: int, detail: str) -> JSONResponse:
    return JSONResponse({"detail": detail}, status)


def _same(shown: str, token: str) -> bool:
    return hmac.compare_digest(shown.encode(), token.encode())
