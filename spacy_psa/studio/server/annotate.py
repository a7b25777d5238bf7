"""The view "Annotate": what its page asks of the work, over HTTP."""

import asyncio
import re
from functools import partial

from fastapi import APIRouter, HTTPException
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from spacy_psa.studio.active_learning.decisions import Decision, Verdict
from spacy_psa.studio.active_learning.export_format import ExportFormat
from spacy_psa.studio.server.annotating import Annotating, Row
from spacy_psa.studio.server.app import View, WithModel


class AskedDecision(BaseModel):
    """A decision over tokens of a text."""

    verdict: Verdict
    start: int = Field(ge=0, description="The first token.")
    end: int = Field(ge=1, description="The token after the last one.")
    label: str = ""


class Asker(BaseModel):
    """The annotator who asks."""

    annotator: str = Field(min_length=1, max_length=100)


class AskedText(Asker):
    """A text; without number, the next one of the queue."""

    text: int | None = None


class AskedLabel(BaseModel):
    """A label to add."""

    label: str = Field(min_length=1, max_length=100)


class Deciding(Asker):
    """Decisions about a text, which are saved and undone together."""

    text: int
    decisions: list[AskedDecision] = Field(min_length=1)


def annotate_view(work: Annotating) -> View:
    """Make the view."""

    def routes(with_model: WithModel) -> APIRouter:
        router = APIRouter()

        @router.get("/api/annotation")
        async def about(annotator: str | None = None) -> Row:
            """Describe the work: the labels, the order, counts of an annotator."""
            return work.about(annotator or work.annotator)

        @router.post("/api/annotation/text", response_model=None)
        async def text(asked: AskedText) -> Response:
            """Show a text with suggestions; without number, the next one."""
            await work.refresh(with_model)
            number = work.next(asked.annotator) if asked.text is None else asked.text
            if number is None:
                return JSONResponse({"text": None, "counts": work.counts(asked.annotator)})
            return JSONResponse(await work.show(with_model, number, asked.annotator))

        @router.post("/api/annotation/decide", response_model=None)
        async def decide(asked: Deciding) -> Response:
            """Save decisions about a text, and show the text as it is decided then."""
            made = [Decision(**each.model_dump()) for each in asked.decisions]
            return JSONResponse(await work.show(with_model, asked.text, asked.annotator, made))

        @router.post("/api/annotation/undo", response_model=None)
        async def undo(asked: Asker) -> Response:
            """Take the last decisions of an annotator back, and show their text."""
            return JSONResponse(await work.undo(with_model, asked.annotator))

        @router.post("/api/annotation/labels")
        async def label(asked: AskedLabel) -> Row:
            """Add a label, and describe the work."""
            await work.add_label(with_model, asked.label)
            return work.about(work.annotator)

        @router.get("/api/annotation/export", response_model=None)
        async def download(form: ExportFormat, annotator: str | None = None) -> Response:
            """Download the decisions of an annotator; without one, those on which all agree."""
            if form is ExportFormat.auto:
                raise HTTPException(422, "Choose a format.")
            content, name = await asyncio.to_thread(work.downloaded, form, annotator)
            safe = re.sub(r"[^A-Za-z0-9._-]", "_", name)
            held = {"Content-Disposition": f'attachment; filename="{safe}"'}
            return Response(content, media_type="application/octet-stream", headers=held)

        @router.post("/api/annotation/teach")
        async def teach() -> Row:
            """Train the model on all decisions, in the background."""
            work.teacher.start(partial(work.replace, with_model))
            return work.teacher.status

        @router.get("/api/annotation/teach")
        async def taught() -> Row:
            """Report the state of the training."""
            return work.teacher.status

        @router.post("/api/annotation/teach/stop")
        async def stop() -> Row:
            """Stop the training; nothing changes."""
            work.teacher.stop()
            return work.teacher.status

        return router

    return View("Annotate", "/annotate", routes, work.teacher.kill)
