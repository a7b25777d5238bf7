"""The view "Project": Teach, Export, and how far annotators agree, over HTTP."""

import asyncio
import re
from functools import partial

from fastapi import APIRouter, HTTPException
from fastapi.responses import Response

from spacy_psa.studio.active_learning.export_format import ExportFormat
from spacy_psa.studio.active_learning.pairs import compare_annotators
from spacy_psa.studio.server.annotating import Annotating, Row
from spacy_psa.studio.server.app import View, WithModel


def project_view(work: Annotating) -> View:
    """Make the view."""

    def routes(with_model: WithModel) -> APIRouter:
        router = APIRouter()

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

        @router.get("/api/annotation/agreement")
        async def agreement() -> list[Row]:
            """Compare each two annotators on the words that both have decided."""

            def pairs() -> list[Row]:
                shared = work.store.all_decided(work.component.name, shared=True)
                return [pair._asdict() for pair in compare_annotators(shared)]

            return await asyncio.to_thread(pairs)

        return router

    return View("Project", "/project", routes, work.teacher.kill)
