"""The view "Annotate": suggestions of a model, and the decisions of people about them."""

import asyncio
import getpass
import re
import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from spacy.language import Language

from spacy_psa.annotation.input import MalformedLine, Reading, open_source
from spacy_psa.errors import InputError
from spacy_psa.loading import confident_pipe, load_pipeline
from spacy_psa.pipeline.chain.spans import SpanLabeler
from spacy_psa.sentences import sentence_bounds
from spacy_psa.studio.active_learning.beginning import (
    Beginning,
    check_label,
    without_knowledge,
)
from spacy_psa.studio.active_learning.decisions import Decided, Decision, Verdict
from spacy_psa.studio.active_learning.export import export
from spacy_psa.studio.active_learning.export_format import ENDINGS, ExportFormat
from spacy_psa.studio.active_learning.queue import Order, TextQueue, usefulness
from spacy_psa.studio.active_learning.store import (
    AnnotationStore,
    Component,
    StoredText,
    open_store,
)
from spacy_psa.studio.active_learning.teach_process import Lesson
from spacy_psa.studio.active_learning.tokens import Tokens, split_into_sentences
from spacy_psa.studio.server.analysis import rows_of
from spacy_psa.studio.server.app import View, WithModel
from spacy_psa.studio.server.models import ServedModel, shown_tokens
from spacy_psa.studio.server.teacher import Teacher

CHUNK = 4  # texts whose usefulness is computed between two requests
Row = dict[str, Any]


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


class Annotating:
    """The work of annotators on a file, which knows its component.

    The page suggests the name `annotator`.
    """

    def __init__(
        self,
        store: AnnotationStore,
        queue: TextQueue,
        teacher: Teacher,
        annotator: str,
        trained: bool = True,
    ):
        component = store.component
        assert component is not None
        self.store = store
        self.queue = queue
        self.teacher = teacher
        self.annotator = annotator
        self.trained = trained
        """Whether the model knows anything; else its suggestions are not shown."""
        self.component = component
        self._lengths = store.lengths()
        self._done: dict[str, set[int]] = {}
        for text, own in store.all_decided(component.name).items():
            for name, decided in own.items():
                self._note(text, name, decided.covers(self._lengths[text]))
        self._open: OrderedDict[str, int] = OrderedDict()
        self._refreshing: asyncio.Task[None] | None = None

    # Answers

    def done(self, annotator: str) -> set[int]:
        """The texts that an annotator has decided completely."""
        return self._done.get(annotator, set())

    def about(self, annotator: str) -> Row:
        """Describe the work, with the counts of an annotator."""
        name = self.component.name
        return {
            "component": name,
            "labels": self.component.labels,
            "order": self.queue.order.value,
            "trained": self.trained,
            "annotator": annotator,
            "annotators": sorted(own for own in self._done if self.store.count(own, name)),
            "counts": self.counts(annotator),
            "teach": self.teacher.status,
        }

    def counts(self, annotator: str) -> Row:
        """Count the texts and decisions of an annotator."""
        skipped = self.store.skipped(annotator, self.component.name).keys()
        return {
            "texts": len(self._lengths),
            "done": len(self.done(annotator)),
            "decisions": self.store.count(annotator, self.component.name),
            "skipped": len(skipped - self.done(annotator)),
        }

    def next(self, annotator: str) -> int | None:
        """Choose the next text of an annotator, not one that another has open."""
        taken = {text for name, text in self._open.items() if name != annotator}
        others = [done for name, done in self._done.items() if name != annotator]
        number = self.queue.next(
            self.done(annotator),
            self.store.skipped(annotator, self.component.name),
            avoided=lambda text: text in taken or any(text in done for done in others),
        )
        self._open.pop(annotator, None)
        if number is not None:
            self._open[annotator] = number
        while len(self._open) > 1000:
            self._open.popitem(last=False)
        return number

    def shown(self, text: StoredText, decided: Decided, model: ServedModel) -> Row:
        """Analyse a text under everything that is decided, in the thread of the model.

        Raises:
            InputError: if no analysis agrees with all decisions.
        """
        name = self.component.name
        with model.scored(text.tokens) as (doc, scores):
            given = scores[name].given(**decided.evidence) if decided != Decided() else scores[name]
            if self.trained and self.queue.order is not Order.random:
                self.queue.put(text.number, usefulness(given, self.queue.order))
            bounds = sentence_bounds(doc)
            rows = rows_of(scores[name], given, bounds, range(len(bounds)), 1)
            known = decided.tokens
            sentences = [
                {
                    **shown_tokens(doc, i, (start, end)),
                    "done": known.issuperset(range(start, end)),
                    **rows[i],
                }
                for i, (start, end) in enumerate(bounds)
            ]
            if not self.trained:
                _hide_suggestions(sentences, decided)
            return {
                "text": text.number,
                "sentences": sentences,
                "accepted": decided.accepted,
                "rejected": decided.rejected,
                "outside": sorted(decided.outside),
                "done": decided.covers(len(doc)),
            }

    def _note(self, text: int, annotator: str, is_done: bool) -> None:
        done = self._done.setdefault(annotator, set())
        (done.add if is_done else done.discard)(text)

    async def _note_stored(self, text: int, annotator: str) -> None:
        def is_done() -> bool:
            decided = self.store.decided(text, annotator, self.component.name)
            return decided.covers(self._lengths[text])

        self._note(text, annotator, await asyncio.to_thread(is_done))

    async def show(
        self, with_model: WithModel, number: int, annotator: str, decisions: Sequence[Decision] = ()
    ) -> Row:
        """Answer with a text as it is decided so far, after some decisions, which are saved.

        Raises:
            InputError: if they contradict each other or those before; then none is saved.
        """
        name = self.component.name
        text, decided = await asyncio.to_thread(self._read, number, annotator, decisions)
        shown = await with_model(None, partial(self.shown, text, decided))
        if decisions:
            await asyncio.to_thread(self.store.decide, number, annotator, name, decisions)
            await self._note_stored(number, annotator)
        return {**shown, "counts": await asyncio.to_thread(self.counts, annotator)}

    def _read(
        self, number: int, annotator: str, decisions: Sequence[Decision]
    ) -> tuple[StoredText, Decided]:
        text = self.store.text(number)
        for decision in decisions:
            decision.check(len(text.tokens.words), self.component.labels)
        return text, self.store.decided(number, annotator, self.component.name).then(decisions)

    async def undo(self, with_model: WithModel, annotator: str) -> Row:
        """Take the last decisions back, and answer with their text."""
        name = self.component.name
        number = await asyncio.to_thread(self.store.undo, annotator, name)
        if number is None:
            raise HTTPException(409, "There is nothing to undo.")
        await self._note_stored(number, annotator)
        self._open[annotator] = number
        return await self.show(with_model, number, annotator)

    # The queue

    async def refresh(self, with_model: WithModel) -> None:
        """Begin to compute the queue, some texts at a time, between the requests."""
        if not self.trained:
            return
        if self._refreshing is not None and not self._refreshing.done():
            return
        numbers = self.queue.stale(self._is_done)
        if numbers:
            await self._compute(with_model, numbers[:CHUNK])
            task = self._compute_all(with_model, numbers[CHUNK:])
            self._refreshing = asyncio.get_running_loop().create_task(task)

    async def _compute_all(self, with_model: WithModel, numbers: list[int]) -> None:
        while numbers:
            version = self.queue.version
            for i in range(0, len(numbers), CHUNK):
                await self._compute(with_model, numbers[i : i + CHUNK])
                await asyncio.sleep(0)
                if self.queue.version != version:
                    break
            numbers = self.queue.stale(self._is_done)

    async def _compute(self, with_model: WithModel, numbers: list[int]) -> None:
        left = (n for n in numbers if self.queue.is_stale(n) and not self._is_done(n))
        texts = [
            (text, self.store.decided(text.number, self.annotator, self.component.name))
            for text in self.store.texts(left)
        ]
        if texts:
            await with_model(None, partial(self._put, texts))

    def _put(self, texts: list[tuple[StoredText, Decided]], model: ServedModel) -> None:
        for text, decided in texts:
            with model.scored(text.tokens, keep=False) as (_, scores):
                analyses = scores[self.component.name]
                if decided != Decided():
                    analyses = analyses.given(**decided.evidence)
                self.queue.put(text.number, usefulness(analyses, self.queue.order))

    def _is_done(self, text: int) -> bool:
        """Check whether all annotators have decided a text."""
        return bool(self._done) and all(text in done for done in self._done.values())

    async def replace(self, with_model: WithModel, nlp: Language) -> None:
        """Put another pipeline in the place of the one that is served, and renew the queue."""
        pipe = nlp.get_pipe(self.component.name)
        for label in set(self.component.labels) - set(pipe.labels):  # type: ignore[attr-defined]
            pipe.add_label(label)  # type: ignore[attr-defined]
        self.component = component_of(pipe)  # type: ignore[arg-type]
        self.store.use(component_of(pipe))  # type: ignore[arg-type]
        await with_model(None, lambda model: model.replace(nlp))
        self.trained = True
        self.queue.renew()

    async def add_label(self, with_model: WithModel, label: str) -> None:
        """Add a label to the model, which the next Teach learns.

        Raises:
            InputError: if it cannot be a label, or is one already.
        """
        label = check_label(label, self.component.labels)

        def add(model: ServedModel) -> Component:
            pipe = model.nlp.get_pipe(self.component.name)
            assert isinstance(pipe, SpanLabeler)
            pipe.add_label(label)
            model.replace(model.nlp)
            return component_of(pipe)

        component = await with_model(None, add)
        await asyncio.to_thread(self.store.use, component)
        self.component = component

    def downloaded(self, form: ExportFormat, annotator: str | None) -> tuple[bytes, str]:
        """Export to a file, and return its bytes and its name."""
        name = f"{self.store.path.stem}{ENDINGS[form]}"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            export(self.store, path, form, annotator)
            return path.read_bytes(), name


@dataclass(frozen=True)
class AnnotatePlan:
    """The options of `serve` that belong to Annotate."""

    file: Path
    texts: Path | None = None
    annotator: str | None = None
    order: Order = Order.entropy
    seed: int = 0
    component: str | None = None
    dev: Path | None = None
    train: Path | None = None
    gpu_id: int = -1
    begin: Beginning | None = None
    """The model to make, if none is served."""

    @property
    def output(self) -> Path:
        """The folder of the model that Teach makes, next to the file."""
        return self.file.with_name(f"{self.file.stem}-model")

    def open(self) -> AbstractContextManager[AnnotationStore]:
        """Check the paths, and open the file.

        Raises:
            InputError: see `open_store`; and if another path does not exist.
        """
        for option, path in (("texts", self.texts), ("dev", self.dev), ("train", self.train)):
            if path is not None and not path.exists():
                raise InputError(f"--{option} {path}: there is no such file; check the path")
        if self.output.exists() and not (self.output / "meta.json").exists():
            raise InputError(
                f"{self.output}: Teach would save its model here, and this is not a pipeline; move "
                "it, or use another name for the file of decisions"
            )
        return open_store(self.file)

    def model(self) -> tuple[str, str | None, Language]:
        """Open the model of an earlier Teach, or else make one without knowledge.

        Returns:
            Its name, its folder if it is trained, and the pipeline.

        Raises:
            InputError: as `load_pipeline` and `without_knowledge`.
        """
        if self.output.exists():
            return self.output.name, str(self.output), load_pipeline(str(self.output), self.gpu_id)
        if self.begin is None:
            raise InputError(f"{self.output}: there is no model of an earlier Teach; use --labels")
        return "no model yet", None, without_knowledge(self.begin)

    def notice(self, path: str) -> str:
        """Warn that the served pipeline, at `path`, is not that of an earlier Teach; or ""."""
        if not self.output.exists() or (Path(path).exists() and self.output.samefile(path)):
            return ""
        return (
            f"{self.output} is the model of an earlier Teach, and the next Teach replaces it: "
            "serve that model to continue from it"
        )

    def work(self, store: AnnotationStore, model: ServedModel, path: str | None) -> Annotating:
        """Import the texts, and open the work on the file with the pipeline of `path`.

        Without a path, the pipeline is not trained. Labels that were added before are added again.

        Raises:
            InputError: if the model has no component of spans, or none that the decisions are
                about; if a line of the texts cannot be read; if there is no text.
        """
        pipe = confident_pipe(model.nlp, self.component, "--component")
        before = store.component
        wanted = (*(before.labels if before else ()), *(self.begin.labels if self.begin else ()))
        for label in dict.fromkeys(wanted):
            if self.begin is not None and label not in pipe.labels:
                pipe.add_label(check_label(label))
        store.use(component_of(pipe))
        if self.texts is not None:
            store.add(read_texts(model.nlp, pipe.name, self.texts))
        numbers = store.lengths()
        if not numbers:
            empty = f"{self.texts}: has no text" if self.texts else f"{store.path}: has no texts"
            raise InputError(f"{empty}; use --texts with a file of one text a line, or JSON lines")
        lesson = Lesson(
            model=path,
            store=self.file,
            component=pipe.name,
            output=self.output,
            dev=self.dev,
            train=self.train,
            gpu_id=self.gpu_id,
            seed=self.seed,
            begin=self.begin,
        )
        queue = TextQueue(numbers, self.order, self.seed)
        name = self.annotator or _own_name()
        return Annotating(store, queue, Teacher(lesson), name, path is not None)


def _hide_suggestions(sentences: list[Row], decided: Decided) -> None:
    """Leave only accepted spans in the analyses of sentences, and no uncertainty."""
    accepted = set(decided.accepted)
    for sentence in sentences:
        for analysis in sentence["analyses"]:
            analysis["items"] = [i for i in analysis["items"] if tuple(i[:3]) in accepted]
        sentence["entropies"] = [0.0] * len(sentence["entropies"])


def component_of(pipe: SpanLabeler) -> Component:
    """Describe a component for a store and its exports."""
    return Component(pipe.name, tuple(pipe.labels), pipe.store.spans_key)


def read_texts(nlp: Language, before: str, path: Path) -> Iterator[tuple[Tokens, dict[str, Any]]]:
    """Yield the tokens of each text of a file, and the other keys of its record.

    The sentences are those that the component named `before` sees.

    Raises:
        InputError: if a line cannot be read; it is named.
    """
    with open_source(path, Reading()) as source:
        for record in source.records:
            try:
                doc = source.make_doc(nlp, record.content)
            except MalformedLine as error:
                raise InputError(f"{record.where}: {error}; correct the line") from error
            doc = split_into_sentences(nlp, before, doc)
            yield Tokens.of(doc), doc.user_data.get("meta", {})


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # the system may know no user
        return "annotator"


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
