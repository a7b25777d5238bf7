"""Pipelines to time: opened, given words, annotating and training."""

from collections.abc import Sequence
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import load_config, registry
from spacy.vocab import Vocab

from spacy_psa.architectures.word_cache import caches
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.errors import InputError
from spacy_psa.loading import load_pipeline
from spacy_psa.performance.timing import Timing, stopwatch

Sentences = list[list[str]]


def read_words(path: Path, words: int) -> Sentences:
    """The words of the docs of a `.spacy` file, from the start again until there are `words`.

    Raises:
        InputError: the file is not one, or has no words.
    """
    docs = read_docbin(path, Vocab())
    found: Sentences = [[token.text for token in doc] for doc in docs if len(doc)]
    if not found:
        raise InputError(f"{path}: there are no words in it; give a .spacy file with docs")
    taken: Sentences = []
    count = 0
    for sentence in cycle(found):
        if count >= words:
            return taken
        taken.append(sentence[: words - count])
        count += len(taken[-1])
    return taken


def open_pipeline(path: str, train: Path | None, vectors: str | None) -> Language:
    """A trained pipeline, or, of a training config, one with random weights.

    train, vectors: what a config is initialized with.

    Raises:
        InputError: there is no such pipeline, or no training data for a config.
    """
    if not path.endswith(".cfg"):
        return load_pipeline(path)
    if train is None:
        raise InputError(f"{path}: a config needs training data to begin with; give --train")
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such config")
    paths = {"paths.train": str(train), "paths.dev": str(train), "paths.vectors": vectors}
    return init_nlp(load_config(path, overrides=paths, interpolate=False))


class Annotation:
    """Annotates the same words each time, as docs made before; `batch_size` is the
    pipeline's own. What it remembers of the run before is dropped."""

    def __init__(self, name: str, nlp: Language, sentences: Sentences):
        self.name = name
        self.nlp = nlp
        self.sentences = sentences

    def run(self) -> Timing:
        docs = [Doc(self.nlp.vocab, words=words) for words in self.sentences]
        for _, pipe in self.nlp.pipeline:
            for cache in caches(pipe.model) if hasattr(pipe, "model") else ():
                cache.forget()
        with stopwatch(sum(map(len, docs))) as timings:
            for _ in self.nlp.pipe(docs):
                pass
        return timings[0]


class Training:
    """Takes the same steps each time, as the loop of `spacy train` does, from wherever the
    weights have got to.

    steps: so many batches of `batch` docs of `train`, from its start.
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
        """New examples, so that nothing of the last time is left on them."""
        examples = [
            Example(Doc(self.nlp.vocab, words=[t.text for t in doc]), doc)
            for doc in self.references
        ]
        return [examples[i : i + self.batch] for i in range(0, len(examples), self.batch)]

    def run(self) -> Timing:
        batches = self.batches()
        with stopwatch(len(batches)) as timings:
            for batch in batches:
                self.step(batch)
        return timings[0]

    def step(self, batch: list[Example]) -> None:
        losses: dict[str, Any] = {}
        self.nlp.update(batch, drop=self.dropout, losses=losses, sgd=False)  # type: ignore[arg-type]  # as spaCy's own loop
        for _, pipe in self.nlp.pipeline:
            if getattr(pipe, "is_trainable", False):
                pipe.finish_update(self.optimizer)  # type: ignore[attr-defined]
        self.optimizer.step_schedules()


def long_text(sentences: Sentences, words: int) -> list[str]:
    """So many words in one piece."""
    return list(islice(cycle(list(chain.from_iterable(sentences))), words))


def of_length(sentences: Sentences, length: int, words: int) -> Sentences:
    """The words of sentences, in pieces of one length, as many as make up `words`."""
    text = long_text(sentences, max(words // length, 1) * length)
    return [text[i : i + length] for i in range(0, len(text), length)]


def named_rows(models: Sequence[str]) -> dict[str, str]:
    """Paths by name, of arguments [NAME=]PATH; a row without a name has its path's.

    Raises:
        InputError: two rows have one name.
    """
    rows: dict[str, str] = {}
    for argument in models:
        name, equals, path = argument.partition("=")
        name, path = (name, path) if equals else (argument, argument)
        if name in rows:
            raise InputError(f"{name}: two rows have this name; call one NAME={path}")
        rows[name] = path
    return rows
