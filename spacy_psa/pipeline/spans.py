"""Labelling spans that do not overlap, by tags of their tokens."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model

from spacy_psa.errors import InputError
from spacy_psa.pipeline.labeler import Allowed, Bounds, SequenceLabeler, Tags
from spacy_psa.pipeline.schemes import MISSING, Kind, Moves, Scheme, Spans


class SpanLabeler(SequenceLabeler):
    """A `SequenceLabeler` whose tags say where labelled spans begin and end.

    scheme: "BIOES" (J section 5.1) or "BIO". `labels` are span labels, `tags` the tag set.
    Other settings: see `SequenceLabeler`.

    A subclass reads gold spans (`gold_spans`), says what is known (`known_tags`) and
    writes spans (`set_annotations`).
    """

    def __init__(self, vocab: Vocab, model: Model, name: str, *, scheme: Kind, **settings: Any):
        super().__init__(vocab, model, name, **settings)
        if scheme not in ("BIOES", "BIO"):
            raise InputError(f"{name}: scheme is {scheme!r}: take 'BIOES' or 'BIO'")
        self.kind: Kind = scheme
        self._scheme = Scheme((), scheme)

    @abstractmethod
    def gold_spans(self, example: Example) -> tuple[Spans, Allowed]:
        """The gold spans over the predicted doc's tokens, and (n,) where annotation is
        missing."""

    @property
    def scheme(self) -> Scheme:
        """How the component's spans become tags."""
        if self._scheme.labels != self.labels:
            self._scheme = Scheme(self.labels, self.kind)
        return self._scheme

    @property
    def tags(self) -> tuple[str, ...]:
        return self.scheme.tags

    def legal(self) -> Moves:
        return self.scheme.legal()

    def gold_tags(self, example: Example, bounds: Bounds) -> list[Tags]:
        spans, missing = self.gold_spans(example)
        for _, _, label in spans:
            if label not in self.labels:
                raise InputError(
                    f"{self.name}: the training data has the label {label!r}, which is not among "
                    f"the labels {', '.join(self.labels)}: initialize with all labels"
                )
        gold = []
        for start, end in bounds:
            tags = self.scheme.encode(end - start, clip(spans, start, end))
            tags[missing[start:end]] = MISSING
            gold.append(tags)
        return gold


def clip(spans: Spans, start: int, end: int) -> Spans:
    """The spans within a sentence, counted from its start; one that crosses its bounds
    is cut at them."""
    return [
        (max(s, start) - start, min(e, end) - start, label)
        for s, e, label in spans
        if s < end and e > start
    ]


def same_tokens(example: Example) -> bool:
    """Whether the predicted and the reference doc have the same tokens."""
    predicted, reference = example.predicted, example.reference
    return len(predicted) == len(reference) and numpy.array_equal(
        predicted.to_array(["ORTH"]), reference.to_array(["ORTH"])
    )


def labels_of(spans: Iterable[Any]) -> set[str]:
    """The labels of spans, the empty one left out."""
    return {span.label_ for span in spans if span.label}
