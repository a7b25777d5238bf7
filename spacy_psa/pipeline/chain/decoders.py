"""Three ways to choose the spans of a doc from the distribution over its analyses."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from spacy.tokens import Doc
from spacy.util import minibatch

from spacy_psa.errors import SettingError, check_rates
from spacy_psa.pipeline.chain.expected_f1 import best_expected_f1
from spacy_psa.pipeline.chain.refined_chain import RefinedChain
from spacy_psa.pipeline.chain.span_posteriors import SpanPosteriors
from spacy_psa.pipeline.chain.span_tags import Spans, SpanScheme
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.pair_chain import join

Decode = Literal["viterbi", "mbr", "threshold"]
Infer = Callable[[list[Doc], Callable[[LinearChain], Iterable[Any]]], list[list[tuple[int, Any]]]]
MBR_DOCS = 256  # docs with potentials in memory at a time


class SpanPrediction(NamedTuple):
    """The spans that are predicted for a doc or a sentence.

    Examples:
        >>> prediction = SpanPrediction([(0, 2, "PER")], scores=[0.9])
        >>> prediction.spans, prediction.scores, prediction.entropy
        ([(0, 2, 'PER')], [0.9], None)
    """

    spans: Spans
    """(start, end, label) of each span, over the tokens of the doc or the sentence."""
    scores: list[float] | None = None
    """The probability of each span; None if it was not asked for."""
    entropy: float | None = None
    """The entropy of the distribution over the analyses, in nats; None if it was not asked for."""


class SpanDecoder(ABC):
    """Base class of the ways to choose spans.

    A subclass chooses the spans of each sentence (`read`).

    Args:
        scores: whether predictions have the probability of each span.
        entropy: whether predictions have the entropy of the distribution.

    Examples:
        >>> decoder = make_decoder("viterbi", 0.5, scores=True, entropy=False)
        >>> isinstance(decoder, SpanDecoder), decoder.overlapping
        (True, False)
    """

    overlapping: ClassVar[bool] = False
    """Whether the spans may overlap. If so, they are not one analysis of the doc."""

    def __init__(self, *, scores: bool, entropy: bool):
        self.scores = scores
        self.entropy = entropy

    def predict(self, docs: list[Doc], infer: Infer, scheme: SpanScheme) -> list[SpanPrediction]:
        """Choose the spans of each doc.

        Args:
            docs: the docs.
            infer: gives the distribution of the docs' sentences to a function; see
                `ChainQueries.infer`.
            scheme: the meaning of the tags in these distributions.
        """
        found = infer(docs, lambda chain: self.read_refined(chain, scheme))
        return [joined(parts) for parts in found]

    def read_refined(self, chain: LinearChain, scheme: SpanScheme) -> list[SpanPrediction]:
        """Choose the spans of each sentence of a chain that may have a scheme of its own."""
        if not isinstance(chain, RefinedChain):
            return self.read(chain, scheme)
        found = self.read(chain, chain.scheme)
        return [
            prediction._replace(spans=chain.spans(row, prediction.spans))
            for row, prediction in enumerate(found)
        ]

    @abstractmethod
    def read(self, chain: LinearChain, scheme: SpanScheme) -> list[SpanPrediction]:
        """Choose the spans of each sentence of a chain."""

    def _scores(
        self, chain: LinearChain, scheme: SpanScheme, spans: list[Spans]
    ) -> list[list[float]] | list[None]:
        """Compute the probabilities of the spans of each sentence, if they are wanted."""
        if not self.scores:
            return [None] * len(spans)
        posteriors = SpanPosteriors(chain, scheme)
        return [
            [float(posteriors.of(row, s, e, scheme.label_index(label))) for s, e, label in found]
            for row, found in enumerate(spans)
        ]

    def _finish(
        self, chain: LinearChain, spans: list[Spans], scores: list[list[float]] | list[None]
    ) -> list[SpanPrediction]:
        entropies = chain.entropy.tolist() if self.entropy else [None] * len(spans)
        return [SpanPrediction(*parts) for parts in zip(spans, scores, entropies, strict=True)]


class ViterbiDecoder(SpanDecoder):
    """Chooses the spans of the most probable analysis of each sentence.

    Args:
        scores: whether predictions have the probability of each span.
        entropy: whether predictions have the entropy of the distribution.

    Examples:
        >>> import torch
        >>> scheme = SpanScheme(["PER"], "BIO")  # the tags O, B-PER and I-PER
        >>> emissions = torch.tensor([[[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]])
        >>> transitions, start, end = map(torch.from_numpy, scheme.legal())
        >>> chain = LinearChain.from_emissions(emissions, torch.tensor([2]))
        >>> chain = chain.constrain(transitions=transitions, start=start, end=end)
        >>> ViterbiDecoder(scores=False, entropy=False).read(chain, scheme)
        [SpanPrediction(spans=[(0, 1, 'PER')], scores=None, entropy=None)]
    """

    def read(self, chain: LinearChain, scheme: SpanScheme) -> list[SpanPrediction]:
        spans = scheme.decode_batch(chain.argmax)
        return self._finish(chain, spans, self._scores(chain, scheme, spans))


class ExpectedF1Decoder(SpanDecoder):
    """Chooses the spans with the highest expected F1 over the whole doc (minimum Bayes risk).

    Args:
        scores: whether predictions have the probability of each span.
        entropy: whether predictions have the entropy of the distribution.

    Examples:
        >>> import torch
        >>> scheme = SpanScheme(["PER"], "BIO")  # the tags O, B-PER and I-PER
        >>> emissions = torch.tensor([[[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]])
        >>> transitions, start, end = map(torch.from_numpy, scheme.legal())
        >>> chain = LinearChain.from_emissions(emissions, torch.tensor([2]))
        >>> chain = chain.constrain(transitions=transitions, start=start, end=end)
        >>> (prediction,) = ExpectedF1Decoder(scores=True, entropy=False).read(chain, scheme)
        >>> prediction.spans, [round(score, 2) for score in prediction.scores]
        ([(0, 1, 'PER')], [0.71])
    """

    def predict(self, docs: list[Doc], infer: Infer, scheme: SpanScheme) -> list[SpanPrediction]:
        return [
            self._of_doc(parts)
            for batch in minibatch(docs, size=MBR_DOCS)
            for parts in infer(batch, lambda chain: _rows(chain, scheme))
        ]

    def _of_doc(self, parts: list[tuple[int, "_Row"]]) -> SpanPrediction:
        if not parts:
            return joined([])
        starts, rows = zip(*parts)
        # A sentence without wrong spans has fewer tags.
        scheme = max((row.scheme for row in rows), key=lambda scheme: len(scheme.tags))
        found = self.read(join([row.chain for row in rows]), scheme)
        return joined(
            [
                (start, part._replace(spans=row.label(part.spans)))
                for start, row, part in zip(starts, rows, found)
            ]
        )

    def read(self, chain: LinearChain, scheme: SpanScheme) -> list[SpanPrediction]:
        chain = chain.double()
        best = best_expected_f1(chain, scheme)
        spans = [[(s, e, scheme.labels[label]) for s, e, label in found] for found in best]
        return self._finish(chain, spans, self._scores(chain, scheme, spans))


class ThresholdDecoder(SpanDecoder):
    """Chooses all spans whose probability is at least a threshold, overlapping ones too.

    Args:
        threshold: a probability from 0 to 1.
        scores: whether predictions have the probability of each span.
        entropy: whether predictions have the entropy of the distribution.

    Examples:
        >>> import torch
        >>> scheme = SpanScheme(["PER"], "BIO")  # the tags O, B-PER and I-PER
        >>> emissions = torch.tensor([[[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]])
        >>> transitions, start, end = map(torch.from_numpy, scheme.legal())
        >>> chain = LinearChain.from_emissions(emissions, torch.tensor([2]))
        >>> chain = chain.constrain(transitions=transitions, start=start, end=end)
        >>> decoder = ThresholdDecoder(0.15, scores=True, entropy=False)
        >>> (prediction,) = decoder.read(chain, scheme)
        >>> prediction.spans, [round(score, 2) for score in prediction.scores]
        ([(0, 1, 'PER'), (0, 2, 'PER'), (1, 2, 'PER')], [0.71, 0.19, 0.22])
    """

    overlapping = True

    def __init__(self, threshold: float, *, scores: bool, entropy: bool):
        super().__init__(scores=scores, entropy=entropy)
        self.threshold = threshold

    def read(self, chain: LinearChain, scheme: SpanScheme) -> list[SpanPrediction]:
        found: list[Spans] = [[] for _ in chain.lengths]
        scores: list[list[float]] = [[] for _ in chain.lengths]
        spans, values = SpanPosteriors(chain, scheme).above(self.threshold)
        for (row, start, end, label), value in zip(spans.tolist(), values.tolist()):
            found[row].append((start, end, scheme.labels[label]))
            scores[row].append(value)
        return self._finish(chain, found, scores)


def make_decoder(decode: Decode, threshold: float, *, scores: bool, entropy: bool) -> SpanDecoder:
    """Make the decoder with a name.

    Args:
        decode: "viterbi", "mbr" or "threshold".
        threshold: a probability from 0 to 1, for "threshold".
        scores: whether predictions have the probability of each span; "mbr" and "threshold"
            always give it.
        entropy: whether predictions have the entropy of the distribution.

    Raises:
        SettingError: if there is no decoder with this name, or if the threshold is not from 0
            to 1.

    Examples:
        >>> type(make_decoder("mbr", 0.5, scores=False, entropy=False)).__name__
        'ExpectedF1Decoder'
    """
    check_rates(threshold=threshold)
    if decode == "viterbi":
        return ViterbiDecoder(scores=scores, entropy=entropy)
    if decode == "mbr":
        return ExpectedF1Decoder(scores=True, entropy=entropy)
    if decode == "threshold":
        return ThresholdDecoder(float(threshold), scores=True, entropy=entropy)
    raise SettingError("decode", decode, f"take one of {get_args(Decode)}")


def joined(parts: list[tuple[int, SpanPrediction]]) -> SpanPrediction:
    """Join the predictions for the sentences of a doc.

    Args:
        parts: the first token and the prediction of each sentence.
    """
    if len(parts) == 1 and not parts[0][0]:
        return parts[0][1]
    spans = [(start + s, start + e, label) for start, part in parts for s, e, label in part.spans]
    scores = [score for _, part in parts for score in part.scores or ()]
    entropies = [part.entropy for _, part in parts if part.entropy is not None]
    scored = all(part.scores is not None for _, part in parts)
    entropy = float(sum(entropies)) if len(entropies) == len(parts) else None
    return SpanPrediction(spans, scores if scored else None, entropy)


class _Row(NamedTuple):
    """A sentence of a chain."""

    chain: LinearChain
    """The distribution over its tag sequences."""
    scheme: SpanScheme
    """The meaning of the tags."""
    label: Callable[[Spans], Spans]
    """Gives the spans that are read by the scheme their labels."""


def _rows(chain: LinearChain, scheme: SpanScheme) -> list[_Row]:
    """Give each sentence of a chain.

    Raises:
        ValueError: if a sentence has no analysis.
    """
    _ = chain.argmax  # raises if no analysis is possible
    rows = chain.split()
    if isinstance(chain, RefinedChain):
        return [_Row(row, chain.scheme, partial(chain.spans, i)) for i, row in enumerate(rows)]
    return [_Row(row, scheme, lambda spans: spans) for row in rows]
