"""Labelling spans that do not overlap, by tags of their tokens."""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, ClassVar, cast

import numpy
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model
from torch import Tensor

from spacy_psa.errors import InputError, check_choice
from spacy_psa.pipeline.chain.decoders import Decode, SpanDecoder, SpanPrediction, make_decoder
from spacy_psa.pipeline.chain.extensions import register
from spacy_psa.pipeline.chain.own_predictions import is_own, set_own
from spacy_psa.pipeline.chain.queries import exact
from spacy_psa.pipeline.chain.sequence_labeler import Allowed, Reduction, SequenceLabeler, Tags
from spacy_psa.pipeline.chain.span_posteriors import SpanPosteriors
from spacy_psa.pipeline.chain.span_tags import (
    MISSING,
    LegalTransitions,
    Spans,
    SpanScheme,
    TagFormat,
)
from spacy_psa.scoring.span_group import score_group
from spacy_psa.sentences import Bounds, sentence_bounds
from spacy_psa.structs.chain import LinearChain


class SpanLabeler(SequenceLabeler):
    """A `SequenceLabeler` whose tags say where labelled spans begin and end.

    scheme: "BIOES" (Wei2020 section 5.1) or "BIO". `labels` are span labels, `tags` the tag set.
    confidence: whether doc.spans[<name of the component>] gets the predicted spans too, with
    attrs["scores"], the probability of each given the doc; see `docs/confidence.md`.
    decode: "viterbi" predicts the most probable analysis; "mbr" the spans of the highest
    expected F1 over the doc; "threshold" writes all spans whose probability is at least
    `threshold` to doc.spans[<name>] with their scores, overlapping ones too, and nothing else.
    threshold: from 0 to 1, of decode = "threshold".
    overwrite: false takes the spans that stand on a doc before the component runs as evidence:
    they are kept, and the prediction is the best that agrees with them. true ignores them.
    Other settings: see `SequenceLabeler`.

    A subclass reads gold spans (`gold_spans`) and what stands on a doc (`evidence`), and
    writes spans (`write`).
    """

    uncertainty: ClassVar[str | None] = None  # the attribute of the doc for its entropy

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        *,
        scheme: TagFormat,
        confidence: bool,
        decode: Decode,
        threshold: float,
        overwrite: bool,
        max_grad_norm: float,
        reduction: Reduction,
        batch_tokens: int,
        scorer: Callable | None,
    ):
        super().__init__(
            vocab,
            model,
            name,
            scorer=scorer,
            max_grad_norm=max_grad_norm,
            reduction=reduction,
            batch_tokens=batch_tokens,
            confidence=confidence,
        )
        self.decode = decode
        self.threshold = threshold
        self.overwrite = overwrite
        with self._naming_itself():
            check_choice("scheme", scheme, TagFormat)
            if self.decoder.overlapping:
                register()
        self._scheme = SpanScheme((), scheme)

    @property
    def decoder(self) -> SpanDecoder:
        """How spans are chosen, by the settings as they are now.

        Raises SettingError for a `decode` or `threshold` that there is not.
        """
        wanted = self.confidence and self.uncertainty is not None
        return make_decoder(self.decode, self.threshold, scores=self.confidence, entropy=wanted)

    @abstractmethod
    def gold_spans(self, example: Example) -> tuple[Spans, Allowed]:
        """The gold spans over the predicted doc's tokens, and (n,) where annotation is
        missing."""

    @abstractmethod
    def evidence(self, doc: Doc) -> tuple[list[Span], Allowed]:
        """The spans that stand on a doc, and (n,) where it is known that there is none;
        what this component has predicted itself is among them."""

    @abstractmethod
    def write(self, doc: Doc, spans: list[Span], outside: Allowed) -> None:
        """Make spans, in order, those that stand on the doc; `outside` as of `evidence`."""

    @abstractmethod
    def reference_spans(self, reference: Doc) -> Iterable[Span] | None:
        """The gold spans of a reference doc; None where it has no such annotation."""

    @property
    def scheme(self) -> SpanScheme:
        """How the component's spans become tags."""
        if self._scheme.labels != self.labels:
            self._scheme = SpanScheme(self.labels, self._scheme.tag_format)
        return self._scheme

    @property
    def tags(self) -> tuple[str, ...]:
        return self.scheme.tags

    def legal(self) -> LegalTransitions:
        return self.scheme.legal()

    # Evidence

    def held(self, doc: Doc) -> tuple[list[Span], Allowed]:
        """The evidence on a doc: the spans on it that are not this component's own
        prediction, in order, and (n,) where it is known that there is none."""
        if self.overwrite:
            return [], numpy.zeros(len(doc), dtype=bool)
        spans, outside = self.evidence(doc)
        return [span for span in spans if not is_own(self.name, span)], outside

    def known_tags(self, doc: Doc, bounds: Bounds) -> list[Allowed | None]:
        held, known = self.held(doc)
        if not held and not known.any():
            return [None] * len(bounds)
        for one, other in pairwise(held):
            if other.start < one.end:
                raise InputError(
                    f"{self.name}: {one.text!r} ({one.label_}) and {other.text!r} "
                    f"({other.label_}) overlap in the sentence {_sentence(doc, bounds, other)!r}:"
                    " no analysis has both. Remove one from the doc, or set overwrite = true"
                )
        known = known.copy()
        for span in held:
            known[span.start : span.end] = True
        spans = [(s.start, s.end, s.label_) for s in held if s.label_ in self.labels]
        found: list[Allowed | None] = []
        for start, end in bounds:
            inside = clip(spans, start, end)
            tags = self.scheme.encode(end - start, inside)
            allowed = numpy.ones((end - start, len(self.tags)), dtype=bool)
            for _, after, label in inside:  # a known span does not go on
                allowed[after : after + 1, self.scheme.tag("I", label)] = False
            fixed = known[start:end]
            # Labels that the model does not know are outside to it.
            allowed[fixed] = numpy.eye(len(self.tags), dtype=bool)[tags[fixed]]
            found.append(allowed)
        return found

    # Inference

    def predict(self, docs: Iterable[Doc]) -> list[SpanPrediction]:
        """The spans of each doc, as the settings `decode` and `confidence` say.

        Raises InputError naming a sentence of which nothing legal agrees with the evidence.
        """
        return self.decoder.predict(list(docs), self.infer, self.scheme)

    def posterior(self, spans: Iterable[Span]) -> NDArray[numpy.float64]:
        """P(the span is in the analysis, with its label | doc), (spans,): exact, for any
        spans of one doc, given the evidence on it. 0 for a span that crosses the bounds of
        a sentence, or has no token.

        Errors: InputError for spans of different docs, or a label that the model does not
        know.
        """
        spans = list(spans)
        if not spans:
            return numpy.zeros(0)
        doc = spans[0].doc
        for span in spans:
            if span.doc is not doc:
                raise InputError(
                    f"{self.name}: {span.text!r} is a span of another doc than "
                    f"{spans[0].text!r}: ask for one doc at a time"
                )
            if span.label_ not in self.labels:
                raise InputError(
                    f"{self.name}: {span.text!r} has the label {span.label_!r}, which is not "
                    f"among the labels {', '.join(self.labels)}"
                )
        (parts,) = self.infer([doc], lambda chain: _posteriors(chain, self.scheme))
        ends = dict(sentence_bounds(doc))
        found = numpy.zeros(len(spans))
        for i, span in enumerate(spans):
            for start, (posteriors, row) in parts:
                if start <= span.start and span.end <= ends[start]:
                    label = self.scheme.label_index(span.label_)
                    found[i] = posteriors.of(row, span.start - start, span.end - start, label)
        return found

    def named(self, tags: Tags, start: int) -> list[Any]:
        return [(start + s, start + e, label) for s, e, label in self.scheme.decode(tags.tolist())]

    def analysis(self, doc: Doc, parts: list[list[Any]]) -> list[Any]:
        return [Span(doc, *span) for part in parts for span in part]

    # Annotation

    def set_annotations(self, docs: Iterable[Doc], scores: list[SpanPrediction]) -> None:
        """Write what `predict` gave, beside the evidence on the docs."""
        decoder = self.decoder
        for doc, predicted in zip(docs, scores, strict=True):
            values = predicted.scores or [0.0] * len(predicted.spans)
            confidences = {
                Span(doc, *span): value for span, value in zip(predicted.spans, values, strict=True)
            }
            if decoder.overlapping:
                set_own(self.name, doc, confidences)
            else:
                confidences = self._beside_evidence(doc, confidences)
            if decoder.scores:
                self._write_scores(doc, confidences)
            if decoder.entropy and self.uncertainty:
                doc._.set(self.uncertainty, predicted.entropy)

    def _beside_evidence(self, doc: Doc, confidences: dict[Span, float]) -> dict[Span, float]:
        """Write predicted spans and those that are known; gives both in order, with their
        probabilities."""
        held, outside = self.held(doc)
        taken = {i for span in held for i in range(span.start, span.end)}
        confidences = {s: value for s, value in confidences.items() if s.start not in taken}
        set_own(self.name, doc, confidences)
        confidences.update(dict.fromkeys(held, 1.0))  # they are known
        ordered = sorted(confidences, key=lambda span: span.start)
        self.write(doc, ordered, outside)
        return {span: confidences[span] for span in ordered}

    def _write_scores(self, doc: Doc, confidences: dict[Span, float]) -> None:
        attrs = {"scores": numpy.array(list(confidences.values()))}
        group = SpanGroup(doc, name=self.name, attrs=attrs, spans=list(confidences))
        doc.spans[self.name] = group

    # Training

    def gold_tags(self, example: Example, bounds: Bounds) -> list[Tags]:
        spans, missing = self.gold_spans(example)
        for _, _, label in spans:
            self.check_label(label)
        gold = []
        for start, end in bounds:
            tags = self.scheme.encode(end - start, clip(spans, start, end))
            tags[missing[start:end]] = MISSING
            gold.append(tags)
        return gold

    def check_label(self, label: str) -> None:
        if label not in self.labels:
            raise InputError(
                f"{self.name}: the training data has the label {label!r}, which is not among "
                f"the labels {', '.join(self.labels)}: initialize with all labels"
            )

    def gold_allowed(self, gold: Tensor) -> Tensor:
        allowed = super().gold_allowed(gold)
        if self.scheme.tag_format == "BIO":
            # In BIOES its own tags say that a gold span does not go on where gold is missing.
            goes_on = torch.zeros(len(self.tags), len(self.tags), dtype=torch.bool)
            begins, insides = self.scheme.columns("B"), self.scheme.columns("I")
            goes_on[begins, insides] = goes_on[insides, insides] = True
            before = torch.nn.functional.pad(gold[:, :-1], (1, 0)).clamp(min=0)
            allowed &= ~(goes_on.to(gold.device)[before] & (gold == MISSING)[..., None])
        return allowed

    # Evaluation

    def score(self, examples: Iterable[Example], **settings: Any) -> dict[str, Any]:
        """The scorer's figures; with decode = "threshold" also spans_<name>_p, _r, _f and
        _per_type of the spans in doc.spans[<name>], which `spacy find-threshold` can take."""
        examples = list(examples)
        figures = dict(super().score(examples, **settings))
        if self.decoder.overlapping:
            figures |= score_group(examples, self.name, self.reference_spans)
        return figures


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


def _posteriors(chain: LinearChain, scheme: SpanScheme) -> list[tuple[SpanPosteriors, int]]:
    posteriors = SpanPosteriors(exact(chain), scheme)
    return [(posteriors, row) for row in range(len(chain.lengths))]


def _sentence(doc: Doc, bounds: Bounds, span: Span) -> str:
    start, end = next((s, e) for s, e in bounds if s <= span.start < e)
    return cast(str, doc[start:end].text)
