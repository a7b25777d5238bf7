"""How far counts of mentions and distinct entities can be believed, and their correction.

A model is wrong about many mentions alike, so that the numbers of documents vary more than its
probabilities suggest. On annotated documents, with true numbers N, expected numbers μ and variances
v of each document, the correction of a label is

    ratio r     = Σ N / Σ μ
    dispersion  = Σ (N - r μ)² / Σ v · n / (n - 1)
    uncertainty = Σ (N - r μ)² / (Σ μ)² · n / (n - 1), the variance of r

(quasi-likelihood and the ratio estimator, McCullagh and Nelder 1989 section 4.5, Cochran 1977
section 6.4). The interval of other documents, of the expected number μ and variance v, is
r μ ± 1.96 √(dispersion · v + uncertainty · μ²).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy
from numpy.typing import NDArray
from spacy.language import Language

from spacy_psa.analysis.calibration import SPAN_KINDS, SpanKind, calibrating
from spacy_psa.analysis.conformal import BATCH
from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.mention_counts import Form, TextCounts, count_mentions, form_of
from spacy_psa.pipeline.coverage import Correction, CountCorrection
from spacy_psa.pipeline.upstream import with_upstream
from spacy_psa.scoring.result import read_examples
from spacy_psa.sentences import document_batches, document_numbers

DRAWS = 200
SIZE = 20
"""The documents of a drawn corpus."""
KINDS = ("mentions", "distinct")


class Counted(NamedTuple):
    """A document: its counts by the model, and its gold mentions."""

    counts: TextCounts
    gold: list[Form]

    def truth(self, label: str) -> tuple[int, int]:
        """The true numbers of mentions and distinct entities of a label."""
        own = [form for form in self.gold if form[0] == label]
        return len(own), len({*own})


def counted(nlp: Language, pipe: SpanKind, path: Path) -> list[Counted]:
    """Count the mentions of each gold document; see `spacy_psa.sentences.same_document`."""
    examples = with_upstream(nlp, pipe.name, read_examples(nlp, path))
    numbers = document_numbers(example.reference for example in examples)
    documents = [Counted(TextCounts(), []) for _ in range(numbers[-1] + 1)]
    docs = (example.predicted for example in examples)
    counts = (
        each for batch in document_batches(docs, BATCH) for each in count_mentions(pipe, batch)
    )
    for number, example, own in zip(numbers, examples, counts, strict=True):
        documents[number].counts.add(own)
        spans = pipe.store.reference(pipe.name, example.reference) or ()
        for place in dict.fromkeys((span.start, span.end, span.label_) for span in spans):
            documents[number].gold.append(form_of(example.reference, place))
    if not any(document.gold for document in documents):
        raise InputError(
            f"{path}: there are no gold spans for {pipe.name}; use annotated documents"
        )
    return documents


def joined(documents: Sequence[Counted]) -> Counted:
    """Join documents to one."""
    whole = Counted(TextCounts(), [])
    for document in documents:
        whole.counts.add(document.counts)
        whole.gold.extend(document.gold)
    return whole


def fit_corrections(
    documents: Sequence[Counted], labels: Sequence[str]
) -> dict[str, CountCorrection]:
    """Find the correction of each label, from two documents or more."""
    if len(documents) < 2:
        raise InputError("counts can only be calibrated with 2 documents or more")
    corrections = {}
    distinct = [document.counts.distinct() for document in documents]
    for label in labels:
        truth = [document.truth(label) for document in documents]
        mentions = [document.counts.mentions[label] for document in documents]
        moments = mentions, [each[label] for each in distinct]
        corrections[label] = CountCorrection(
            *(
                _fit(numpy.array(number), numpy.array(expected))
                for number, expected in zip(zip(*truth), moments, strict=True)
            )
        )
    return corrections


def _fit(number: NDArray[Any], expected: NDArray[Any]) -> Correction:
    means, variances = expected.T
    if not means.sum() or not variances.sum() or not number.any():
        return Correction()
    ratio = number.sum() / means.sum()
    spread = ((number - ratio * means) ** 2).sum() * len(means) / (len(means) - 1)
    return Correction(*map(float, (ratio, spread / variances.sum(), spread / means.sum() ** 2)))


def coverage(
    documents: Sequence[Counted],
    corrections: Mapping[str, CountCorrection] | None,
    labels: Sequence[str],
    draws: int = DRAWS,
) -> dict[str, dict[str, float]]:
    """Draw corpora without replacement, and compute how often the intervals hold the truth.

    Each of the `draws` has `SIZE` documents, or half of them if there are fewer than twice as many.
    The intervals have the `corrections`; None for none. The result is the share of draws for each
    label and each of `KINDS`.
    """
    generator = numpy.random.default_rng(0)
    size = min(SIZE, -(-len(documents) // 2))
    held: dict[str, Counter[str]] = {label: Counter() for label in labels}
    for _ in range(draws):
        some = generator.choice(len(documents), size, replace=False)
        whole = joined([documents[i] for i in some])
        rows = whole.counts.intervals(corrections)
        for label in labels:
            for kind, true in zip(KINDS, whole.truth(label), strict=True):
                mean, half = rows[label][kind]
                held[label][kind] += abs(mean - true) <= half
    return {label: {kind: held[label][kind] / draws for kind in KINDS} for label in labels}


def calibrate_counts(
    model: str,
    paths: Mapping[str, Path],
    output: Path | None = None,
    pipe: str | None = None,
    json_path: Path | None = None,
    gpu_id: int = -1,
) -> tuple[SpanKind, dict[str, list[dict[str, Any]]]]:
    """Find the corrections of counts on the documents of "dev", and store them in the component.

    The arguments are those of `calibrate`.

    Returns:
        The component; and for each file a row for each label and kind: `label`, `kind`, the true
        number `gold`, the `number` and half the `width` of its interval, and `held`, the share of
        drawn corpora of 20 documents whose true number is in the interval.
    """
    kinds = get_args(SpanKind)
    opened = calibrating(model, pipe, kinds, SPAN_KINDS, paths, output, json_path, gpu_id)
    with opened as (nlp, component, record):
        data = {part: counted(nlp, component, path) for part, path in paths.items()}
        try:
            component.calibrated.counts = fit_corrections(data["dev"], component._span_labels)
        except InputError as error:
            raise InputError(f"{paths['dev']}: {error}") from error
        parts = {part: _rows(component, documents) for part, documents in data.items()}
        record["data"] = parts
    return component, parts


def _rows(pipe: SpanKind, documents: Sequence[Counted]) -> list[dict[str, Any]]:
    whole = joined(documents)
    intervals = whole.counts.intervals(pipe.calibrated.counts)
    held = coverage(documents, pipe.calibrated.counts, pipe._span_labels)
    return [
        {
            "label": label,
            "kind": kind,
            "gold": gold,
            "number": intervals[label][kind][0],
            "width": intervals[label][kind][1],
            "held": held[label][kind],
        }
        for label in pipe._span_labels
        for kind, gold in zip(KINDS, whole.truth(label), strict=True)
    ]
