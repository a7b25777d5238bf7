"""Promises of recall: thresholds that miss at most a promised share of the entities.

The loss of a document is the share of its entities whose probability is below the threshold, and
the risk of a threshold is the mean loss of documents of the same kind. Documents are drawn
independently. Then with a probability of at least 1 - δ over the documents of the calibration, the
risk of the threshold is at most α: the loss grows with the threshold, so the largest one whose risk
is shown to be at most α by a test of level δ is valid (Bates et al. 2021, "Distribution-free,
risk-controlling prediction sets"; Angelopoulos et al. 2022, "Conformal risk control", has the mean
in place of the probability). The test is that of Hoeffding and Bentkus (Angelopoulos et al. 2021,
"Learn then test"), with the p-value of n documents with the mean loss r

    p = min(exp(-n kl(r, α)), e P(Binomial(n, α) <= ⌈n r⌉))

For documents of another kind, weights w = p_target(x) / p(x) of their features x make the
documents count as often as the target would have them (Tibshirani et al. 2019, "Conformal
prediction under covariate shift"). The weights are estimated from texts without annotation, and n
becomes (Σ w)² / Σ w². This is an approximation, and it assumes that texts of the same features have
the same losses.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy
import torch
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_psa.analysis.calibration import SPAN_KINDS, SpanKind, calibrating
from spacy_psa.analysis.conformal import BATCH, as_saved, labelled_probabilities, observed_coverage
from spacy_psa.corpora.unlabelled import read_texts
from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.redaction import shown_spans
from spacy_psa.pipeline.coverage import Promise
from spacy_psa.pipeline.nested.places import label_parts
from spacy_psa.pipeline.nested.spans import NestedSpanLabeler
from spacy_psa.pipeline.upstream import with_upstream
from spacy_psa.scoring.result import read_examples
from spacy_psa.sentences import document_batches, document_numbers, name_of_document, unannotated

Floats = NDArray[numpy.float64]
ROUNDING = 1 - 1e-4
"""Lowers thresholds, since sentences in other batches have other rounding errors."""
SHAPES: list[int | str] = ["IS_TITLE", "IS_UPPER", "IS_DIGIT", "IS_PUNCT"]
RIDGE = 1.0
"""The weight of the squares of the weights in the logistic regression."""


def p_value(mean: float, documents: float, risk: float) -> float:
    """Compute the Hoeffding-Bentkus p-value of "the risk is above `risk`".

    `mean` is the mean loss of the documents, and `documents` their number.

    Examples:
        >>> round(p_value(0.0, 299, 0.01), 4)  # 0.99 ** 299
        0.0495
    """
    if mean >= risk:
        return 1.0
    entropy = (1 - mean) * math.log((1 - mean) / (1 - risk))
    entropy += mean * math.log(mean / risk) if mean > 0 else 0.0
    n = math.floor(documents)
    most = min(n, math.ceil(n * mean - 1e-9))
    terms = [
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        + k * math.log(risk) + (n - k) * math.log1p(-risk)
        for k in range(most + 1)
    ]  # fmt: skip
    bentkus = math.e * math.fsum(map(math.exp, terms))
    return min(1.0, math.exp(-documents * entropy), bentkus)


def documents_needed(recall: float, confidence: float) -> int:
    """Compute the number of documents that a promise needs if they have no loss at all."""
    return math.ceil(math.log(1 - confidence) / math.log(recall) - 1e-9)


def allowed_loss(documents: float, recall: float, confidence: float) -> float | None:
    """Compute the greatest mean loss of documents at which a promise can be given; None if none."""
    risk = 1 - recall
    if p_value(0.0, documents, risk) > 1 - confidence:
        return None
    low, high = 0.0, risk
    while high - low > 1e-9:
        middle = (low + high) / 2
        fits = p_value(middle, documents, risk) <= 1 - confidence
        low, high = (middle, high) if fits else (low, middle)
    return low


def effective_size(weights: Floats) -> float:
    """Compute the number of documents that weighted ones count as, (Σ w)² / Σ w²."""
    return float(weights.sum() ** 2 / (weights**2).sum()) if weights.sum() else 0.0


def recall_threshold(
    documents: Sequence[Sequence[float]],
    recall: float,
    confidence: float,
    weights: Sequence[float] | None = None,
) -> float:
    """Find the largest threshold that keeps a promise of recall; an InputError if none does.

    Args:
        documents: for each document, the probability of each of its true entities. Documents
            without entities do not count.
        recall: the promised mean share of the entities of a document, between 0 and 1.
        confidence: the probability 1 - δ that the promise is kept, between 0 and 1.
        weights: a weight for each document; None for 1.
    """
    given = numpy.ones(len(documents)) if weights is None else numpy.array(weights, dtype=float)
    kept = [(numpy.array(p), w) for p, w in zip(documents, given, strict=True) if len(p)]
    w = numpy.array([weight for _, weight in kept])
    size = effective_size(w)
    loss = allowed_loss(size, recall, confidence)
    if loss is None:
        needed = documents_needed(recall, confidence)
        weighted = "" if weights is None else f", which count as {size:,.0f} by their weights"
        raise InputError(
            f"a recall of {recall:g} with a confidence of {confidence:g} needs at least {needed:,} "
            f"documents with entities, even if nothing is missed, and there are {len(kept):,}"
            f"{weighted}: use more, or promise less"
        )
    values = numpy.concatenate([p for p, _ in kept])
    shares = numpy.concatenate([numpy.full(len(p), v / len(p)) for p, v in kept]) / w.sum()
    order = numpy.argsort(-values, kind="stable")
    reached = numpy.cumsum(shares[order]) >= 1 - loss - 1e-12
    least = float(values[order][reached.argmax()])
    if least <= 0:
        impossible = float(shares[values <= 0].sum())
        raise InputError(
            f"{impossible:.2%} of the entities have the probability 0 by the model, so that no "
            f"threshold has a recall of {recall:g} with a confidence of {confidence:g} (their "
            "labels are unknown, they cross sentences, or they are too long for the model): "
            "promise less"
        )
    return least


def features(pipe: SpanKind, docs: Sequence[Doc]) -> Floats:
    """Describe documents by numbers that a shift may change, (documents, F).

    They are the logarithm of the number of tokens; the expected number of spans of each label and
    the entropy of the analyses, by token; and the shares of tokens with a capital first, with
    capitals only, with digits and with punctuation.
    """
    numbers = document_numbers(docs)
    if isinstance(pipe, NestedSpanLabeler):
        spans_of = label_parts(pipe.labels).numpy()
    else:
        spans_of = numpy.eye(len(pipe.tags))[:, [tag[0] in "BS" for tag in pipe.tags]]
    sums = numpy.zeros((max(numbers, default=-1) + 1, spans_of.shape[1] + 6))
    rows = iter(numbers)
    for batch in document_batches(docs, BATCH):
        for doc, analyses in zip(batch, pipe.analyses(batch)):
            shapes = doc.to_array(SHAPES).sum(0)
            spans = analyses.marginals.sum(0) @ spans_of
            sums[next(rows)] += [len(doc), *spans, analyses.entropy, *shapes]
    sizes = numpy.maximum(sums[:, :1], 1)
    return numpy.concatenate([numpy.log(sizes), sums[:, 1:] / sizes], 1)


def density_ratio(source: Floats, target: Floats) -> Floats:
    """Estimate p_target(x) / p_source(x) of the source documents by a logistic regression.

    `source` (S, F) and `target` (T, F) are the features of documents.
    """
    every = numpy.concatenate([source, target])
    scaled = (every - every.mean(0)) / numpy.maximum(every.std(0), 1e-9)
    x = torch.from_numpy(numpy.c_[scaled, numpy.ones(len(every))])
    y = torch.arange(len(every)) >= len(source)
    w = torch.zeros(x.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        errors = torch.nn.functional.binary_cross_entropy_with_logits(
            x @ w, y.double(), reduction="sum"
        )
        total = errors + RIDGE / 2 * (w[:-1] ** 2).sum()
        total.backward()
        return total

    optimizer.step(loss)
    logits = (x @ w).detach().numpy()[: len(source)]
    return numpy.exp(logits) * len(source) / len(target)


def calibrate_recall(
    model: str,
    paths: Mapping[str, Path],
    recall: float,
    confidence: float,
    labels: Sequence[str] = (),
    target: Path | None = None,
    output: Path | None = None,
    pipe: str | None = None,
    json_path: Path | None = None,
    gpu_id: int = -1,
) -> tuple[SpanKind, list[dict[str, Any]]]:
    """Find the thresholds of a promised recall, and store them in the component.

    The arguments that are not listed are those of `calibrate`.

    Args:
        recall: the promised recall.
        confidence: the probability that the promise is kept.
        labels: the labels to promise it for, each with a threshold of its own; none for a common
            threshold of all.
        target: texts of the kind that will be annotated, without annotation, to weight the
            documents of "dev" by; None for no weights.

    Returns:
        The component; and for each label and file a row with `label`, `data`, `documents`,
        `entities`, `least`, the observed recall as the mean over documents (`recall`) and of all
        entities together (`of_all`), `shown`, the spans shown for each entity, and `read`, the
        share of texts with a span that the best analysis does not have.
    """
    for option, value in (("--recall", recall), ("--confidence", confidence)):
        if not 0 < value < 1:
            raise InputError(f"{option} {value:g}: choose a number between 0 and 1, such as 0.95")
    asked, kinds = list(labels or [""]), get_args(SpanKind)
    read = {**paths, "target": target} if target else paths
    opened = calibrating(model, pipe, kinds, SPAN_KINDS, read, output, json_path, gpu_id)
    with opened as (nlp, component, record):
        if unknown := sorted({*labels} - {*component._span_labels}):
            known = ", ".join(component._span_labels)
            raise InputError(f"--label {unknown[0]}: {component.name} has the labels {known}")
        data = {
            part: with_upstream(nlp, component.name, read_examples(nlp, path))
            for part, path in paths.items()
        }
        truths = {part: labelled_probabilities(component, each) for part, each in data.items()}
        weights = _weights(nlp, component, data["dev"], target) if target else None
        promises = dict(component.calibrated.recall or {}) if labels else {}
        for label in asked:
            documents = _of_label(truths["dev"], label)
            try:
                least = recall_threshold(documents, recall, confidence, weights)
            except InputError as error:
                place = f"{paths['dev']}: {label}: " if label else f"{paths['dev']}: "
                raise InputError(f"{place}{error}") from error
            count = sum(map(bool, documents))
            promises[label] = Promise(recall, confidence, as_saved(least * ROUNDING), count)
        component.calibrated.recall = promises
        costs = {part: _costs(component, each, asked) for part, each in data.items()}
        rows = [
            {"label": label or "all", "data": part, "least": promises[label].least}
            | _observed(_of_label(truths[part], label), promises[label].least)
            | costs[part][label]
            for label in asked
            for part in data
        ]
        record |= {"recall": recall, "confidence": confidence}
        record |= {"target": target and str(target), "rows": rows}
    return component, rows


def _of_label(truths: Sequence[Sequence[tuple[str, float]]], label: str) -> list[list[float]]:
    return [[p for name, p in items if label in ("", name)] for items in truths]


def _weights(nlp: Language, pipe: SpanKind, dev: Sequence[Example], path: Path) -> list[float]:
    before = nlp.pipe_names[: nlp.pipe_names.index(pipe.name)]
    texts = (unannotated(doc, document=True) for doc in read_texts(path, nlp) if len(doc))
    with nlp.select_pipes(enable=before):
        target = list(nlp.pipe(texts))
    if not target:
        raise InputError(f"{path}: has no text; use a file with text")
    # The predicted docs have the words, the references the numbers of the documents.
    docs = [example.predicted for example in dev]
    for example in dev:
        example.predicted.user_data |= name_of_document(example.reference)
    return density_ratio(features(pipe, docs), features(pipe, target)).tolist()


def _observed(documents: Sequence[Sequence[float]], least: float) -> dict[str, Any]:
    every = [p for items in documents for p in items]
    return {
        "documents": sum(map(bool, documents)),
        "entities": len(every),
        "recall": observed_coverage(documents, least),
        "of_all": sum(p >= least for p in every) / len(every) if every else None,
    }


def _costs(
    pipe: SpanKind, examples: Sequence[Example], asked: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Compute what showing the spans of each label costs, or of all labels for ""."""
    labels = {label: [label] if label else pipe._span_labels for label in asked}
    every = [name for names in labels.values() for name in names]
    shown, unsure, gold = (Counter[str]() for _ in range(3))
    for batch in document_batches(examples, BATCH):
        docs = [example.predicted for example in batch]
        sets = shown_spans(pipe, docs, every)
        for example, spans, analyses in zip(batch, sets, pipe.analyses(docs), strict=True):
            best = {(span.start, span.end, span.label_) for span in analyses.best}
            reference = pipe.store.reference(pipe.name, example.reference) or ()
            for label, names in labels.items():
                own = [span for span, _ in spans if span.label_ in names]
                shown[label] += len(own)
                unsure[label] += any((s.start, s.end, s.label_) not in best for s in own)
                gold[label] += sum(span.label_ in names for span in reference)
    return {
        label: {
            "shown": shown[label] / gold[label] if gold[label] else None,
            "read": unsure[label] / len(examples),
        }
        for label in asked
    }
