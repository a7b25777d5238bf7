"""Pipelines to time: opening them, reading words, annotating and training."""

from collections.abc import Mapping, Sequence
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_config, registry
from spacy.vocab import Vocab

from spacy_psa.architectures.distinct_words import caches
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.errors import InputError
from spacy_psa.laboratory.performance.timing import Timing, stopwatch
from spacy_psa.loading import load_pipeline
from spacy_psa.training.config import initialize

Sentences = list[list[str]]


def read_words(path: Path, words: int) -> Sentences:
    """Read `words` words of the docs of a `.spacy` file, again from the start if they are too few.

    The words are by doc; the last doc may be cut.
    """
    docs = read_docbin(path, Vocab())
    known: Sentences = [[token.text for token in doc] for doc in docs if len(doc)]
    if not known:
        raise InputError(f"{path}: there are no words in it; use a .spacy file with docs")
    sentences: Sentences = []
    count = 0
    for sentence in cycle(known):
        if count >= words:
            break
        sentences.append(sentence[: words - count])
        count += len(sentences[-1])
    return sentences


def open_pipeline(path: str, train: Path | None, vectors: str | None) -> Language:
    """Open a trained pipeline, or make one with random weights from a training config (`.cfg`).

    The config is initialized with the training data, and with the word vectors of a pipeline.
    """
    if not path.endswith(".cfg"):
        return load_pipeline(path)
    _check_config(path, train)
    paths = {"paths.train": str(train), "paths.dev": str(train), "paths.vectors": vectors}
    return initialize(Path(path), load_config(path, overrides=paths, interpolate=False))


def open_pipelines(
    paths: Mapping[str, str], train: Path | None, vectors: str | None
) -> dict[str, Language]:
    """Open pipelines by their names, as `open_pipeline`; first, all configs are looked for."""
    for path in paths.values():
        if path.endswith(".cfg"):
            _check_config(path, train)
    return {name: open_pipeline(path, train, vectors) for name, path in paths.items()}


def _check_config(path: str, train: Path | None) -> None:
    if train is None:
        raise InputError(f"{path}: a config needs training data to be initialized; add --train")
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such config; check the path")


class Annotation:
    """Annotates the same words in each run, given as the words of each doc.

    The docs are made before the clock starts, and `batch_size` is the pipeline's own. Caches of the
    run before are dropped.
    """

    def __init__(self, name: str, nlp: Language, sentences: Sentences):
        self.name = name
        self.nlp = nlp
        self.sentences = sentences

    def docs(self) -> list[Doc]:
        """Make new docs of the words, without caches from before."""
        for _, pipe in self.nlp.pipeline:
            model = getattr(pipe, "model", None)  # None, too, for a lemmatizer by rules
            for cache in [] if model is None else caches(model):
                cache.forget()
        return [Doc(self.nlp.vocab, words=words) for words in self.sentences]

    def annotate(self, docs: list[Doc]) -> None:
        """Annotate docs."""
        for _ in self.nlp.pipe(docs):
            pass

    def run(self) -> Timing:
        """Annotate the words once."""
        docs = self.docs()
        with stopwatch(sum(map(len, docs))) as timings:
            self.annotate(docs)
        return timings[0]


class Training:
    """Makes the same training steps in each run, in the same way as `spacy train`.

    The weights are not reset between runs. A run has `steps` batches of `batch` docs, from the
    start of the `.spacy` file `train`.
    """

    def __init__(self, name: str, nlp: Language, train: Path, steps: int, batch: int = 10):
        self.name = name
        self.nlp = nlp
        self.batch = batch
        self.references = list(islice(cycle(read_docbin(train, nlp.vocab)), steps * batch))
        settings = nlp.config.interpolate()["training"]
        self.dropout = settings["dropout"]
        self.optimizer = registry.resolve(settings, schema=ConfigSchemaTraining)["optimizer"]

    def batches(self) -> list[list[Example]]:
        """Make new examples, so that nothing from the last run is left on them."""
        examples = [
            Example(Doc(self.nlp.vocab, words=[t.text for t in doc]), doc)
            for doc in self.references
        ]
        return [examples[i : i + self.batch] for i in range(0, len(examples), self.batch)]

    def run(self) -> Timing:
        """Make the steps once."""
        batches = self.batches()
        with stopwatch(len(batches)) as timings:
            self.make_steps(batches)
        return timings[0]

    def make_steps(self, batches: list[list[Example]]) -> None:
        """Make a training step with each batch."""
        for batch in batches:
            self.step(batch)

    def step(self, batch: list[Example]) -> None:
        """Make one training step with a batch of examples."""
        losses: dict[str, Any] = {}
        self.nlp.update(batch, drop=self.dropout, losses=losses, sgd=False)  # type: ignore[arg-type]  # as in spaCy's own loop
        for _, pipe in self.nlp.pipeline:
            if getattr(pipe, "is_trainable", False):
                pipe.finish_update(self.optimizer)  # type: ignore[attr-defined]
        self.optimizer.step_schedules()


def long_text(sentences: Sentences, words: int) -> list[str]:
    """Join the words of sentences to one text of `words` words, again from the start if needed."""
    return list(islice(cycle(list(chain.from_iterable(sentences))), words))


def of_length(sentences: Sentences, length: int, words: int) -> Sentences:
    """Cut the words of sentences into pieces of `length` words, about `words` words in all."""
    text = long_text(sentences, max(words // length, 1) * length)
    return [text[i : i + length] for i in range(0, len(text), length)]


def named_rows(models: Sequence[str]) -> dict[str, str]:
    """The paths by name, from arguments [NAME=]PATH; without a name, the path is the name.

    A name has no slash, and a path that exists may have "=".
    """
    rows: dict[str, str] = {}
    for argument in models:
        name, equals, path = argument.partition("=")
        if not equals or "/" in name or Path(argument).exists():
            name = path = argument
        if name in rows:
            raise InputError(f"{name}: two rows have this name; choose another with NAME={path}")
        rows[name] = path
    return rows
