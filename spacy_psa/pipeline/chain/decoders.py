"""Three ways to choose the spans of a doc from the distribution over its analyses."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple

from spacy.tokens import Doc

from spacy_psa.pipeline.chain.expected_f1 import best_expected_f1
from spacy_psa.pipeline.chain.refined_chain import RefinedChain
from spacy_psa.pipeline.chain.span_posteriors import SpanPosteriors
from spacy_psa.pipeline.chain.span_tags import Spans, SpanScheme
from spacy_psa.pipeline.inference import Decode, Infer, SpanPrediction, joined
from spacy_psa.sentences import document_batches, document_numbers
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.pair_chain import join

MBR_DOCS = 256  # docs with potentials in memory at a time


class SpanDecoder(ABC):
    """Base class of the ways to choose spans.

    Predictions have the probability of each span with `scores`, and the entropy of the distribution
    with `entropy`.
    """

    overlapping: ClassVar[bool] = False
    """Whether the spans may overlap. If so, they are not one analysis of the doc."""

    def __init__(self, *, scores: bool, entropy: bool):
        self.scores = scores
        self.entropy = entropy

    def predict(self, docs: list[Doc], infer: Infer, scheme: SpanScheme) -> list[SpanPrediction]:
        """Choose the spans of each doc; `scheme` is the meaning of the tags."""
        return list(map(joined, infer(docs, partial(self._read_batch, scheme))))

    def _read_batch(self, scheme: SpanScheme, batch: Any) -> list[SpanPrediction]:
        chain = batch.dist
        if not isinstance(chain, RefinedChain):
            return self.read(chain, scheme)
        return [
            prediction._replace(spans=chain.spans(row, prediction.spans))
            for row, prediction in enumerate(self.read(chain, chain.scheme))
        ]

    @abstractmethod
    def read(self, chain: LinearChain, scheme: SpanScheme) -> list[SpanPrediction]:
        """Choose the spans of each sentence of a chain."""

    def _with_scores(
        self, chain: LinearChain, scheme: SpanScheme, spans: list[Spans]
    ) -> list[SpanPrediction]:
        """Add the probabilities of the spans of each sentence, and the entropies, if asked for."""
        entropies = chain.entropy.tolist() if self.entropy else [None] * len(spans)
        posteriors = SpanPosteriors(chain, scheme) if self.scores else None
        predictions = []
        for row, (own, entropy) in enumerate(zip(spans, entropies, strict=True)):
            scores = None
            if posteriors is not None:
                indexed = [(s, e, scheme.label_index(label)) for s, e, label in own]
                scores = [float(posteriors.of(row, *span)) for span in indexed]
            predictions.append(SpanPrediction(own, scores, entropy))
        return predictions


class ViterbiDecoder(SpanDecoder):
    """Chooses the spans of the most probable analysis of each sentence."""

    def read(self, chain: LinearChain, scheme: SpanScheme) -> list[SpanPrediction]:
        spans = scheme.decode_batch(chain.argmax)
        if self.scores or self.entropy:
            return self._with_scores(chain, scheme, spans)
        return list(map(SpanPrediction, spans))


class ExpectedF1Decoder(SpanDecoder):
    """Chooses the spans with the highest expected F1 over a document (minimum Bayes risk).

    Docs that follow each other may be one document; see `spacy_psa.sentences.same_document`.
    """

    def predict(self, docs: list[Doc], infer: Infer, scheme: SpanScheme) -> list[SpanPrediction]:
        predictions = []
        for some in document_batches(docs, MBR_DOCS):
            rows = infer(some, partial(_rows, scheme))
            for _, own in groupby(zip(document_numbers(some), rows), key=itemgetter(0)):
                predictions += self._of_document([parts for _, parts in own])
        return predictions

    def _of_document(self, docs: list[list[tuple[int, "_Row"]]]) -> list[SpanPrediction]:
        rows = [row for parts in docs for _, row in parts]
        if not rows:
            return [joined([]) for _ in docs]
        # A sentence without forbidden spans has fewer tags.
        scheme = max((row.scheme for row in rows), key=lambda scheme: len(scheme.tags))
        read = iter(self.read(join([row.chain for row in rows]), scheme))
        return [joined([(start, row.labelled(next(read))) for start, row in own]) for own in docs]

    def read(self, chain: LinearChain, scheme: SpanScheme) -> list[SpanPrediction]:
        chain = chain.double()
        best = best_expected_f1(chain, scheme)
        spans = [[(s, e, scheme.labels[label]) for s, e, label in own] for own in best]
        return self._with_scores(chain, scheme, spans)


class ThresholdDecoder(SpanDecoder):
    """Chooses all spans whose probability is at least a threshold, also overlapping ones."""

    overlapping = True

    def __init__(self, threshold: float, *, scores: bool, entropy: bool):
        super().__init__(scores=scores, entropy=entropy)
        self.threshold = threshold

    def read(self, chain: LinearChain, scheme: SpanScheme) -> list[SpanPrediction]:
        entropies = chain.entropy.tolist() if self.entropy else [None] * len(chain.lengths)
        predictions = [SpanPrediction([], [], entropy) for entropy in entropies]
        rows, values = SpanPosteriors(chain, scheme).above(self.threshold)
        for (row, start, end, label), value in zip(rows.tolist(), values.tolist()):
            spans, scores, _ = predictions[row]
            assert scores is not None
            spans.append((start, end, scheme.labels[label]))
            scores.append(value)
        return predictions


def make_decoder(decode: Decode, threshold: float, *, scores: bool, entropy: bool) -> SpanDecoder:
    """Make the decoder of a setting; `scores` and `entropy` are those of `SpanDecoder`.

    Predictions of "mbr" and "threshold" always have the probabilities of spans.
    """
    if decode == "viterbi":
        return ViterbiDecoder(scores=scores, entropy=entropy)
    if decode == "mbr":
        return ExpectedF1Decoder(scores=True, entropy=entropy)
    return ThresholdDecoder(float(threshold), scores=True, entropy=entropy)


class _Row(NamedTuple):
    """A sentence of a chain."""

    chain: LinearChain
    scheme: SpanScheme
    """The meaning of its tags."""
    label: Callable[[Spans], Spans]
    """Translates spans that are read by the scheme into spans with the labels of the component."""

    def labelled(self, prediction: SpanPrediction) -> SpanPrediction:
        return prediction._replace(spans=self.label(prediction.spans))


def _rows(scheme: SpanScheme, batch: Any) -> list[_Row]:
    """List the sentences of a batch; ValueError if one has no analysis."""
    chain = batch.dist
    _ = chain.argmax  # raises if no analysis is possible
    rows = chain.split()
    if isinstance(chain, RefinedChain):
        return [_Row(row, chain.scheme, partial(chain.spans, i)) for i, row in enumerate(rows)]
    return [_Row(row, scheme, lambda spans: spans) for row in rows]
