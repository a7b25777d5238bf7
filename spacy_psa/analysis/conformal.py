"""Prediction sets with a guarantee: split conformal prediction over documents.

A set holds everything whose probability is at least a threshold. The threshold comes from the
probabilities of the truth in documents that the model has not seen. If these documents and a new
one are exchangeable, then the set for an item drawn from the new document (an entity, a token)
holds the truth with at least the promised probability. That holds for any model and any number of
documents.

The items of a document depend on each other. So documents count alike, and the items of a document
share its weight: the hierarchical conformal prediction of Lee, Barber and Willett (2023),
"Distribution-free inference with hierarchical data". The sets are those of Sadinle, Lei and
Wasserman (2019), "Least ambiguous set-valued classifiers with bounded error levels".
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import srsly
from spacy.language import Language
from spacy.training import Example

from spacy_psa.analysis.temperature import Labeler
from spacy_psa.errors import InputError
from spacy_psa.pipeline.analyses import DocAnalyses
from spacy_psa.pipeline.chain.spans import SpanLabeler
from spacy_psa.pipeline.coverage import Coverage
from spacy_psa.pipeline.nested.spans import NestedSpanLabeler
from spacy_psa.pipeline.upstream import with_upstream
from spacy_psa.scoring.result import read_examples
from spacy_psa.sentences import document_batches, document_numbers

BATCH = 64  # docs with probabilities in memory at a time


def least_probability(documents: Iterable[Sequence[float]], level: float) -> float:
    """Find the threshold of the sets that hold the truth with a promised probability.

    It is the largest threshold at which the truths in the sets weigh at least `level`, where each
    of K documents weighs 1 / (K + 1), shared by its items, and the new document weighs as much and
    counts as missed. Too few documents for this level are an InputError.

    Args:
        documents: for each document, the probability of the truth of each of its items. Documents
            without items do not count.
        level: the promised probability, between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level is {level}: choose a number between 0 and 1")
    kept = [numpy.asarray(items, dtype="float64") for items in documents if len(items)]
    if len(kept) < level / (1 - level) * (1 - 1e-12):
        needed = int(numpy.ceil(level / (1 - level) * (1 - 1e-12)))
        raise InputError(
            f"a coverage of {level:g} needs at least {needed:,} documents with annotation, and "
            f"there are {len(kept):,}: use more, or promise less"
        )
    values = numpy.concatenate(kept)
    weights = numpy.concatenate([numpy.full(len(items), 1 / len(items)) for items in kept])
    order = numpy.argsort(-values, kind="stable")
    reached = numpy.cumsum(weights[order]) >= level * (len(kept) + 1) - 1e-9
    return float(values[order][reached.argmax()])


def observed_coverage(documents: Iterable[Sequence[float]], least: float) -> float | None:
    """Compute how often the truth is in the sets: the mean over documents of their shares.

    The documents are those of `least_probability`, and `least` is the threshold. The result is a
    number from 0 to 1; None if no document has items.
    """
    shares = [numpy.mean(numpy.asarray(items) >= least) for items in documents if len(items)]
    return float(numpy.mean(shares)) if shares else None


def truth_probabilities(pipe: Labeler, examples: Sequence[Example]) -> list[list[float]]:
    """Compute how probable a component finds the truth: each gold span, or each gold tag.

    The docs of the examples have the annotation of the components before this one. The result has
    for each document the probability of each of its gold spans or tags. Docs that follow each other
    may belong to one document, see `spacy_psa.sentences.same_document`. The probability of a gold
    span that meets no tokens, crosses a sentence or has an unknown label is 0.
    """
    return [[p for _, p in items] for items in labelled_probabilities(pipe, examples)]


def labelled_probabilities(
    pipe: Labeler, examples: Sequence[Example]
) -> list[list[tuple[str, float]]]:
    """Return the results of `truth_probabilities`, each with the gold label."""
    probabilities = _of_spans if isinstance(pipe, SpanLabeler | NestedSpanLabeler) else _of_tags
    documents: list[list[tuple[str, float]]] = []
    numbers = document_numbers(example.reference for example in examples)
    for number, values in zip(numbers, probabilities(pipe, examples), strict=True):
        if number == len(documents):
            documents.append([])
        documents[number] += values
    return documents


Labelled = Iterable[list[tuple[str, float]]]


def _of_spans(pipe: SpanLabeler | NestedSpanLabeler, examples: Sequence[Example]) -> Labelled:
    for example, analyses in _analysed(pipe, examples):
        gold = pipe.store.gold(pipe.name, example)[0]
        known = [span for span in gold if span[2] in pipe._span_labels]
        every = pipe.store.reference(pipe.name, example.reference) or []
        lost = Counter(label for _, _, label in {(s.start, s.end, s.label_) for s in every})
        lost.subtract(label for _, _, label in known)
        yield [
            *((label, p) for (_, _, label), p in zip(known, analyses.posterior(known))),
            *((label, 0.0) for label in lost.elements()),
        ]


def _of_tags(pipe: Labeler, examples: Sequence[Example]) -> Labelled:
    columns = {tag: i for i, tag in enumerate(pipe.tags)}
    for example, analyses in _analysed(pipe, examples):
        names = example.get_aligned("TAG", as_string=True)
        yield [
            (name, float(row[columns[name]]) if name in columns else 0.0)
            for row, name in zip(analyses.marginals, names, strict=True)
            if name
        ]


def _analysed(pipe: Labeler, examples: Sequence[Example]) -> Iterator[tuple[Example, DocAnalyses]]:
    for batch in document_batches(examples, BATCH):
        analyses = pipe.analyses(example.predicted for example in batch)
        yield from zip(batch, analyses, strict=True)


def cover(
    nlp: Language, pipe: Labeler, paths: Mapping[str, Path], level: float
) -> dict[str, dict[str, Any]]:
    """Find the threshold on the documents of "dev", and store it in the component.

    `paths` are the gold documents of "dev" and, to report on, "test". The result has for each file
    its `path`, `documents` and `items` with annotation, the observed `coverage`, and `set_size`:
    the mean number of spans in the sets for each gold span, or of tags in the set of a token.
    """
    if not 0 < level < 1:
        raise InputError(f"--coverage {level:g}: choose a number between 0 and 1, such as 0.9")
    data, truths = {}, {}
    for part, path in paths.items():
        data[part] = with_upstream(nlp, pipe.name, read_examples(nlp, path))
        truths[part] = [items for items in truth_probabilities(pipe, data[part]) if items]
        if not truths[part]:
            raise InputError(
                f"{path}: there is no gold annotation for {pipe.name}; use annotated documents"
            )
    try:
        least = as_saved(least_probability(truths["dev"], level))
    except InputError as error:
        raise InputError(f"{paths['dev']}: {error}") from error
    pipe.calibrated.coverage = Coverage(level, least, len(truths["dev"]))
    return {
        part: {
            "path": paths[part].as_posix(),
            "documents": len(documents),
            "items": sum(map(len, documents)),
            "coverage": observed_coverage(documents, least),
            "set_size": _set_size(pipe, data[part]),
        }
        for part, documents in truths.items()
    }


def as_saved(least: float) -> float:
    """Round to a number that saved settings, with 9 decimals, keep; less only adds to sets."""
    billionths = math.floor(least * 1e9)
    read = [srsly.json_loads(srsly.json_dumps(n / 1e9)) for n in (billionths, billionths - 1)]
    return read[0] if read[0] <= least else max(0.0, read[1])


def _set_size(pipe: Any, examples: Sequence[Example]) -> float | None:
    sets = pipe.prediction_sets(example.predicted for example in examples)
    if isinstance(pipe, (SpanLabeler, NestedSpanLabeler)):
        gold = sum(len(pipe.store.reference(pipe.name, eg.reference) or ()) for eg in examples)
        return sum(map(len, sets)) / gold if gold else None
    sizes = [len(tags) for doc in sets for tags in doc]
    return sum(sizes) / len(sizes) if sizes else None
