"""Labelling spans that do not overlap, by tags of their tokens."""

from abc import abstractmethod
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.util import minibatch
from spacy.vocab import Vocab
from thinc.api import Model
from torch import Tensor

from spacy_psa.architectures.crf import sentence_bounds
from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.span_posteriors import SpanPosteriors
from spacy_psa.pipeline.chain.expected_f1 import best_expected_f1
from spacy_psa.pipeline.chain.extensions import register
from spacy_psa.pipeline.chain.sequence_labeler import Allowed, Bounds, SequenceLabeler, Tags, best_tags
from spacy_psa.pipeline.chain.own_predictions import is_own, set_own
from spacy_psa.pipeline.chain.span_tags import MISSING, Kind, Moves, Scheme, Spans
from spacy_psa.scoring.span_group import score_group
from spacy_psa.structs.chain import LinearChain

Decode = Literal["viterbi", "mbr", "threshold"]
MBR_DOCS = 256  # whose potentials are held at a time


class Scored(NamedTuple):
    """Spans of a doc, or of a sentence, with their posteriors."""

    spans: Spans
    scores: list[float]
    entropy: float
    """Of the distribution over its analyses, nats."""


class SpanLabeler(SequenceLabeler):
    """A `SequenceLabeler` whose tags say where labelled spans begin and end.

    scheme: "BIOES" (J section 5.1) or "BIO". `labels` are span labels, `tags` the tag set.
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

    uncertainty: str | None = None  # the attribute of the doc for its entropy

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        *,
        scheme: Kind,
        confidence: bool = False,
        decode: Decode = "viterbi",
        threshold: float = 0.5,
        overwrite: bool = False,
        **settings: Any,
    ):
        super().__init__(vocab, model, name, **settings)
        if scheme not in ("BIOES", "BIO"):
            raise InputError(f"{name}: scheme is {scheme!r}: take 'BIOES' or 'BIO'")
        if decode not in get_args(Decode):
            raise InputError(f"{name}: decode is {decode!r}: take one of {get_args(Decode)}")
        if not 0 <= threshold <= 1:
            raise InputError(f"{name}: threshold is {threshold!r}: take a number from 0 to 1")
        self.kind: Kind = scheme
        self.confidence = confidence
        self.decode = decode
        self.threshold = float(threshold)
        self.overwrite = overwrite
        self._scheme = Scheme((), scheme)
        if decode == "threshold":
            register()

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

    def predict(self, docs: Iterable[Doc]) -> list[Any]:
        """The most probable legal tags of each doc, (n,) int64 arrays; with confidence, or
        another way of decoding, `Scored` spans.

        Errors: InputError naming a sentence of which nothing legal agrees with the evidence.
        """
        if self.decode == "viterbi" and not self.confidence:
            return super().predict(docs)
        if self.decode == "mbr":
            return [
                self._best_expected_f1(parts)
                for batch in minibatch(docs, size=MBR_DOCS)
                for parts in self.infer(batch, _rows)
            ]
        return [_joined(parts) for parts in self.infer(list(docs), self._scored)]

    def _scored(self, chain: LinearChain) -> list[Scored]:
        """The sentences' spans, the most probable or all above the threshold."""
        posteriors = SpanPosteriors(chain, self.scheme)
        if self.decode == "threshold":
            found: list[Spans] = [[] for _ in chain.lengths]
            scores: list[list[float]] = [[] for _ in chain.lengths]
            spans, values = posteriors.above(self.threshold)
            for (row, start, end, label), value in zip(spans.tolist(), values.tolist()):
                found[row].append((start, end, self.labels[label]))
                scores[row].append(value)
        else:
            found = [self.scheme.decode(tags.tolist()) for tags in best_tags(chain)]
            scores = [
                [float(posteriors.of(row, s, e, self.scheme.label_index(x))) for s, e, x in spans]
                for row, spans in enumerate(found)
            ]
        wanted = self.confidence and self.uncertainty
        entropies = chain.entropy.tolist() if wanted else [0.0] * len(found)
        return [Scored(*parts) for parts in zip(found, scores, entropies)]

    def _best_expected_f1(self, parts: list[tuple[int, Tensor]]) -> Scored:
        if not parts:
            return _joined([])
        potentials = torch.nn.utils.rnn.pad_sequence([rows for _, rows in parts], True)
        chain = LinearChain(potentials, torch.tensor([len(rows) for _, rows in parts]))
        posteriors = SpanPosteriors(chain, self.scheme)
        best = best_expected_f1(chain, self.scheme)
        return _joined(
            [
                (
                    start,
                    Scored(
                        [(s, e, self.labels[label]) for s, e, label in spans],
                        [float(posteriors.of(row, *span)) for span in spans],
                        entropy,
                    ),
                )
                for row, ((start, _), spans, entropy) in enumerate(
                    zip(parts, best, chain.entropy.tolist())
                )
            ]
        )

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

    def set_annotations(self, docs: Iterable[Doc], scores: list[Any]) -> None:
        """Write what `predict` gave, beside the evidence on the docs."""
        for doc, found in zip(docs, scores, strict=True):
            scored = isinstance(found, Scored)
            spans = found.spans if scored else self.scheme.decode(found.tolist())
            if self.decode == "threshold":
                predicted = [Span(doc, *span) for span in spans]
                set_own(self.name, doc, predicted)
                self._write_scores(doc, dict(zip(predicted, found.scores)))
            else:
                held, outside = self.held(doc)
                taken = {i for span in held for i in range(span.start, span.end)}
                values = found.scores if scored else [0.0] * len(spans)
                confidences = {
                    Span(doc, *span): value
                    for span, value in zip(spans, values)
                    if span[0] not in taken
                }
                set_own(self.name, doc, confidences)
                confidences.update(dict.fromkeys(held, 1.0))  # they are known
                ordered = sorted(confidences, key=lambda span: span.start)
                self.write(doc, ordered, outside)
                if scored:
                    self._write_scores(doc, {span: confidences[span] for span in ordered})
            if self.confidence and self.uncertainty:
                doc._.set(self.uncertainty, found.entropy)

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
        if self.kind == "BIO":
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
        if self.decode == "threshold":
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


def _joined(parts: list[tuple[int, Scored]]) -> Scored:
    """What was found in a doc's sentences, in one."""
    return Scored(
        [(start + s, start + e, label) for start, part in parts for s, e, label in part.spans],
        [score for _, part in parts for score in part.scores],
        float(sum(part.entropy for _, part in parts)),
    )


def _rows(chain: LinearChain) -> list[Tensor]:
    """The log potentials (n, K, K) of each sentence."""
    best_tags(chain)  # an error where there is no analysis
    potentials = chain.potentials.double()
    return [rows[:n] for rows, n in zip(potentials, chain.lengths.tolist())]


def _posteriors(chain: LinearChain, scheme: Scheme) -> list[tuple[SpanPosteriors, int]]:
    posteriors = SpanPosteriors(LinearChain(chain.potentials.double(), chain.lengths), scheme)
    return [(posteriors, row) for row in range(len(chain.lengths))]


def _sentence(doc: Doc, bounds: Bounds, span: Span) -> str:
    start, end = next((s, e) for s, e in bounds if s <= span.start < e)
    return cast(str, doc[start:end].text)
