"""The view "Compare": models compared with gold annotation, computed in the background."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse

from spacy_psa.studio.comparison.comparison import Comparison
from spacy_psa.studio.server.app import STATIC, View, WithModel
from spacy_psa.studio.server.compare_file import comparison_page
from spacy_psa.studio.server.models import ServedModel

Row = dict[str, Any]


class BackgroundComparison:
    """Does the steps of a comparison one by one, each in the thread of its model.

    Between two steps a model answers other requests.
    """

    def __init__(self, comparison: Comparison, with_model: WithModel):
        self._comparison = comparison
        self._with_model = with_model
        self._task: asyncio.Task[Row] | None = None
        self._done = 0

    def state(self) -> Row:
        """Return the report, or the number of steps that are done; the first call begins.

        Raises:
            InputError: or another error, if a step failed.
        """
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        if self._task.done():
            return {"report": self._task.result()}
        return {"done": self._done, "total": len(self._comparison)}

    async def _run(self) -> Row:
        for name, step in self._comparison.steps():
            await self._with_model(name, partial(_do, step))
            self._done += 1
        return await asyncio.to_thread(self._comparison.report)


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

        @routes.get("/compare", include_in_schema=False)
        async def page() -> FileResponse:
            return FileResponse(STATIC / "compare.html")

        @routes.post("/api/compare", response_model=None)
        async def compare() -> JSONResponse:
            """Compare the models with gold annotation: begin, or ask for the progress.

            The answer is `{"done": …, "total": …}`, and `{"report": …}` at the end.
            """
            return JSONResponse(background.state())

        @routes.get("/compare/report.html", include_in_schema=False)
        async def report() -> HTMLResponse:
            state = background.state()
            if "report" not in state:
                raise HTTPException(409, "The comparison is not ready: ask again later.")
            # To be saved: in this place the policy of the server would refuse its script.
            kept = {"Content-Disposition": 'attachment; filename="comparison.html"'}
            return HTMLResponse(comparison_page(state["report"]), headers=kept)

        return routes

    return View("Compare", "/compare", router)
