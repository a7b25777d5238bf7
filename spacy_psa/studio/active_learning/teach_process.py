"""`python -m spacy_psa.studio.active_learning.teach_process`: Teach in a process of its own.

It reads one line of JSON, a `Lesson`, and writes lines of JSON: after each epoch {"epoch": …,
"score": …, "before": …, "of": …}, and at the end {"taken": …, "score": …, "before": …, "texts": …,
"dev": …} or {"error": …}.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from pydantic import BaseModel
from spacy.language import Language
from spacy.tokens import Doc

from spacy_psa.corpora.atomic import sync_tree, unwritable_as_input_error
from spacy_psa.corpora.docbin import read_docbins
from spacy_psa.errors import InputError
from spacy_psa.loading import load_pipeline
from spacy_psa.studio.active_learning.export import (
    DecidedText,
    ExportCounts,
    decided_texts,
    reference_doc,
)
from spacy_psa.studio.active_learning.store import AnnotationStore, open_store
from spacy_psa.studio.active_learning.teaching import EPOCHS, Taught, teach
from spacy_psa.training.model_folders import NEW, beside, replace

HELD_OUT = 5
"""One text in so many is kept for measuring, if there is no development data."""


class Lesson(BaseModel):
    """What to train, from what, and where the model goes."""

    model: str
    store: Path
    component: str
    output: Path
    dev: Path | None = None
    train: Path | None = None
    gpu_id: int = -1
    seed: int = 0


def held_out(one: DecidedText) -> bool:
    """Tell whether a text is kept for measuring; it is the same at each Teach.

    Examples:
        >>> from spacy_psa.studio.active_learning.decisions import Decided
        >>> from spacy_psa.studio.active_learning.store import StoredText
        >>> from spacy_psa.studio.active_learning.tokens import Tokens
        >>> tokens = Tokens(("Go",), (False,), (True,))
        >>> [held_out(DecidedText(StoredText(n, tokens, {}), Decided())) for n in (4, 5)]
        [False, True]
    """
    return one.text.number % HELD_OUT == 0


def run(lesson: Lesson, told: TextIO) -> Taught:
    """Teach a model, and save it if its score is not worse.

    Args:
        lesson: what to do.
        told: gets a line of JSON after each epoch, and at the end.

    Raises:
        InputError: if something is wrong with the data or the folders. Then nothing changes.
    """

    def tell(**values: Any) -> None:
        told.write(json.dumps(values) + "\n")
        told.flush()

    nlp = load_pipeline(lesson.model, lesson.gpu_id)
    with open_store(lesson.store, reading=True) as store:
        decided, dev = _decided(store, nlp, lesson)
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
            seed=lesson.seed,
            told=lambda progress: tell(**progress._asdict(), of=EPOCHS),
        )
        if taught.taken:
            nlp.to_disk(new)
            sync_tree(new)
            replace(lesson.output, new)
    tell(taken=taught.taken, **taught._asdict(), texts=len(decided), dev=len(dev))
    return taught


def _decided(store: AnnotationStore, nlp: Language, lesson: Lesson) -> tuple[list[Doc], list[Doc]]:
    """Read the docs to learn from and, without development data, those to measure by."""
    component = store.component
    assert component is not None
    every = list(decided_texts(store, None, ExportCounts()))
    if component.spans_key is not None:  # a chunker takes no gaps
        every = [one for one in every if one.complete]
    alone = lesson.dev is None
    train = [one for one in every if not (alone and held_out(one))]
    dev = [one for one in every if alone and held_out(one) and one.complete]
    if alone and not dev:
        raise InputError(
            f"Teach has nothing to measure by: one text in {HELD_OUT} is kept for that, and none "
            "of these is complete yet; complete more texts, or start the server with --dev"
        )
    return (
        [reference_doc(one, component, nlp.vocab) for one in train],
        [reference_doc(one, component, nlp.vocab) for one in dev],
    )


@contextmanager
def _folder(output: Path) -> Iterator[Path]:
    """Yield an empty folder beside the output, which is gone at the end; unwritable is an error."""
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
    told, sys.stdout = sys.stdout, sys.stderr  # nothing else may write among the lines
    if hasattr(os, "nice"):
        os.nice(10)  # the server answers clicks meanwhile
    try:
        run(Lesson.model_validate_json(sys.stdin.readline()), told)
    except (InputError, MemoryError) as error:
        why = " ".join(str(error).split()) or "the memory does not suffice"
        told.write(json.dumps({"error": why}) + "\n")


if __name__ == "__main__":
    main()
