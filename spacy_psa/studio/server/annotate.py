"""The view "Annotate": the requests of its page, over HTTP, and its list of texts."""

import asyncio
from collections.abc import Callable
from enum import Enum
from functools import partial
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from spacy_psa.studio.active_learning.decisions import Decision, Verdict, agreement
from spacy_psa.studio.active_learning.store import Note
from spacy_psa.studio.server.annotating import Annotating, Row
from spacy_psa.studio.server.app import View, WithModel
from spacy_psa.studio.server.guidelines import guidelines_html
from spacy_psa.studio.server.models import ServedModel

PAGE = 50
"""Texts of a page."""
SHOWN = 120
"""Characters of a text in the list."""


class TextFilter(str, Enum):
    """The texts that the list shows."""

    all = "all"
    undecided = "undecided"
    """Those that the annotator has not decided completely."""
    done = "done"
    skipped = "skipped"
    flagged = "flagged"
    """Those that somebody has flagged or commented."""
    disagreed = "disagreed"
    """Those where annotators have decided differently."""


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


class TextList:
    """The texts of a work in the order of the file. The methods may be called in any thread."""

    def __init__(self, work: Annotating):
        self._work = work
        self._texts = work.store.all_texts()
        self._disagreed: tuple[tuple[int, int], frozenset[int]] | None = None

    def page(self, annotator: str, search: str, which: TextFilter, first: int) -> Row:
        """List some texts, from the one with the rank `first` on, and count all that match.

        Args:
            annotator: who asks.
            search: a part of the text, in upper or lower case; "" for all.
            which: the filter.
            first: how many texts to leave out; if fewer match, those before the last page.
        """
        done = self._work.done(annotator)
        skipped = self._work.store.skipped(annotator, self._work.component.name).keys() - done
        notes = self._work.store.notes()
        chosen = self._chosen(which, done, skipped, notes)
        part = search.strip().casefold()
        matching = [n for n in chosen if part in self._texts[n].casefold()] if part else chosen
        first = min(first, max(0, len(matching) - 1) // PAGE * PAGE)
        rows = [
            {
                "text": number,
                "words": self._texts[number][:SHOWN],
                "state": "done" if number in done else "skipped" if number in skipped else "",
                "flagged": any(note.flag for note in notes.get(number, {}).values()),
                "comments": sum(bool(note.comment) for note in notes.get(number, {}).values()),
            }
            for number in matching[first : first + PAGE]
        ]
        return {"total": len(matching), "first": first, "size": PAGE, "rows": rows}

    def _chosen(
        self,
        which: TextFilter,
        done: set[int],
        skipped: set[int],
        notes: dict[int, dict[str, Note]],
    ) -> list[int]:
        if which is TextFilter.undecided:
            return [number for number in self._texts if number not in done]
        sets = {TextFilter.done: done, TextFilter.skipped: skipped, TextFilter.flagged: {*notes}}
        if which is TextFilter.disagreed:
            return sorted(self._where_annotators_disagree())
        return sorted(sets[which]) if which in sets else [*self._texts]

    def _where_annotators_disagree(self) -> frozenset[int]:
        version = self._work.store.changes()
        if self._disagreed is None or self._disagreed[0] != version:
            shared = self._work.store.all_decided(self._work.component.name, shared=True)
            numbers = (number for number, own in shared.items() if agreement(own.values())[1])
            self._disagreed = version, frozenset(numbers)
        return self._disagreed[1]
