"""The spans that are predicted for docs."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from spacy.tokens import Doc, Span

from spacy_psa.pipeline.evidence import Node

Decode = Literal["viterbi", "mbr", "threshold"]
Infer = Callable[[list[Doc], Callable[[Any], Iterable[Any]]], list[list[tuple[int, Any]]]]
"""Calls a function with batches that have a `dist`; see `inference.infer`."""


class SpanPrediction(NamedTuple):
    """The spans that are predicted for a doc or a sentence."""

    spans: list[Node]
    """(start, end, label) of each span, over the tokens of the doc or the sentence."""
    scores: list[float] | None = None
    """The probability of each span; None if it was not asked for."""
    entropy: float | None = None
    """The entropy of the distribution over the analyses, in nats; None if it was not asked for."""


def joined(parts: list[tuple[int, SpanPrediction]]) -> SpanPrediction:
    """Join the predictions for the sentences of a doc, each with its first token."""
    if len(parts) == 1 and not parts[0][0]:
        return parts[0][1]
    spans = [(start + s, start + e, label) for start, part in parts for s, e, label in part.spans]
    scores = [score for _, part in parts for score in part.scores or ()]
    entropies = [part.entropy for _, part in parts if part.entropy is not None]
    scored = all(part.scores is not None for _, part in parts)
    entropy = float(sum(entropies)) if len(entropies) == len(parts) else None
    return SpanPrediction(spans, scores if scored else None, entropy)


def scored_spans(
    docs: Iterable[Doc], predictions: Iterable[SpanPrediction]
) -> list[list[tuple[Span, float]]]:
    """List the spans of each doc with their probabilities."""
    return [
        [(Span(doc, *node), p) for node, p in zip(predicted.spans, predicted.scores or ())]
        for doc, predicted in zip(docs, predictions, strict=True)
    ]
