"""The options of `serve` that belong to Annotate, and the work that they open."""

import getpass
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacy.language import Language

from spacy_psa.annotation.input import MalformedLine, Reading, open_source
from spacy_psa.errors import InputError
from spacy_psa.loading import confident_pipe, load_pipeline
from spacy_psa.pipeline.chain.tagger import CRFTagger
from spacy_psa.studio.active_learning.beginning import Beginning, check_label, without_knowledge
from spacy_psa.studio.active_learning.queue import Order, TextQueue
from spacy_psa.studio.active_learning.store import AnnotationStore, open_store
from spacy_psa.studio.active_learning.teach_process import Lesson
from spacy_psa.studio.active_learning.tokens import Tokens, split_into_sentences
from spacy_psa.studio.server.annotating import Annotating, component_of
from spacy_psa.studio.server.guidelines import guidelines_html
from spacy_psa.studio.server.models import ServedModel
from spacy_psa.studio.server.teacher import Teacher
from spacy_psa.training.rules import add_rules


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
    guidelines: Path | None = None
    """The guidelines that are shown next to the texts."""
    patterns: tuple[Path, ...] = ()
    """Rules that suggest spans; see `add_rules`."""

    @property
    def output(self) -> Path:
        """The folder of the model that Teach makes, next to the file."""
        return self.file.with_name(f"{self.file.stem}-model")

    def open(self) -> AbstractContextManager[AnnotationStore]:
        """Check the paths, and open the file."""
        files = [(name, getattr(self, name)) for name in ("texts", "dev", "train", "guidelines")]
        for option, path in [*files, *(("patterns", path) for path in self.patterns)]:
            if path is not None and not path.exists():
                raise InputError(f"--{option} {path}: there is no such file; check the path")
        if self.guidelines is not None:
            guidelines_html(self.guidelines)
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

    def work(
        self,
        store: AnnotationStore,
        model: ServedModel,
        path: str | None,
        warn: Callable[[str], None] = lambda warning: None,
    ) -> Annotating:
        """Import the texts, and open the work on the file with the pipeline of `path`.

        Without a path, the pipeline is not trained. Labels that were added before are added again.
        `warn` is called with labels of patterns that are not known.
        """
        pipe = confident_pipe(model.nlp, self.component, "--component")
        before = store.component
        wanted = (*(before.labels if before else ()), *self.begin.labels) if self.begin else ()
        for label in (*wanted, *store.added):
            pipe.add_label(check_label(label))
        if self.patterns and isinstance(pipe, CRFTagger):
            raise InputError(
                f"--patterns suggest spans, but {pipe.name} predicts tags: leave it out"
            )
        for warning in add_rules(model.nlp, pipe.name, self.patterns):
            warn(warning)
        model.replace(model.nlp)  # as the server writes confidences
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
            patterns=list(self.patterns),
        )
        queue = TextQueue(numbers, self.order, self.seed)
        name = self.annotator or _own_name()
        return Annotating(store, queue, Teacher(lesson), name, path is not None)


def read_texts(nlp: Language, before: str, path: Path) -> Iterator[tuple[Tokens, dict[str, Any]]]:
    """Yield the tokens of each text of a file, and the other keys of its record.

    The sentences are those that the component named `before` sees.
    """
    with open_source(path, Reading()) as source:
        for record in source.records:
            try:
                doc = source.make_doc(nlp, record.content)
            except MalformedLine as error:
                raise InputError(f"{record.where}: {error}; correct the line") from error
            except UnicodeEncodeError as error:
                raise InputError(
                    f"{record.where}: has half of a surrogate pair; correct the line"
                ) from error
            doc = split_into_sentences(nlp, before, doc)
            yield Tokens.of(doc), doc.user_data.get("meta", {})


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # the system may know no user
        return "annotator"
