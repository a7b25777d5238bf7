"""The view "Annotate": the requests of its page, over HTTP."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from spacy_psa.studio.active_learning.decisions import Decision, Verdict
from spacy_psa.studio.active_learning.store import Note
from spacy_psa.studio.server.annotating import Annotating, Row
from spacy_psa.studio.server.app import View, WithModel
from spacy_psa.studio.server.guidelines import guidelines_html
from spacy_psa.studio.server.models import ServedModel
from spacy_psa.studio.server.text_list import TextFilter, TextList


class AskedDecision(BaseModel):
    """A decision over tokens of a text."""

    verdict: Verdict
    start: int = Field(ge=0, description="The first token.")
    end: int = Field(ge=1, description="The token after the last one.")
    label: str = ""


class Asker(BaseModel):
    """The annotator who asks."""

    annotator: str = Field(min_length=1, max_length=100)


class Acting(Asker):
    """An action of an annotator."""

    key: str = Field(
        "", max_length=100, description="Of this action only: if it is sent again, it is done once."
    )


class AskedText(Asker):
    """A text; without number, the next one of the queue."""

    text: int | None = None


class AskedLabel(BaseModel):
    """A label to add."""

    label: str = Field(min_length=1, max_length=100)


class AskedList(Asker):
    """A page of the list of texts."""

    search: str = ""
    filter: TextFilter = TextFilter.all
    first: int = Field(0, ge=0, description="How many texts to leave out.")


class Noting(Asker):
    """A note about a text, which replaces that before."""

    text: int
    flag: bool
    comment: str = Field(max_length=5000)


class Deciding(Acting):
    """Decisions about a text, which are saved and undone together."""

    text: int
    decisions: list[AskedDecision] = Field(min_length=1)
    next: bool = Field(
        False, description="Answer with the next text if this one is decided completely or skipped."
    )


def annotate_view(work: Annotating, guidelines: Path | None = None) -> View:
    """Make the view, which shows a file of guidelines next to the texts."""
    texts = TextList(work)

    def routes(with_model: WithModel) -> APIRouter:
        router = APIRouter()

        async def answered(asked: Asker, make: Callable[[ServedModel], Row]) -> Response:
            return JSONResponse(await work.answer(with_model, asked.annotator, make))

        @router.get("/api/annotation")
        async def about(annotator: str | None = None) -> Row:
            """Describe the work: the labels, the order, counts of an annotator."""
            return await asyncio.to_thread(work.about, annotator or work.annotator)

        @router.post("/api/annotation/text", response_model=None)
        async def text(asked: AskedText) -> Response:
            """Show a text with suggestions; without number, the next one."""
            return await answered(asked, partial(work.text, asked.text, asked.annotator))

        @router.post("/api/annotation/decide", response_model=None)
        async def decide(asked: Deciding) -> Response:
            """Save decisions about a text, and show the text as it is decided then."""
            made = [Decision(**each.model_dump()) for each in asked.decisions]
            return await answered(
                asked,
                partial(work.decide, asked.text, asked.annotator, made, asked.key, asked.next),
            )

        @router.post("/api/annotation/undo", response_model=None)
        async def undo(asked: Acting) -> Response:
            """Undo the last decisions of an annotator, and show their text."""
            return await answered(asked, partial(work.undo, asked.annotator, asked.key))

        @router.post("/api/annotation/texts")
        async def listed(asked: AskedList) -> Row:
            """List the texts that match a search and a filter, a page at a time."""
            return await asyncio.to_thread(
                texts.page, asked.annotator, asked.search, asked.filter, asked.first
            )

        @router.post("/api/annotation/note")
        async def note(asked: Noting) -> Row:
            """Save a flag and a comment about a text, and answer with all notes about it."""
            own = Note(asked.flag, asked.comment.strip())
            return await asyncio.to_thread(work.note, asked.text, asked.annotator, own)

        @router.get("/api/annotation/guidelines")
        async def read() -> Row:
            """Read the guidelines, as HTML; empty if there are none."""
            html = await asyncio.to_thread(guidelines_html, guidelines) if guidelines else ""
            return {"html": html}

        @router.post("/api/annotation/labels")
        async def label(asked: AskedLabel) -> Row:
            """Add a label, and describe the work."""
            await work.add_label(with_model, asked.label)
            return await asyncio.to_thread(work.about, work.annotator)

        return router

    return View("Annotate", "/annotate", routes)
