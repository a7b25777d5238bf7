"""The view "Compare": models compared with gold annotation, computed in the background."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from fastapi import APIRouter, HTTPException
from fastapi.responses import HTMLResponse, JSONResponse, Response

from spacy_psa.studio.comparison.comparison import Comparison
from spacy_psa.studio.server.app import View, WithModel, json_bytes
from spacy_psa.studio.server.compare_file import comparison_page
from spacy_psa.studio.server.models import ServedModel


class BackgroundComparison:
    """Does the steps of a comparison one by one, each in the thread of its model.

    Between two steps a model answers other requests.
    """

    def __init__(self, comparison: Comparison, with_model: WithModel):
        self._comparison = comparison
        self._with_model = with_model
        self._task: asyncio.Task[tuple[bytes, bytes]] | None = None
        self._done = 0

    def finished(self) -> tuple[bytes, bytes] | None:
        """Return the report as JSON and as a page, None before the end; the first call begins.

        Raises:
            InputError: or another error, if a step failed.
        """
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        return self._task.result() if self._task.done() else None

    @property
    def progress(self) -> dict[str, int]:
        """How many of the steps are done."""
        return {"done": self._done, "total": len(self._comparison)}

    async def _run(self) -> tuple[bytes, bytes]:
        for name, step in self._comparison.steps():
            await self._with_model(name, partial(_do, step), in_time=False)
            self._done += 1
        return await asyncio.to_thread(self._report)

    def _report(self) -> tuple[bytes, bytes]:
        report = self._comparison.report()
        return json_bytes({"report": report}), comparison_page(report).encode()


def _do(step: Callable[[], None], model: ServedModel) -> None:
    step()


def compare_view(
    models: Sequence[ServedModel],
    gold: Path,
    component: str | None = None,
    train: Path | None = None,
) -> View:
    """Make the view of one or two models; arguments and errors are those of `Comparison`."""
    comparison = Comparison({model.name: model.nlp for model in models}, gold, component, train)

    def router(with_model: WithModel) -> APIRouter:
        background = BackgroundComparison(comparison, with_model)
        routes = APIRouter()

        @routes.post("/api/compare", response_model=None)
        async def compare() -> Response:
            """Compare the models with gold annotation: begin, or ask for the progress.

            The answer is `{"done": …, "total": …}`, and `{"report": …}` at the end.
            """
            if (ready := background.finished()) is None:
                return JSONResponse(background.progress)
            return Response(ready[0], media_type="application/json")

        @routes.get("/compare/report.html", include_in_schema=False)
        async def report() -> HTMLResponse:
            if (ready := background.finished()) is None:
                raise HTTPException(409, "The comparison is not ready: ask again later.")
            # To be saved: in this place the policy of the server would refuse its script.
            kept = {"Content-Disposition": 'attachment; filename="comparison.html"'}
            return HTMLResponse(ready[1], headers=kept)

        return routes

    return View("Compare", "/compare", router)
