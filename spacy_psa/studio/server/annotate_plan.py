"""What `serve --annotate` is given, and the work that is made of it."""

import getpass
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacy.language import Language

from spacy_psa.annotation.input import MalformedLine, Reading, open_source
from spacy_psa.errors import InputError
from spacy_psa.loading import confident_pipe
from spacy_psa.studio.active_learning.order import Order
from spacy_psa.studio.active_learning.queue import TextQueue
from spacy_psa.studio.active_learning.store import AnnotationStore, open_store
from spacy_psa.studio.active_learning.teach_process import Lesson
from spacy_psa.studio.active_learning.tokens import Tokens, split_into_sentences
from spacy_psa.studio.server.annotate import Annotating, component_of
from spacy_psa.studio.server.models import ServedModel
from spacy_psa.studio.server.teacher import Teacher


@dataclass(frozen=True)
class AnnotatePlan:
    """The options of `serve` that belong to Annotate.

    Examples:
        >>> plan = AnnotatePlan(Path("work/names.sqlite"))
        >>> plan.output.name
        'names-model'
    """

    file: Path
    texts: Path | None = None
    annotator: str | None = None
    order: Order = Order.entropy
    seed: int = 0
    component: str | None = None
    dev: Path | None = None
    train: Path | None = None
    gpu_id: int = -1

    @property
    def output(self) -> Path:
        """The folder of the model that Teach makes, beside the file."""
        return self.file.with_name(f"{self.file.stem}-model")

    def open(self) -> AbstractContextManager[AnnotationStore]:
        """Open the file, after a look at the paths.

        Raises:
            InputError: see `open_store`; and if another path does not exist.
        """
        for option, path in (("texts", self.texts), ("dev", self.dev), ("train", self.train)):
            if path is not None and not path.exists():
                raise InputError(f"--{option} {path}: there is no such file; check the path")
        if self.output.exists() and not (self.output / "meta.json").exists():
            raise InputError(
                f"{self.output}: Teach would save its model here, and this is no pipeline; move "
                "it, or give the file of decisions another name"
            )
        return open_store(self.file)

    def notice(self, path: str) -> str:
        """Say that the model of an earlier Teach is not the one that is served; "" if it is.

        Args:
            path: where the pipeline is that is served.
        """
        if not self.output.exists() or (Path(path).exists() and self.output.samefile(path)):
            return ""
        return (
            f"{self.output} is the model of an earlier Teach, and the next Teach replaces it: "
            "serve that model to go on from it"
        )

    @contextmanager
    def work(self, store: AnnotationStore, model: ServedModel, path: str) -> Iterator[Annotating]:
        """Import the texts, and open the work on the file.

        Args:
            store: the open file.
            model: the model that gives suggestions.
            path: where the pipeline of the model is.

        Raises:
            InputError: if the model has no component of spans, or none that the decisions are
                about; if a line of the texts cannot be read; if there is no text.
        """
        pipe = confident_pipe(model.nlp, self.component, "--component")
        store.use(component_of(pipe))
        if self.texts is not None:
            store.add(read_texts(model.nlp, pipe.name, self.texts))
        numbers = store.lengths()
        if not numbers:
            given = f"{self.texts}: has no text" if self.texts else f"{store.path}: has no texts"
            raise InputError(f"{given}; give --texts a file with one text a line, or JSON lines")
        lesson = Lesson(
            model=path,
            store=self.file,
            component=pipe.name,
            output=self.output,
            dev=self.dev,
            train=self.train,
            gpu_id=self.gpu_id,
            seed=self.seed,
        )
        teacher = Teacher(lesson)
        try:
            queue = TextQueue(numbers, self.order, self.seed)
            yield Annotating(store, queue, teacher, self.annotator or _own_name())
        finally:
            teacher.kill()


def read_texts(nlp: Language, before: str, path: Path) -> Iterator[tuple[Tokens, dict[str, Any]]]:
    """Yield the tokens of each text of a file, and the other keys of its record.

    Args:
        nlp: the pipeline that makes tokens, and sentences.
        before: the name of the component that sees them.
        path: the file: text, JSON lines, `.spacy` or tokens.

    Raises:
        InputError: if a line cannot be read; it is named.
    """
    with open_source(path, Reading()) as source:
        for record in source.records:
            try:
                doc = source.make_doc(nlp, record.content)
            except MalformedLine as error:
                raise InputError(f"{record.where}: {error}; correct the line") from error
            (doc,) = split_into_sentences(nlp, before, [doc])
            yield Tokens.of(doc), doc.user_data.get("meta", {})


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # the system may know no user
        return "annotator"
