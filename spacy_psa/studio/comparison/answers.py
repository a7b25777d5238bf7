"""The predictions of a pipeline for a gold corpus, and the exact probability of any unit."""

from bisect import bisect
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.labeler import ChainLabeler
from spacy_psa.pipeline.chain.spans import same_tokens
from spacy_psa.pipeline.nested.spans import NestedSpanLabeler
from spacy_psa.scoring.result import read_examples
from spacy_psa.sentences import document_batches, unannotated
from spacy_psa.studio.comparison.units import Component, Gold, Unit

BATCH = 4000
"""The least number of tokens in a batch; few enough for a server to do other work between."""


class Answers:
    """The answers of one component about a corpus, batch by batch.

    The pipeline reads the corpus, which is at `path`, as its training read the development data,
    but always the words of the corpus; it runs up to the component.
    """

    def __init__(self, name: str, nlp: Language, component: Component, gold: Gold, path: Path):
        self.name = name
        self.component = component
        self.units: list[Unit] = []
        """The predicted units of all batches so far."""
        self.has_posteriors = isinstance(component.pipe, ChainLabeler | NestedSpanLabeler)
        self._nlp = nlp
        self._gold = gold
        self._before = nlp.pipe_names[: nlp.pipe_names.index(component.name)]
        docs = [_with_gold_words(example) for example in read_examples(nlp, path)]
        self._check(docs, 0, len(gold.words), "reads")
        self._batches = [*_batches(docs)]
        sizes = [sum(map(len, batch)) for batch in self._batches]
        self._starts = numpy.cumsum([0, *sizes]).tolist()

    def __len__(self) -> int:
        """The number of batches."""
        return len(self._batches)

    def predict(self, batch: int) -> None:
        """Predict the units of a batch."""
        with self._nlp.select_pipes(enable=self._before):
            docs = list(self._nlp.pipe(self._batches[batch]))
        # `posteriors` needs the docs as the component gets them.
        self._batches[batch] = docs
        with self._nlp.select_pipes(enable=self.component.name):
            annotated = list(self._nlp.pipe(doc.copy() for doc in docs))
        at, end = self._starts[batch : batch + 2]
        self._check(annotated, at, end, "returns")
        for doc in annotated:
            own = self.component.units.of(doc)
            self.units += [(at + start, at + end, label) for start, end, label in own]
            at += len(doc)

    def posteriors(self, batch: int, asked: Sequence[Unit]) -> dict[Unit, float]:
        """Compute the probability of each unit that begins in a batch, after its prediction.

        The units must be in order. The probability is 0 for a unit that the component cannot
        predict: over the bounds of a sentence, or with a label that it does not know.
        """
        begin, end = self._starts[batch : batch + 2]
        docs, pipe = self._batches[batch], self.component.pipe
        starts = numpy.cumsum([begin, *map(len, docs)]).tolist()
        by_doc: list[list[Unit]] = [[] for _ in docs]
        for unit in asked:
            if begin <= unit[0] < end:
                by_doc[bisect(starts, unit[0]) - 1].append(unit)
        moved = [[(s - at, e - at, label) for s, e, label in u] for u, at in zip(by_doc, starts)]
        known, values = set(pipe._span_labels), []
        for analyses, units in zip(pipe.analyses(docs), moved, strict=True):
            sure = iter(analyses.posterior(unit for unit in units if unit[2] in known))
            values.append([next(sure) if unit[2] in known else 0.0 for unit in units])
        pairs = zip(by_doc, values, strict=True)
        return {unit: p for units, row in pairs for unit, p in zip(units, row, strict=True)}

    def _check(self, docs: list[Doc], start: int, end: int, does: str) -> None:
        """Check that docs have the words of a part of the corpus."""
        words = [token.text for doc in docs for token in doc]
        wanted = self._gold.words[start:end]
        if words != wanted:
            pairs = zip([*words, "nothing"], [*wanted, "nothing"])
            at, (has, other) = next((i, pair) for i, pair in enumerate(pairs) if len({*pair}) > 1)
            raise InputError(
                f"{self.name}: {does} {has!r} as token {start + at} of the corpus, where the gold "
                f"token is {other!r}; leave out what changes tokens, or a limit of the reader"
            )


def _batches(docs: list[Doc]) -> Iterator[list[Doc]]:
    batch: list[Doc] = []
    for document in document_batches(docs, 1):
        batch += document
        if sum(map(len, batch)) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _with_gold_words(example: Example) -> Doc:
    """Make the doc to predict, with the words of the reference."""
    if same_tokens(example):
        return example.predicted
    doc = unannotated(example.reference, sentences=False)
    doc.user_data.update(example.predicted.user_data)
    return doc
