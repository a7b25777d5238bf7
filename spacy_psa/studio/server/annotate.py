"""The view "Annotate": suggestions of a model, and what people decide about them."""

import asyncio
import tempfile
from collections import OrderedDict
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse, Response
from pydantic import BaseModel, Field
from spacy.language import Language

from spacy_psa.pipeline.chain.chunker import CRFChunker
from spacy_psa.pipeline.chain.span_labeler import SpanLabeler
from spacy_psa.sentences import sentence_bounds
from spacy_psa.studio.active_learning.decisions import Decided, Decision, Verdict
from spacy_psa.studio.active_learning.export import export
from spacy_psa.studio.active_learning.export_format import ENDINGS, ExportFormat
from spacy_psa.studio.active_learning.queue import TextQueue
from spacy_psa.studio.active_learning.store import AnnotationStore, Component, StoredText
from spacy_psa.studio.active_learning.usefulness import usefulness
from spacy_psa.studio.server.analysis import chain_rows
from spacy_psa.studio.server.models import ServedModel
from spacy_psa.studio.server.teacher import Teacher
from spacy_psa.studio.server.views import View, WithModel

STATIC = Path(__file__).parent / "static"
CHUNK = 4  # texts whose usefulness is computed between two requests
Row = dict[str, Any]


class AskedDecision(BaseModel):
    """A decision over tokens of a text."""

    verdict: Verdict
    start: int = Field(ge=0, description="The first token.")
    end: int = Field(ge=1, description="The token after the last one.")
    label: str = ""


class Asker(BaseModel):
    """Who asks."""

    annotator: str = Field(min_length=1, max_length=100)


class AskedText(Asker):
    """A text; without number, the next one of the queue."""

    text: int | None = None


class Deciding(Asker):
    """Decisions about a text, which are saved and undone together."""

    text: int
    decisions: list[AskedDecision] = Field(min_length=1)


def component_of(pipe: SpanLabeler) -> Component:
    """Describe a component for a store and its exports."""
    key = pipe.spans_key if isinstance(pipe, CRFChunker) else None
    return Component(pipe.name, tuple(pipe.labels), key)


class Annotating:
    """The work of annotators on a file.

    Args:
        store: the open file, which knows its component.
        queue: the order of its texts.
        teacher: trains the model.
        annotator: the name that the page suggests.
    """

    def __init__(self, store: AnnotationStore, queue: TextQueue, teacher: Teacher, annotator: str):
        component = store.component
        assert component is not None
        self.store = store
        self.queue = queue
        self.teacher = teacher
        self.annotator = annotator
        self.component = component
        self._lengths = store.lengths()
        self._done: dict[str, set[int]] = {}
        for text, own in store.all_decided(component.name).items():
            for name, decided in own.items():
                self._note(text, name, decided)
        self._open: OrderedDict[str, int] = OrderedDict()
        self._refreshing: asyncio.Task[None] | None = None

    # Answers

    def done(self, annotator: str) -> set[int]:
        """The texts that an annotator has decided completely."""
        return self._done.get(annotator, set())

    def annotators(self) -> list[str]:
        """Name all who have decided something."""
        return sorted(name for name in self._done if self.store.count(name, self.component.name))

    def counts(self, annotator: str) -> Row:
        """Count what an annotator has done."""
        skipped = self.store.skipped(annotator, self.component.name).keys()
        return {
            "texts": len(self._lengths),
            "done": len(self.done(annotator)),
            "decisions": self.store.count(annotator, self.component.name),
            "skipped": len(skipped - self.done(annotator)),
        }

    def next(self, annotator: str) -> int | None:
        """Choose the next text of an annotator, not one that another has open."""
        others = {text for name, text in self._open.items() if name != annotator}
        by_others = set().union(*(d for name, d in self._done.items() if name != annotator))
        skipped = self.store.skipped(annotator, self.component.name)
        found = self.queue.next(self.done(annotator), skipped, others | by_others)
        self._open.pop(annotator, None)
        if found is not None:
            self._open[annotator] = found
        while len(self._open) > 1000:
            self._open.popitem(last=False)
        return found

    def shown(self, text: StoredText, annotator: str, decided: Decided, model: ServedModel) -> Row:
        """Analyse a text under what is decided, in the thread of the model.

        Raises:
            InputError: if no analysis agrees with all decisions.
        """
        name = self.component.name
        with model.scored(text.tokens) as (doc, scores):
            pipe = model.nlp.get_pipe(name)
            given = scores[name].given(**decided.evidence) if decided != Decided() else scores[name]
            if self.queue.order.value != "random":
                self.queue.put(text.number, usefulness(given, self.queue.order))
            bounds = sentence_bounds(doc)
            rows = chain_rows(pipe, scores[name], given, range(len(bounds)), 1)  # type: ignore[arg-type]
            return {
                "text": text.number,
                "sentences": [
                    {
                        "number": i,
                        "start": start,
                        "tokens": [[token.text, token.whitespace_] for token in doc[start:end]],
                        "done": decided.covers(end, start),
                        **rows[i],
                    }
                    for i, (start, end) in enumerate(bounds)
                ],
                "accepted": decided.accepted,
                "rejected": decided.rejected,
                "outside": sorted(decided.outside),
                "done": decided.covers(len(doc)),
            }

    def _note(self, text: int, annotator: str, decided: Decided) -> None:
        done = self._done.setdefault(annotator, set())
        (done.add if decided.covers(self._lengths[text]) else done.discard)(text)

    async def show(self, with_model: WithModel, number: int, annotator: str) -> Row:
        """Answer with a text as it stands."""
        text = self.store.text(number)
        decided = self.store.decided(number, annotator, self.component.name)
        found = await with_model(None, partial(self.shown, text, annotator, decided))
        return {**found, "counts": self.counts(annotator)}

    async def decide(self, with_model: WithModel, asked: Deciding) -> Row:
        """Save decisions, and answer with what follows from them.

        Raises:
            InputError: if they contradict each other or those before; then none is saved.
        """
        name = self.component.name
        text = self.store.text(asked.text)
        decisions = [Decision(**one.model_dump()) for one in asked.decisions]
        decided = self.store.decided(asked.text, asked.annotator, name)
        for decision in decisions:
            decision.check(len(text.tokens.words))
            decided = decided.then(decision)
        found = await with_model(None, partial(self.shown, text, asked.annotator, decided))
        await asyncio.to_thread(self.store.decide, asked.text, asked.annotator, name, decisions)
        self._note(
            asked.text, asked.annotator, self.store.decided(asked.text, asked.annotator, name)
        )
        return {**found, "counts": self.counts(asked.annotator)}

    async def undo(self, with_model: WithModel, annotator: str) -> Row:
        """Take the last decisions back, and answer with their text."""
        name = self.component.name
        number = await asyncio.to_thread(self.store.undo, annotator, name)
        if number is None:
            raise HTTPException(409, "There is nothing to undo.")
        self._note(number, annotator, self.store.decided(number, annotator, name))
        self._open[annotator] = number
        return await self.show(with_model, number, annotator)

    # The queue

    async def refresh(self, with_model: WithModel) -> None:
        """See to it that the queue is computed, some texts at a time, between the requests."""
        if not self.queue.stale(1, self._done_by_all()):
            return
        if self._refreshing is None or self._refreshing.done():
            await self._compute(with_model)
            self._refreshing = asyncio.get_running_loop().create_task(self._rest(with_model))

    async def _rest(self, with_model: WithModel) -> None:
        while await self._compute(with_model):
            await asyncio.sleep(0)

    async def _compute(self, with_model: WithModel) -> bool:
        numbers = self.queue.stale(CHUNK, self._done_by_all())
        texts = [
            (text, self.store.decided(text.number, self.annotator, self.component.name))
            for text in self.store.texts(numbers)
        ]
        if texts:
            await with_model(None, partial(self._put, texts))
        return bool(texts)

    def _put(self, texts: list[tuple[StoredText, Decided]], model: ServedModel) -> None:
        for text, decided in texts:
            with model.scored(text.tokens, keep=False) as (_, scores):
                found = scores[self.component.name]
                if decided != Decided():
                    found = found.given(**decided.evidence)
                self.queue.put(text.number, usefulness(found, self.queue.order))

    def _done_by_all(self) -> set[int]:
        found = list(self._done.values())
        return set.intersection(*found) if found else set()

    async def replace(self, with_model: WithModel, nlp: Language) -> None:
        """Put another pipeline in the place of the one that is served, and renew the queue."""
        pipe = nlp.get_pipe(self.component.name)
        self.store.use(component_of(pipe))  # type: ignore[arg-type]
        await with_model(None, lambda model: model.replace(nlp))
        self.queue.renew()

    def downloaded(self, form: ExportFormat, annotator: str | None) -> tuple[bytes, str]:
        """Export to the bytes of a file.

        Returns:
            The bytes, and the name of the file.
        """
        name = f"{self.store.path.stem}{ENDINGS[form]}"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            export(self.store, path, form, annotator)
            return path.read_bytes(), name


def annotate_view(work: Annotating) -> View:
    """Make the view.

    Args:
        work: the file and what belongs to it.
    """

    def routes(with_model: WithModel) -> APIRouter:
        router = APIRouter()

        @router.get("/annotate", include_in_schema=False)
        async def page() -> FileResponse:
            return FileResponse(STATIC / "annotate.html")

        @router.get("/api/annotation")
        async def about(annotator: str | None = None) -> Row:
            """Describe the work: the labels, the order, counts of an annotator."""
            name = annotator or work.annotator
            return {
                "component": work.component.name,
                "labels": work.component.labels,
                "order": work.queue.order.value,
                "annotator": name,
                "annotators": work.annotators(),
                "counts": work.counts(name),
                "teach": work.teacher.status,
            }

        @router.post("/api/annotation/text")
        async def text(asked: AskedText) -> Row:
            """Show a text with suggestions; without number, the next one."""
            await work.refresh(with_model)
            number = work.next(asked.annotator) if asked.text is None else asked.text
            if number is None:
                return {"text": None, "counts": work.counts(asked.annotator)}
            return await work.show(with_model, number, asked.annotator)

        @router.post("/api/annotation/decide")
        async def decide(asked: Deciding) -> Row:
            """Save decisions about a text, and show what follows from them."""
            return await work.decide(with_model, asked)

        @router.post("/api/annotation/undo")
        async def undo(asked: Asker) -> Row:
            """Take the last decisions of an annotator back, and show their text."""
            return await work.undo(with_model, asked.annotator)

        @router.get("/api/annotation/export", response_model=None)
        async def download(form: ExportFormat, annotator: str | None = None) -> Response:
            """Download what is decided; without annotator, what all agree on."""
            if form is ExportFormat.auto:
                raise HTTPException(422, "Give a format.")
            content, name = await asyncio.to_thread(work.downloaded, form, annotator)
            held = {"Content-Disposition": f'attachment; filename="{_ascii(name)}"'}
            return Response(content, media_type="application/octet-stream", headers=held)

        @router.post("/api/annotation/teach")
        async def teach() -> Row:
            """Train the model on what is decided, in the background."""
            work.teacher.start(partial(work.replace, with_model))
            return work.teacher.status

        @router.get("/api/annotation/teach")
        async def taught() -> Row:
            """Say how the training stands."""
            return work.teacher.status

        @router.post("/api/annotation/teach/stop")
        async def stop() -> Row:
            """Stop the training; nothing changes."""
            work.teacher.stop()
            return work.teacher.status

        return router

    return View("Annotate", "/annotate", routes)


def _ascii(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in ".-_") else "_" for c in name)
