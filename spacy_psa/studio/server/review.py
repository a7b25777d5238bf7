"""The view "Review": probable errors of a corpus, each accepted or kept by one key."""

import json
import os
import threading
from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, Field

from spacy_psa.analysis.corrections import Row, decisions_path, read_decisions, read_rows
from spacy_psa.corpora.atomic import unwritable_as_input_error
from spacy_psa.studio.server.app import View, WithModel


class Deciding(BaseModel):
    """A decision about a row."""

    number: int = Field(description="The number of the row, from 1.")
    accept: bool | None = Field(
        description="Accept the correction or keep the annotation; null: undo."
    )


class Review:
    """The rows of a file and the decisions about them, which are saved one by one.

    Args:
        path: the file that `spacy-psa find-errors` wrote.
    """

    def __init__(self, path: Path):
        self.rows = {row["number"]: row for row in read_rows(path)}
        spans = (s for row in self.rows.values() for s in (*row["annotated"], *row["proposed"]))
        self.labels = sorted({label for _, _, label in spans})
        self.decided = read_decisions(path)
        self.log = decisions_path(path)
        self._lock = threading.Lock()

    def state(self, number: int | None = None) -> dict[str, Any]:
        """Return a row, or the first that is not decided, with the numbers of decisions."""
        left = (number for number in self.rows if number not in self.decided)
        row: Row | None = self.rows.get(next(left, 0) if number is None else number)
        counts = {"total": len(self.rows), "done": len(self.decided)}
        accepted = sum(self.decided.values())
        return {"row": row, **counts, "accepted": accepted, "labels": self.labels}

    def decide(self, number: int, accept: bool | None) -> None:
        """Save a decision about a row; None undoes the last one."""
        with self._lock, unwritable_as_input_error(self.log):
            with self.log.open("ab+") as stream:
                stream.seek(0)
                stream.truncate(stream.read().rfind(b"\n") + 1)  # a full disk may cut a line
                stream.write(json.dumps({"number": number, "accept": accept}).encode() + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
            if accept is None:
                self.decided.pop(number, None)
            else:
                self.decided[number] = accept


def review_view(path: Path) -> View:
    """Make the view of a file of `spacy-psa find-errors`; errors are those of `Review`."""
    review = Review(path)

    def routes(_: WithModel) -> APIRouter:
        router = APIRouter()

        @router.get("/api/review")
        def first() -> dict[str, Any]:
            """Show the first probable error that is not decided; `row` is null at the end."""
            return review.state()

        @router.post("/api/review")
        def decide(asked: Deciding) -> dict[str, Any]:
            """Save a decision, and show the next row, or the same one if it was taken back."""
            if asked.number not in review.rows:
                raise HTTPException(404, f"There is no row {asked.number}.")
            review.decide(asked.number, asked.accept)
            return review.state(asked.number if asked.accept is None else None)

        return router

    return View("Review", "/review", routes)
