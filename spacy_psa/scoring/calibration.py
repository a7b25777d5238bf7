"""How far confidences can be believed: calibration error, Brier score, precision and recall.

A predicted span with confidence c is right (y = 1) if the truth has the same span with the same
label, otherwise wrong (y = 0). For N predicted spans with confidences c_i and outcomes y_i:

    ECE   = Σ_b (N_b / N) |mean of y in bin b - mean of c in bin b|
    Brier = (1 / N) Σ_i (c_i - y_i)²
    AUPR  = Σ_k (R_k - R_{k-1}) P_k

ECE, the expected calibration error (Naeini et al. 2015, Guo et al. 2017), is computed over
`BINS` bins. AUPR, the area under the precision-recall curve, is the average precision: P_k and
R_k are precision and recall of the spans whose confidence is at least the k-th highest value.
Spans of equal confidence are taken together. Recall is relative to all spans in the truth, so
spans that were never predicted count as missed, and AUPR is at most the recall of the
prediction.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc, SpanGroup
from spacy.training import Example

from spacy_psa.errors import InputError
from spacy_psa.scoring.sentence_counts import reference_places
from spacy_psa.scoring.span_group import accuracy

BINS = 15


class Judged(NamedTuple):
    """Predicted spans with their confidence and whether they are right."""

    confidence: NDArray[numpy.float64]
    """(N,) confidences from 0 to 1."""
    right: NDArray[numpy.bool_]
    """(N,) whether each span is right."""
    missed: int
    """The number of spans of the truth that were not predicted."""

    @property
    def f1(self) -> float | None:
        """The F1 of the predicted spans; None if there are none, and none were missed."""
        right = int(self.right.sum())
        spans = len(self.right) + right + self.missed
        return 2 * right / spans if spans else None


class Bin(NamedTuple):
    """The predicted spans whose confidence is above `lower` and at most `upper`.

    The first bin also has the spans of confidence 0.
    """

    lower: float
    upper: float
    size: int
    confidence: float | None
    """The mean confidence of the spans; None if the bin is empty."""
    accuracy: float | None
    """The fraction of spans that are right; None if the bin is empty."""


def judge(examples: Iterable[Example], spans_key: str, gold_key: str | None = None) -> Judged:
    """Compare predicted spans with the truth.

    The spans are those of predicted.spans[spans_key], with the confidences in attrs["scores"], and
    the truth is the span group `gold_key` of the reference; None means reference.ents. Two kinds of
    docs and spans do not count: docs whose reference has no such annotation, and predicted spans
    over reference tokens without entity annotation. spaCy's own entity scores leave out the same.
    """
    best: list[float] = []
    right: list[bool] = []
    missed = 0
    seen, with_key = 0, False
    for example in examples:
        seen += 1
        with_key |= spans_key in example.predicted.spans
        gold = _gold(example.reference, gold_key)
        if gold is None:
            continue
        predicted = _predicted(example, spans_key, entities=gold_key is None)
        best += predicted.values()
        right += [span in gold for span in predicted]
        missed += len(gold - predicted.keys())
    if seen and not with_key:
        raise InputError(
            f'no document has doc.spans["{spans_key}"]: set spans_key to the name of a component '
            "with confidence = true"
        )
    return Judged(numpy.array(best, dtype="float64"), numpy.array(right, dtype=bool), missed)


def reliability(judged: Judged, bins: int = BINS, adaptive: bool = False) -> list[Bin]:
    """Compute the bins of a reliability diagram.

    With `adaptive`, the bins hold about the same number of spans each, and there are fewer if many
    confidences are equal; otherwise they have equal width between 0 and 1.

    Raises:
        ValueError: if `bins` is below 1, or a confidence is not from 0 to 1.
    """
    confidence = judged.confidence
    if bins < 1:
        raise ValueError(f"bins is {bins}: must be 1 or more")
    # A confidence of 1 may become 1 + 1e-6 in float32.
    if not ((confidence >= 0) & (confidence <= 1 + 1e-6)).all():
        raise ValueError("confidences must be from 0 to 1")
    edges = numpy.arange(bins + 1) / bins
    if adaptive and len(confidence):
        inner = numpy.quantile(confidence, edges[1:-1], method="inverted_cdf")
        edges = numpy.unique([0.0, *inner, 1.0])
    # A confidence equal to an edge is in the bin below it; 0 is in the first bin.
    place = numpy.searchsorted(edges[1:-1], confidence, side="left")
    diagram = []
    for i, (lower, upper) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist())):
        inside = place == i
        size = int(inside.sum())
        means = (
            (float(confidence[inside].mean()), float(judged.right[inside].mean()))
            if size
            else (None, None)
        )
        diagram.append(Bin(lower, upper, size, *means))
    return diagram


def calibration_error(bins: Iterable[Bin]) -> float | None:
    """Compute the ECE from the bins of `reliability`; None if all bins are empty."""
    gaps = [
        (b.size, abs(b.accuracy - b.confidence))
        for b in bins
        if b.confidence is not None and b.accuracy is not None
    ]
    total = sum(size for size, _ in gaps)
    return sum(size * gap for size, gap in gaps) / total if total else None


def brier(judged: Judged) -> float | None:
    """Compute the mean squared difference of confidence and outcome; None without predictions."""
    if not len(judged.right):
        return None
    return float(((judged.confidence - judged.right) ** 2).mean())


def average_precision(judged: Judged) -> float | None:
    """Compute the area under the precision-recall curve; None if the truth has no spans."""
    total = int(judged.right.sum()) + judged.missed
    if not total:
        return None
    order = numpy.argsort(-judged.confidence)
    confidence, hits = judged.confidence[order], judged.right[order].cumsum()
    # The last index of each run of equal confidences.
    last = numpy.flatnonzero(numpy.append(confidence[1:] != confidence[:-1], True)[: len(order)])
    gained = numpy.diff(hits[last], prepend=0)
    return float((gained * hits[last] / (last + 1)).sum() / total)


def summary(judged: Judged, bins: int = BINS) -> dict[str, float | None]:
    """Compute `ece`, `ece_adaptive`, `brier` and `aupr`."""
    return {
        "ece": calibration_error(reliability(judged, bins)),
        "ece_adaptive": calibration_error(reliability(judged, bins, adaptive=True)),
        "brier": brier(judged),
        "aupr": average_precision(judged),
    }


def score_calibration(
    examples: Iterable[Example], *, spans_key: str, gold_key: str | None, bins: int, **_: Any
) -> dict[str, Any]:
    """Score the predicted spans and their confidences.

    The arguments are those of `judge`, and the number of bins of the ECE.

    Returns:
        spaCy's own scores of the predicted spans (`ents_p`, `ents_r`, `ents_f`, `ents_per_type`),
        and `ents_ece`, `ents_ece_adaptive`, `ents_brier` and `ents_aupr` of the spans with
        confidences. If `gold_key` is given, it replaces `ents` in these names.
    """
    examples = list(examples)
    name = gold_key or "ents"
    figures = summary(judge(examples, spans_key, gold_key), bins)
    return {**accuracy(examples, gold_key), **{f"{name}_{key}": v for key, v in figures.items()}}


def calibration_scorer(
    spans_key: str = "ner", gold_key: str | None = None, bins: int = BINS
) -> Callable[..., dict[str, Any]]:
    """The scorer `spacy-psa.calibration_scorer.v1`; see `score_calibration`.

    Args:
        spans_key: the name of a component with `confidence = true`. Its spans are in
            doc.spans[spans_key], with their confidences in attrs["scores"].
        gold_key: the span group of the reference with the truth; None means its entities.
        bins: the number of bins of the ECE; 15 is usual.

    Raises:
        InputError: if `bins` is below 1.
    """
    if bins < 1:
        raise InputError(f"calibration_scorer.v1: bins is {bins}: must be 1 or more")
    return partial(score_calibration, spans_key=spans_key, gold_key=gold_key, bins=bins)


Place = tuple[int, int, str]  # start, end and label, in tokens of the reference


def _gold(reference: Doc, gold_key: str | None) -> set[Place] | None:
    spans = reference.ents if gold_key is None else reference.spans.get(gold_key)
    if spans is None or (gold_key is None and not reference.has_annotation("ENT_IOB")):
        return None
    return {(span.start, span.end, span.label_) for span in spans}


def _predicted(example: Example, spans_key: str, entities: bool) -> dict[Place, float]:
    """Return the confidence of each predicted span.

    If several spans align to the same tokens of the reference, the highest confidence counts.
    """
    group = example.predicted.spans.get(spans_key)
    if not group:
        return {}
    best: dict[Place, float] = {}
    places = reference_places(example, group, annotated=entities)
    for place, score in zip(places, _scores(group, spans_key), strict=True):
        if place is not None:
            best[place] = max(float(score), best.get(place, 0.0))
    return best


def _scores(group: SpanGroup, spans_key: str) -> Any:
    scores = group.attrs.get("scores")
    if scores is None or len(scores) != len(group):
        count = "no" if scores is None else len(scores)
        raise InputError(
            f'doc.spans["{spans_key}"] has {len(group)} spans and {count} scores in '
            'attrs["scores"]: set confidence = true on the component'
        )
    return scores
