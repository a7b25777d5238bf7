"""The app of a server: its pages and its HTTP interface."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol

import anyio
from fastapi import APIRouter, FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, Field

from spacy_psa import __version__
from spacy_psa.annotation.rows import json_line
from spacy_psa.errors import InputError
from spacy_psa.studio.server.analysis import Evidence
from spacy_psa.studio.server.batches import Batcher, QueueFull
from spacy_psa.studio.server.guard import Guard, Metrics, Settings
from spacy_psa.studio.server.models import ServedModel

STATIC = Path(__file__).parent / "static"
HALF_A_PAIR = "The request has half of a surrogate pair: send whole characters."
SHORT = 50_000
"""Bytes of a body that is read in the event loop, as another thread would take longer to begin."""
SURROGATE = re.compile("[\ud800-\udfff]")
LINES = ("application/x-ndjson", "application/jsonl", "application/jsonlines")
TEXTS = {
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["texts"],
                "properties": {"texts": {"type": "array", "items": {"type": "string"}}},
            }
        },
        "application/x-ndjson": {
            "schema": {"type": "string", "description": 'A line {"text": …} for each text.'}
        },
    }
}


class WithModel(Protocol):
    """Calls a function with the model of a name (None: the first), in the thread of that model.

    `in_time` is whether this must end within the time of a request.
    """

    def __call__(
        self, name: str | None, function: Callable[[ServedModel], Any], in_time: bool = True
    ) -> Awaitable[Any]: ...


class View(NamedTuple):
    """A further page of a server and the requests that it makes."""

    name: str
    """The text of the links to it."""
    path: str
    """Its address, such as `/annotate`; the page is in the file of this name."""
    router: Callable[[WithModel], APIRouter]
    """Makes the routes of its interface, below `/api` and `path`."""
    close: Callable[[], None] = lambda: None
    """Called when the server ends."""


class AnalyseRequest(BaseModel):
    """A text and what is known of it."""

    text: str
    model: str | None = Field(None, description="The name of the model; by default the first.")
    evidence: list[Evidence] = Field([], description="Spans that all answers agree with.")
    sentences: list[int] | None = Field(None, description="The sentences to answer for.")
    limit: int | None = Field(None, ge=1, description="Number of sentences to answer for.")
    k: int = Field(5, ge=1, le=50, description="Number of analyses of each sentence.")


class AttentionRequest(BaseModel):
    """A sentence of a text."""

    text: str
    sentence: int = Field(ge=0, description="Its number, from 0.")
    model: str | None = None


def create_app(
    models: Sequence[ServedModel], settings: Settings | None = None, views: Sequence[View] = ()
) -> Any:
    """Make the ASGI app of a server of some pipelines, at least one; the first is the default."""
    settings = settings or Settings()
    metrics = Metrics()
    served = {model.name: model for model in models}
    batchers = {
        name: Batcher(
            partial(_lines, model), settings.batch, settings.waiting, metrics.batches.observe
        )
        for name, model in served.items()
    }
    metrics.waiting.set_function(lambda: sum(batcher.waiting for batcher in batchers.values()))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        for batcher in batchers.values():
            batcher.close()
        for view in views:
            view.close()

    app = FastAPI(
        title="spacy-psa",
        version=__version__,
        docs_url=None,  # FastAPI's page loads its script from another server
        redoc_url=None,
        lifespan=lifespan,
    )

    def chosen(name: str | None) -> str:
        if name is not None and name not in served:
            raise HTTPException(404, f"There is no model {name!r}: use one of {', '.join(served)}.")
        return name or next(iter(served))

    async def limited(answer: Any) -> Any:
        try:
            with anyio.fail_after(settings.max_seconds):  # wait_for would begin a task
                return await answer
        except TimeoutError:
            raise HTTPException(
                408, f"This took more than {settings.max_seconds:g} seconds: send less text."
            ) from None

    def within(text: str) -> str:
        if len(text) > settings.max_chars:
            raise HTTPException(
                413, f"The text has more than {settings.max_chars:,} characters: split it."
            )
        return text

    async def annotated(name: str, texts: list[str]) -> list[bytes]:
        try:
            lines = await limited(batchers[name].annotate(texts))
        except QueueFull:
            raise HTTPException(
                429, "Too many texts wait: ask again later.", {"Retry-After": "5"}
            ) from None
        metrics.texts.inc(len(texts))
        metrics.characters.inc(sum(map(len, texts)))
        return list(lines)

    async def with_model(
        name: str | None, function: Callable[[ServedModel], Any], in_time: bool = True
    ) -> Any:
        model = served[chosen(name)]

        def call() -> Any:
            model.forget_words()
            return function(model)

        answer = batchers[model.name].call(call)
        return await (limited(answer) if in_time else answer)

    async def answered(name: str | None, function: Callable[[ServedModel], Any]) -> Response:
        """Answer with JSON, which is made in the thread of the model, as it may be long."""
        content = await with_model(name, lambda model: json_bytes(function(model)))
        return Response(content, media_type="application/json")

    for kind in (InputError, RequestValidationError, UnicodeEncodeError):
        app.add_exception_handler(kind, _refused)

    @app.post("/api/annotate", openapi_extra={"requestBody": TEXTS}, response_model=None)
    async def annotate(
        request: Request,
        model: Annotated[str | None, Query(description="The model; by default the first.")] = None,
    ) -> Response:
        """Annotate texts: entities and span groups with probabilities, tags and trees.

        Send `{"texts": […]}` and get `{"docs": […]}`; or send lines `{"text": …}` as
        application/x-ndjson and get a line for each, in the same order.
        """
        name = chosen(model)
        kind = request.headers.get("content-type", "")
        body = await request.body()
        if len(body) <= SHORT:
            texts, lines = read_texts(body, kind, settings)
        else:
            texts, lines = await asyncio.to_thread(read_texts, body, kind, settings)
        if not lines:
            docs = b",".join(await annotated(name, texts))
            return Response(b'{"docs":[' + docs + b"]}", media_type="application/json")
        first = await annotated(name, texts[: settings.batch])

        async def stream() -> AsyncIterator[bytes]:
            # A batch at a time: each write to a client that has left would be a line in the log.
            yield b"".join(first)
            for i in range(settings.batch, len(texts), settings.batch):
                yield b"".join(await annotated(name, texts[i : i + settings.batch]))

        return StreamingResponse(stream(), media_type="application/x-ndjson")

    @app.post("/api/analyse", response_model=None)
    async def analyse(asked: AnalyseRequest) -> Response:
        """Analyse a text, with n-best, entropies and probabilities, given what is known of it."""
        text = within(asked.text)

        return await answered(
            asked.model,
            lambda model: model.analyse(
                text, asked.evidence, asked.sentences, asked.k, asked.limit
            ),
        )

    @app.post("/api/attention", response_model=None)
    async def attention(asked: AttentionRequest) -> Response:
        """Read the attention weights and the gates over a sentence."""
        text = within(asked.text)
        return await answered(asked.model, lambda model: model.attention(text, asked.sentence))

    @app.get("/api/models")
    async def listed() -> dict[str, Any]:
        """List the models with their components and labels."""
        return {
            "models": [
                {"name": m.name, "components": m.components, "example": m.example}
                for m in served.values()
            ],
            "max_chars": settings.max_chars,
            "views": [{"name": view.name, "path": view.path} for view in views],
        }

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Check that the server answers."""
        return {"status": "ok", "version": __version__}

    @app.get("/metrics", response_model=None)
    async def counters() -> Response:
        """The counters of the server, in the text format of Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    def add_page(path: str, name: str) -> None:
        @app.get(path, include_in_schema=False)
        async def page() -> FileResponse:
            return FileResponse(STATIC / name)

    add_page("/", "index.html")
    add_page("/docs", "docs.html")
    for view in views:
        add_page(view.path, f"{view.path[1:]}.html")
        app.include_router(view.router(with_model))
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return Guard(app, settings, metrics)


async def _refused(request: Request, error: Exception) -> Response:
    detail = str(error)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body") or "The body"
        detail = f"{place}: {first['msg']}; correct it."
    elif isinstance(error, UnicodeEncodeError):
        detail = HALF_A_PAIR
    return JSONResponse({"detail": detail}, 422)


def json_bytes(value: Any) -> bytes:
    """Write plain data as JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _lines(model: ServedModel, texts: Sequence[str]) -> list[bytes]:
    return [json_line(row) for row in model.annotate(texts)]


def read_texts(body: bytes, content_type: str, settings: Settings) -> tuple[list[str], bool]:
    """Read the texts of a body in one of the forms of `TEXTS`, and whether they were lines.

    Raises:
        HTTPException: for a body of another form, and for too many or too long texts.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind in LINES:
        parts = [(i, line) for i, line in enumerate(body.split(b"\n"), 1) if line.strip()]
        _check_count(len(parts), settings)
        texts = [_of_line(line, i) for i, line in parts]
    elif kind == "application/json":
        texts = _of_object(_parsed(body, "The body"))
        _check_count(len(texts), settings)
    else:
        raise HTTPException(
            415, f"The type is {kind or 'missing'}: send application/json or application/x-ndjson."
        )
    for i, text in enumerate(texts):
        if len(text) > settings.max_chars:
            raise HTTPException(
                413, f"Text {i} has more than {settings.max_chars:,} characters: split it."
            )
        if SURROGATE.search(text):
            raise HTTPException(422, f"Text {i}: {HALF_A_PAIR}")
    return texts, kind in LINES


def _check_count(count: int, settings: Settings) -> None:
    if count > settings.max_texts:
        raise HTTPException(
            413, f"There are {count:,} texts, more than {settings.max_texts:,}: send fewer."
        )


def _of_object(body: Any) -> list[str]:
    texts = body.get("texts") if isinstance(body, dict) else None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise HTTPException(422, 'The body must be an object {"texts": ["…", …]}.')
    return texts


def _of_line(line: bytes, number: int) -> str:
    row = _parsed(line, f"Line {number}")
    text = row.get("text") if isinstance(row, dict) else None
    if not isinstance(text, str):
        raise HTTPException(422, f'Line {number} must be an object {{"text": "…"}}.')
    return text


def _parsed(part: bytes, place: str) -> Any:
    try:
        return json.loads(part)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"{place} is not JSON: {error}") from None
