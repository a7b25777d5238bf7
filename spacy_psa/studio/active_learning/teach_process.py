"""`python -m spacy_psa.studio.active_learning.teach_process`: Teach in a process of its own.

It reads one line of JSON, a `Lesson`, and writes lines of JSON: after each epoch {"epoch": …,
"score": …, "before": …, "of": …}, and at the end {"taken": …, "score": …, "before": …, "texts": …,
"dev": …} or {"error": …}. It ends when its input is closed.
"""

import json
import math
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from pydantic import BaseModel
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.child_processes import end_with_starter
from spacy_psa.corpora.atomic import sync_tree, unwritable_as_input_error
from spacy_psa.corpora.docbin import read_docbins
from spacy_psa.errors import InputError
from spacy_psa.loading import load_pipeline
from spacy_psa.studio.active_learning.beginning import Beginning, first_model
from spacy_psa.studio.active_learning.export import (
    DecidedText,
    ExportCounts,
    decided_texts,
    reference_doc,
)
from spacy_psa.studio.active_learning.store import AnnotationStore, Component, open_store
from spacy_psa.studio.active_learning.teaching import (
    EPOCHS,
    PATIENCE,
    STEPS,
    Taught,
    teach,
    unannotated_example,
)
from spacy_psa.training.model_folders import NEW, beside, replace
from spacy_psa.training.rules import add_rules, learn_rules

HELD_OUT = 5
"""One text in so many is kept for measuring, if there is no development data."""


class Lesson(BaseModel):
    """A model to train, the data to train it from, and the folder for the new model."""

    model: str | None
    """The pipeline to train; None if the first is to be made."""
    store: Path
    component: str
    output: Path
    dev: Path | None = None
    train: Path | None = None
    gpu_id: int = -1
    seed: int = 0
    begin: Beginning | None = None
    """The model to make if there is none."""
    patterns: list[Path] = []
    """Rules that suggest spans; see `add_rules`."""


def run(lesson: Lesson, output: TextIO) -> Taught:
    """Teach a model, and save it if its score is not worse; write the lines of JSON to `output`.

    If something is wrong with the data or the folders, nothing changes.
    """

    def write(**values: Any) -> None:
        output.write(json.dumps(values) + "\n")
        output.flush()

    with open_store(lesson.store, reading=True) as store:
        component = store.component
        assert component is not None
        items, held_out = _decided(store, component, lesson)

    def docs_of(items: list[DecidedText], vocab: Vocab) -> list[Doc]:
        return [reference_doc(item, component, vocab) for item in items]

    epochs, patience = EPOCHS, PATIENCE
    if lesson.model is not None:
        nlp = load_pipeline(lesson.model, lesson.gpu_id)
    else:
        assert lesson.begin is not None
        if not any(item.decided.accepted for item in items):
            raise InputError("Teach has no span to learn from yet: mark some first")
        docs = docs_of(items, Vocab())
        nlp, steps = first_model(lesson.begin, docs, component.labels, lesson.gpu_id)
        epochs = patience = math.ceil(steps / STEPS)
    pipe: Any = nlp.get_pipe(lesson.component)
    for label in component.labels:
        pipe.add_label(label)
    add_rules(nlp, lesson.component, lesson.patterns)
    decided, dev = docs_of(items, nlp.vocab), docs_of(held_out, nlp.vocab)
    if lesson.dev is not None:
        dev = list(read_docbins(lesson.dev, nlp.vocab))
    replayed = [] if lesson.train is None else list(read_docbins(lesson.train, nlp.vocab))
    with _folder(lesson.output) as new:
        taught = teach(
            nlp,
            lesson.component,
            decided,
            dev,
            replayed=replayed,
            first=lesson.model is None,
            seed=lesson.seed,
            epochs=epochs,
            patience=patience,
            on_epoch=lambda epoch, score, before: write(
                epoch=epoch, score=score, before=before, of=epochs
            ),
        )
        if taught.taken:
            if getattr(pipe, "suggested_spans", None):
                learn_rules(nlp, lesson.component, [unannotated_example(doc) for doc in dev])
            nlp.to_disk(new)
            sync_tree(new)
            replace(lesson.output, new)
    write(taken=taught.taken, **taught._asdict(), texts=len(decided), dev=len(dev))
    return taught


def _decided(
    store: AnnotationStore, component: Component, lesson: Lesson
) -> tuple[list[DecidedText], list[DecidedText]]:
    """Read the texts to learn from and, without development data, those to measure by."""
    every = list(decided_texts(store, None, ExportCounts()))
    if component.spans_key is not None:  # a chunker reads no gaps
        every = [item for item in every if item.complete]
    if lesson.dev is not None:
        return every, []
    # The same texts are kept for measuring at each Teach.
    train = [item for item in every if item.text.number % HELD_OUT]
    dev = [item for item in every if item.text.number % HELD_OUT == 0 and item.complete]
    if not any(item.decided.accepted for item in dev):  # no score is possible
        spare = [item for item in train if item.complete and item.decided.accepted]
        if len(spare) < 2:
            unit = "tags" if component.tags else "spans"
            raise InputError(
                f"Teach has nothing to measure by: complete at least two texts with {unit}, or "
                "start the server with --dev"
            )
        train.remove(spare[0])
        dev.append(spare[0])
    if not any(item.decided.accepted for item in train):  # nothing could be learned
        spare = [item for item in dev if item.decided.accepted][1:]
        dev = [item for item in dev if item not in spare[:1]]
        train += spare[:1]
    return train, dev


@contextmanager
def _folder(output: Path) -> Iterator[Path]:
    """Yield an empty folder next to the output, and remove it at the end."""
    new = beside(output, NEW)
    with unwritable_as_input_error(output):
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        try:
            yield new
        finally:
            shutil.rmtree(new, ignore_errors=True)


def main() -> None:
    """Read a lesson from the input, and do it."""
    output, sys.stdout = sys.stdout, sys.stderr  # nothing else may write among the lines
    if hasattr(os, "nice"):
        os.nice(10)  # the server answers clicks meanwhile
    try:
        lesson = Lesson.model_validate_json(sys.stdin.readline())
        end_with_starter()  # else it might write the model of the next server
        run(lesson, output)
    except (InputError, MemoryError) as error:
        why = " ".join(str(error).split()) or "the memory does not suffice"
        print(json.dumps({"error": why}), file=output, flush=True)


if __name__ == "__main__":
    main()
