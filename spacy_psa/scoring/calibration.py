"""How far confidences can be believed: calibration error, Brier score, precision and recall.

A predicted span with confidence c is right (1) where the truth has the same span with the
same label, else wrong (0). Of N predicted spans with confidences c_i and outcomes y_i:

    ECE   = Σ_b (N_b / N) |mean of y in bin b - mean of c in bin b|
    Brier = (1 / N) Σ_i (c_i - y_i)²
    AUPR  = Σ_k (R_k - R_{k-1}) P_k

ECE, the expected calibration error (Naeini et al. 2015, Guo et al. 2017), is over `BINS`
bins. AUPR is the area under the precision-recall curve as average precision: P_k and R_k
are precision and recall of the spans whose confidence reaches the k-th highest value, spans
of equal confidence taken together. Recall is of all spans in the truth, so what was never
predicted is lost: the area is at most the recall of the prediction.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray
from spacy.scorer import Scorer, get_ner_prf
from spacy.tokens import Doc, SpanGroup
from spacy.training import Example

from spacy_psa.errors import InputError

BINS = 15
MISSING = 0  # Token.ent_iob


class Judged(NamedTuple):
    """Predicted spans, judged by the truth."""

    confidence: NDArray[numpy.float64]
    """(N,) from 0 to 1."""
    right: NDArray[numpy.bool_]
    """(N,)"""
    missed: int
    """Spans of the truth that are not among the predicted ones."""


class Bin(NamedTuple):
    """The predicted spans whose confidence is above `lower` and at most `upper`."""

    lower: float
    upper: float
    size: int
    confidence: float | None
    """Their mean confidence; None where there is none."""
    accuracy: float | None
    """The fraction that is right; None where there is none."""


def judge(examples: Iterable[Example], spans_key: str, gold_key: str | None = None) -> Judged:
    """Compare the spans of predicted.spans[spans_key], with their attrs["scores"], to the
    truth: reference.ents, or reference.spans[gold_key].

    Docs whose reference has no such annotation do not count, nor do predicted spans over
    reference tokens without entity annotation, as in spaCy's own score of entities.

    Errors: InputError where no doc has the group, or a group has not one score a span.
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
        found = _predicted(example, spans_key, entities=gold_key is None)
        best += found.values()
        right += [span in gold for span in found]
        missed += len(gold - found.keys())
    if seen and not with_key:
        raise InputError(
            f'no document has doc.spans["{spans_key}"]: give the name of a component with '
            "confidence = true as spans_key"
        )
    return Judged(numpy.array(best, dtype="float64"), numpy.array(right, dtype=bool), missed)


def reliability(judged: Judged, bins: int = BINS, adaptive: bool = False) -> list[Bin]:
    """The reliability diagram as data.

    bins: how many of equal width between 0 and 1; or, if adaptive, how many that hold
    about as many spans each, fewer where many confidences are equal.

    Errors: ValueError where there are no bins, or a confidence is not from 0 to 1.
    """
    confidence = judged.confidence
    if bins < 1:
        raise ValueError(f"bins is {bins}: take 1 or more")
    # 1 + 1e-6 is 1 rounded by float32.
    if not ((confidence >= 0) & (confidence <= 1 + 1e-6)).all():
        raise ValueError("a confidence is not from 0 to 1")
    edges = numpy.arange(bins + 1) / bins
    if adaptive and len(confidence):
        inner = numpy.quantile(confidence, edges[1:-1], method="inverted_cdf")
        edges = numpy.unique([0.0, *inner, 1.0])
    # In the bin above an edge stands what is greater; 0 itself in the first.
    place = numpy.searchsorted(edges[1:-1], confidence, side="left")
    found = []
    for i, (lower, upper) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist())):
        inside = place == i
        size = int(inside.sum())
        means = (
            (float(confidence[inside].mean()), float(judged.right[inside].mean()))
            if size
            else (None, None)
        )
        found.append(Bin(lower, upper, size, *means))
    return found


def calibration_error(bins: Iterable[Bin]) -> float | None:
    """ECE of `reliability`'s bins; None where they are empty."""
    gaps = [
        (b.size, abs(b.accuracy - b.confidence))
        for b in bins
        if b.confidence is not None and b.accuracy is not None
    ]
    total = sum(size for size, _ in gaps)
    return sum(size * gap for size, gap in gaps) / total if total else None


def brier(judged: Judged) -> float | None:
    """The mean squared distance of confidence and outcome; None where nothing is predicted."""
    if not len(judged.right):
        return None
    return float(((judged.confidence - judged.right) ** 2).mean())


def average_precision(judged: Judged) -> float | None:
    """The area under the precision-recall curve; None where the truth has no span."""
    total = int(judged.right.sum()) + judged.missed
    if not total:
        return None
    order = numpy.argsort(-judged.confidence)
    confidence, hits = judged.confidence[order], judged.right[order].cumsum()
    # The last place of each run of equal confidences.
    last = numpy.flatnonzero(numpy.append(confidence[1:] != confidence[:-1], True)[: len(order)])
    gained = numpy.diff(hits[last], prepend=0)
    return float((gained * hits[last] / (last + 1)).sum() / total)


def summary(judged: Judged, bins: int = BINS) -> dict[str, float | None]:
    """`ece`, `ece_adaptive`, `brier` and `aupr`."""
    return {
        "ece": calibration_error(reliability(judged, bins)),
        "ece_adaptive": calibration_error(reliability(judged, bins, adaptive=True)),
        "brier": brier(judged),
        "aupr": average_precision(judged),
    }


def score_calibration(
    examples: Iterable[Example],
    *,
    spans_key: str,
    gold_key: str | None,
    bins: int,
    **_: Any,
) -> dict[str, Any]:
    """What spaCy says of the predicted spans (`ents_p`, `ents_r`, `ents_f`,
    `ents_per_type`), and `ents_ece`, `ents_ece_adaptive`, `ents_brier` and `ents_aupr` of
    the spans with confidences; with a gold_key, that key in the place of `ents`.

    Errors: as of `judge`.
    """
    examples = list(examples)
    name = gold_key or "ents"
    found = summary(judge(examples, spans_key, gold_key), bins)
    return {**_accuracy(examples, gold_key), **{f"{name}_{key}": v for key, v in found.items()}}


def calibration_scorer(
    spans_key: str = "ner", gold_key: str | None = None, bins: int = BINS
) -> Callable[..., dict[str, Any]]:
    """`spacy-psa.calibration_scorer.v1`: see `score_calibration`.

    spans_key: the name of a component with `confidence = true`, whose spans are in
    doc.spans[spans_key] with attrs["scores"].
    gold_key: the span group of the reference that they are compared to; None: its ents.
    bins: bins of the ECE; 15 is usual.

    Errors: InputError where bins is less than 1.
    """
    if bins < 1:
        raise InputError(f"calibration_scorer.v1: bins is {bins}: take 1 or more")
    return partial(score_calibration, spans_key=spans_key, gold_key=gold_key, bins=bins)


Key = tuple[int, int, int]  # start, end, label, over the reference's tokens


def _gold(reference: Doc, gold_key: str | None) -> set[Key] | None:
    if gold_key is None:
        known = reference.has_annotation("ENT_IOB")
        return {(e.start, e.end, e.label) for e in reference.ents} if known else None
    if gold_key not in reference.spans:
        return None
    return {(span.start, span.end, span.label) for span in reference.spans[gold_key]}


def _predicted(example: Example, spans_key: str, entities: bool) -> dict[Key, float]:
    """The confidence of each predicted span; of those that align to the same tokens of the
    reference, the highest."""
    group = example.predicted.spans.get(spans_key)
    if not group:
        return {}
    x2y = example.alignment.x2y
    iob = example.reference.to_array(["ENT_IOB"])
    found: dict[Key, float] = {}
    for span, score in zip(group, _scores(group, spans_key), strict=True):
        places = x2y[span.start : span.end]
        if not len(places):
            continue
        start, end = int(places[0]), int(places[-1]) + 1
        if entities and (iob[start:end] == MISSING).any():
            continue  # nobody knows
        key = (start, end, span.label)
        found[key] = max(float(score), found.get(key, 0.0))
    return found


def _scores(group: SpanGroup, spans_key: str) -> Any:
    scores = group.attrs.get("scores")
    if scores is None or len(scores) != len(group):
        count = "no" if scores is None else len(scores)
        raise InputError(
            f'doc.spans["{spans_key}"] has {len(group)} spans and {count} scores in '
            'attrs["scores"]: set confidence = true on the component'
        )
    return scores


def _accuracy(examples: list[Example], gold_key: str | None) -> dict[str, Any]:
    if gold_key is None:
        return get_ner_prf(examples)
    return Scorer.score_spans(
        examples,
        gold_key,
        getter=lambda doc, key: doc.spans.get(key, ()),
        has_annotation=lambda doc: gold_key in doc.spans,
        allow_overlap=True,
    )
