"""The work of annotators: suggestions of a model, and the decisions of people about them."""

import asyncio
import math
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import HTTPException
from spacy.language import Language
from spacy.tokens import Doc

from spacy_psa.memory import memory_zone
from spacy_psa.pipeline.analyses import DocAnalyses
from spacy_psa.pipeline.chain.spans import SpanLabeler
from spacy_psa.pipeline.chain.tagger import CRFTagger
from spacy_psa.sentences import sentence_bounds
from spacy_psa.studio.active_learning.beginning import check_label
from spacy_psa.studio.active_learning.decisions import Decided, Decision, Labelled
from spacy_psa.studio.active_learning.export import export
from spacy_psa.studio.active_learning.export_format import ENDINGS, ExportFormat
from spacy_psa.studio.active_learning.queue import Order, TextQueue, contradicted, usefulness
from spacy_psa.studio.active_learning.store import AnnotationStore, Component, Note, StoredText
from spacy_psa.studio.server.analysis import rows_of
from spacy_psa.studio.server.app import WithModel
from spacy_psa.studio.server.models import ServedModel, shown_tokens
from spacy_psa.studio.server.teacher import Teacher

FIRST = 4  # texts whose usefulness is computed before the first answer; then it is one at a time
PAUSE = 0.25
"""Seconds after a request during which at most one text is computed, as another one may follow."""
Row = dict[str, Any]


class Annotating:
    """The work of annotators on a file, which knows its component.

    The page suggests the name `annotator`. Methods with a `model` run in the thread of that model,
    one after the other; `answer` calls them.
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
        """Whether the model knows anything; else only matches of rules are suggested."""
        self.component = component
        self._lengths = store.lengths()
        self._done: dict[str, set[int]] = {}
        for text, own in store.all_decided(component.name).items():
            for name, decided in own.items():
                self._note(text, name, decided.covers(self._lengths[text]))
        self._open: OrderedDict[str, int] = OrderedDict()
        self._resume = 0.0
        self._ordered = 0  # the version of the queue that is computed
        self._ordering: asyncio.Task[None] | None = None
        self._ahead: asyncio.Future[Any] | None = None
        self._labels = asyncio.Lock()  # of the model change one after the other

    # Answers

    def done(self, annotator: str) -> set[int]:
        """The texts that an annotator has decided completely."""
        return self._done.get(annotator, set())

    def about(self, annotator: str) -> Row:
        """Describe the work, with the counts of an annotator."""
        name = self.component.name
        counts = {own: self.counts(own) for own in sorted({*self._done})}
        counts = {own: row for own, row in counts.items() if row["decisions"]}
        return {
            "component": name,
            "labels": self.component.labels,
            "tags": self.component.tags,
            "order": self.queue.order.value,
            "trained": self.trained,
            "annotator": annotator,
            "annotators": [*counts],
            "counts_of": counts,
            "counts": counts.get(annotator) or self.counts(annotator),
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

    async def answer(
        self, with_model: WithModel, annotator: str, make: Callable[[ServedModel], Row]
    ) -> Row:
        """Make an answer, and then get the next text ready, and compute the queue."""
        self._resume = asyncio.get_running_loop().time() + PAUSE
        row: Row = await with_model(None, make)
        self._ahead = asyncio.ensure_future(
            with_model(None, partial(self._prepare, annotator, row["text"]))
        )
        if self.trained and (self._ordering is None or self._ordering.done()):
            self._ordering = asyncio.ensure_future(self._order(with_model))
        return row

    def text(self, number: int | None, annotator: str, model: ServedModel) -> Row:
        """Answer with a text as it is decided so far; None for the next one of the queue."""
        if number is None:
            if self.trained and self._ordering is None:
                self._compute(self.queue.stale(self._is_done)[:FIRST], model)
            number = self._next(annotator)
        if number is None:
            self._open.pop(annotator, None)
            return {"text": None, "counts": self.counts(annotator)}
        return self._answer(self.shown(*self._read(number, annotator), model), annotator)

    def decide(
        self,
        number: int,
        annotator: str,
        decisions: Sequence[Decision],
        key: str,
        then_next: bool,
        model: ServedModel,
    ) -> Row:
        """Save decisions about a text, and answer with it.

        Those whose `key` is saved already change nothing. With `then_next`, the next text is the
        answer if this one is decided completely or skipped.

        Raises:
            InputError: if they contradict each other or those before; then none is saved.
        """
        before = key and self.store.done(annotator, key) is not None
        text, decided = self._read(number, annotator, () if before else decisions)
        shown = self.shown(text, decided, model)
        if "problem" in shown and not before:
            self._check_problem(number, annotator, decided, model)
        if not before:
            self.store.decide(number, annotator, self.component.name, decisions, key)
        self._note(number, annotator, shown["done"])
        if then_next and (shown["done"] or any(each.verdict == "skipped" for each in decisions)):
            return self.text(None, annotator, model)
        return self._answer(shown, annotator)

    def undo(self, annotator: str, key: str, model: ServedModel) -> Row:
        """Undo the last decisions, once for each `key`, and answer with their text."""
        name = self.component.name
        number = self.store.done(annotator, key) if key else None
        if number is None:
            number = self.store.undo(annotator, name, key)
        if number is None:
            raise HTTPException(409, "There is nothing to undo.")
        shown = self.shown(*self._read(number, annotator), model)
        self._note(number, annotator, shown["done"])
        return self._answer(shown, annotator)

    def _next(self, annotator: str, but: int | None = None) -> int | None:
        """Choose the next text of an annotator, not one that another has open."""
        taken = {text for name, text in self._open.items() if name != annotator} | {but}
        others = [done for name, done in self._done.items() if name != annotator]
        return self.queue.next(
            self.done(annotator),
            self.store.skipped(annotator, self.component.name),
            avoided=lambda text: text in taken or any(text in done for done in others),
        )

    def _prepare(self, annotator: str, number: int | None, model: ServedModel) -> None:
        """Let the model score the text that comes after one."""
        ahead = self._next(annotator, number)
        if ahead is not None:
            self.shown(*self._read(ahead, annotator), model)

    def shown(self, text: StoredText, decided: Decided, model: ServedModel) -> Row:
        """Analyse a text under everything that is decided, in the thread of the model.

        If that fails, the answer has the text and the decisions, and the reason as `problem`.
        """
        try:
            return self._analysed(text, decided, model)
        except Exception as error:  # of any component; the text can still be annotated or skipped
            if self.trained and self.queue.order is not Order.random:
                self.queue.put(text.number, -math.inf)  # it comes after all others
            reason = " ".join(str(error).split()) or type(error).__name__
            return {**self._plain(text, decided, model), "problem": reason}

    def _analysed(self, text: StoredText, decided: Decided, model: ServedModel) -> Row:
        name = self.component.name
        with model.scored(text.tokens) as (doc, scores):
            given = scores[name].given(**decided.evidence) if decided != Decided() else scores[name]
            if self.trained and self.queue.order is not Order.random:
                self._keep(text.number, given)
            bounds = sentence_bounds(doc)
            rows = rows_of(scores[name], given, bounds, range(len(bounds)), 1)
            shown = self._row(text, decided, doc, rows)
            if not self.trained:
                _show_rules(shown["sentences"], decided, given.evidence.suggested)
            return shown

    def _plain(self, text: StoredText, decided: Decided, model: ServedModel) -> Row:
        """Show a text and what is accepted, without the model."""
        with memory_zone(model.nlp):
            doc = text.tokens.doc(model.nlp.vocab)
            rows: dict[int, Row] = {
                i: {
                    "analyses": [{"items": []}],
                    "entropies": [0.0] * (end - start),
                    "sure": [1.0] * (end - start),
                }
                for i, (start, end) in enumerate(sentence_bounds(doc))
            }
            shown = self._row(text, decided, doc, rows)
            _show_rules(shown["sentences"], decided, {})
            return shown

    def _row(self, text: StoredText, decided: Decided, doc: Doc, rows: dict[int, Row]) -> Row:
        """Make the answer from the rows of its sentences."""
        known = decided.tokens
        return {
            "text": text.number,
            "sentences": [
                {
                    **shown_tokens(doc, i, (start, end)),
                    "done": known.issuperset(range(start, end)),
                    **rows[i],
                }
                for i, (start, end) in enumerate(sentence_bounds(doc))
            ],
            "accepted": decided.accepted,
            "rejected": decided.rejected,
            "outside": sorted(decided.outside),
            "done": decided.covers(len(doc)),
            "labels": self.component.labels,
            "trained": self.trained,
        }

    def _check_problem(
        self, number: int, annotator: str, decided: Decided, model: ServedModel
    ) -> None:
        """Raise the error of an analysis if it comes from new decisions and not from the text."""
        text, before = self._read(number, annotator)
        if "problem" not in self.shown(text, before, model):
            self._analysed(text, decided, model)

    def _note(self, text: int, annotator: str, is_done: bool) -> None:
        done = self._done.setdefault(annotator, set())
        (done.add if is_done else done.discard)(text)

    def _answer(self, shown: Row, annotator: str) -> Row:
        number = shown["text"]
        self._open[annotator] = number
        self._open.move_to_end(annotator)
        while len(self._open) > 1000:
            self._open.popitem(last=False)
        return {**shown, **self._notes(number), "counts": self.counts(annotator)}

    def note(self, number: int, annotator: str, note: Note) -> Row:
        """Save a note about a text, and return all notes about it."""
        self.store.text(number)
        self.store.note(number, annotator, note)
        return self._notes(number)

    def _notes(self, number: int) -> Row:
        own = self.store.notes(number).get(number, {})
        return {"notes": {name: note._asdict() for name, note in own.items()}}

    def _read(
        self, number: int, annotator: str, decisions: Sequence[Decision] = ()
    ) -> tuple[StoredText, Decided]:
        text = self.store.text(number)
        for decision in decisions:
            decision.check(len(text.tokens.words), self.component.labels, self.component.tags)
        return text, self.store.decided(number, annotator, self.component.name).then(decisions)

    # The queue

    async def _order(self, with_model: WithModel) -> None:
        """Compute the queue, a text at a time, between the requests."""
        loop = asyncio.get_running_loop()
        while self._ordered != (version := self.queue.version):
            for number in await with_model(None, lambda _: self.queue.stale(self._is_done)):
                if loop.time() < self._resume:
                    await asyncio.sleep(PAUSE)
                with suppress(HTTPException):  # if it takes long, the thread still ends it
                    await with_model(None, partial(self._compute, [number]))
                if self.queue.version != version:
                    break
            else:
                self._ordered = version

    def _compute(self, numbers: Iterable[int], model: ServedModel) -> None:
        left = (n for n in numbers if self.queue.is_stale(n) and not self._is_done(n))
        for text in self.store.texts(left):
            decided = self.store.decided(text.number, self.annotator, self.component.name)
            try:
                with model.scored(text.tokens, keep=False) as (_, scores):
                    analyses = scores[self.component.name]
                    if decided != Decided():
                        analyses = analyses.given(**decided.evidence)
                    self._keep(text.number, analyses)
            except Exception:  # which the text's own request shows; it comes after all others
                self.queue.put(text.number, -math.inf)

    def _keep(self, text: int, analyses: DocAnalyses) -> None:
        self.queue.put(text, usefulness(analyses, self.queue.order), contradicted(analyses))

    def _is_done(self, text: int) -> bool:
        """Check whether all annotators who have completed any text have completed this one."""
        sets = [done for done in self._done.values() if done]
        return bool(sets) and all(text in done for done in sets)

    async def replace(self, with_model: WithModel, nlp: Language) -> None:
        """Put another pipeline in the place of the one that is served, and renew the queue."""
        pipe: Any = nlp.get_pipe(self.component.name)
        async with self._labels:
            for label in self.component.labels:
                pipe.add_label(label)
            self.component = component_of(pipe)
            self.store.use(self.component)
            await with_model(None, lambda model: model.replace(nlp), in_time=False)
        self.trained = True
        self.queue.renew()

    async def add_label(self, with_model: WithModel, label: str) -> None:
        """Add a label to the model, which the next Teach learns.

        Raises:
            InputError: if it cannot be a label, or is one already.
        """

        def add(model: ServedModel) -> Component:
            pipe = model.nlp.get_pipe(self.component.name)
            assert isinstance(pipe, SpanLabeler | CRFTagger)
            pipe.add_label(label)
            model.replace(model.nlp)
            return component_of(pipe)

        async with self._labels:
            label = check_label(label, self.component.labels)
            component = await with_model(None, add)
            await asyncio.to_thread(self.store.use, component, label)
            self.component = component

    def downloaded(self, form: ExportFormat, annotator: str | None) -> tuple[bytes, str]:
        """Export to a file, and return its bytes and its name."""
        name = f"{self.store.path.stem}{ENDINGS[form]}"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            export(self.store, path, form, annotator)
            return path.read_bytes(), name


def _show_rules(
    sentences: list[Row], decided: Decided, suggested: Mapping[Labelled, float]
) -> None:
    """Leave only accepted spans and matches of rules in sentences, and no uncertainty.

    Of matches that overlap, the longest is shown. Its probability is that of its weight only.
    """
    shown = dict.fromkeys(decided.accepted, 1.0)
    taken, rejected = set(decided.tokens), {*decided.rejected}
    longest = sorted(suggested.items(), key=lambda s: (s[0][0] - s[0][1], s[0]))
    for (start, end, label), weight in longest:
        wrong = not rejected.isdisjoint([(start, end, label), (start, end, "")])
        if weight > 0 and not wrong and taken.isdisjoint(range(start, end)):
            shown[start, end, label] = round(1 / (1 + math.exp(-weight)), 4)
            taken.update(range(start, end))
    for sentence in sentences:
        first, last = sentence["start"], sentence["start"] + len(sentence["tokens"])
        own = [[*span, p] for span, p in sorted(shown.items()) if first <= span[0] < last]
        for analysis in sentence["analyses"]:
            analysis["items"] = own
        sentence["entropies"] = [0.0] * len(sentence["entropies"])
        sentence["sure"] = [1.0] * len(sentence["sure"])


def component_of(pipe: SpanLabeler | CRFTagger) -> Component:
    """Describe a component for a store and its exports."""
    tags = isinstance(pipe, CRFTagger)
    return Component(pipe.name, tuple(pipe.labels), None if tags else pipe.store.spans_key, tags)
