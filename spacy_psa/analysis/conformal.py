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

from collections.abc import Iterable, Iterator, Sequence

import numpy
from spacy.training import Example
from spacy.util import minibatch

from spacy_psa.errors import InputError
from spacy_psa.pipeline.analyses import DocAnalyses
from spacy_psa.pipeline.chain.labeler import ChainLabeler
from spacy_psa.pipeline.chain.spans import SpanLabeler
from spacy_psa.sentences import document_numbers

BATCH = 64  # docs with probabilities in memory at a time


def least_probability(documents: Iterable[Sequence[float]], level: float) -> float:
    """Find the threshold of the sets that hold the truth with a promised probability.

    It is the largest threshold at which the truths in the sets weigh at least `level`, where each
    of K documents weighs 1 / (K + 1), shared by its items, and the new document weighs as much and
    counts as missed.

    Args:
        documents: for each document, the probability of the truth of each of its items. Documents
            without items do not count.
        level: the promised probability, between 0 and 1.

    Raises:
        InputError: if there are too few documents for this level.
        ValueError: if the level is not between 0 and 1.

    Examples:
        >>> least_probability([[0.9], [0.8, 0.2], [0.7], [0.6]], level=0.6)
        0.6
    """
    if not 0 < level < 1:
        raise ValueError(f"level is {level}: take a number between 0 and 1")
    kept = [numpy.asarray(items, dtype="float64") for items in documents if len(items)]
    if len(kept) < level / (1 - level) * (1 - 1e-12):
        needed = int(numpy.ceil(level / (1 - level) * (1 - 1e-12)))
        raise InputError(
            f"a coverage of {level:g} needs at least {needed:,} documents with annotation, and "
            f"there are {len(kept):,}: give more, or promise less"
        )
    values = numpy.concatenate(kept)
    weights = numpy.concatenate([numpy.full(len(items), 1 / len(items)) for items in kept])
    order = numpy.argsort(-values, kind="stable")
    reached = numpy.cumsum(weights[order]) >= level * (len(kept) + 1) - 1e-9
    return float(values[order][reached.argmax()])


def observed_coverage(documents: Iterable[Sequence[float]], least: float) -> float | None:
    """Compute how often the truth is in the sets: the mean over documents of their shares.

    Args:
        documents: for each document, the probability of the truth of each of its items.
        least: the threshold of the sets.

    Returns:
        A number from 0 to 1; None if no document has items.

    Examples:
        >>> observed_coverage([[0.9, 0.1], [0.8], []], least=0.5)
        0.75
    """
    shares = [numpy.mean(numpy.asarray(items) >= least) for items in documents if len(items)]
    return float(numpy.mean(shares)) if shares else None


def truth_probabilities(pipe: ChainLabeler, examples: Sequence[Example]) -> list[list[float]]:
    """Compute how probable a component finds the truth: each gold span, or each gold tag.

    Args:
        pipe: the component.
        examples: docs with the annotation of the components before this one, and their references.

    Returns:
        For each document, the probability of each of its gold spans or tags. Docs that follow each
        other may belong to one document, see `spacy_psa.sentences.same_document`. The probability
        of a gold span that meets no tokens, crosses a sentence or has an unknown label is 0.
    """
    one = _of_spans if isinstance(pipe, SpanLabeler) else _of_tags
    found: list[list[float]] = []
    numbers = document_numbers(example.reference for example in examples)
    for number, values in zip(numbers, one(pipe, examples), strict=True):
        if number == len(found):
            found.append([])
        found[number] += values
    return found


def _of_spans(pipe: SpanLabeler, examples: Sequence[Example]) -> Iterable[list[float]]:
    for example, analyses in _analysed(pipe, examples):
        gold = pipe.store.gold(pipe.name, example)[0]
        known = [span for span in gold if span[2] in pipe.labels]
        every = pipe.store.reference(pipe.name, example.reference) or []
        yield analyses.posterior(known) + [0.0] * (len(every) - len(known))


def _of_tags(pipe: ChainLabeler, examples: Sequence[Example]) -> Iterable[list[float]]:
    columns = {tag: i for i, tag in enumerate(pipe.tags)}
    for example, analyses in _analysed(pipe, examples):
        names = example.get_aligned("TAG", as_string=True)
        yield [
            float(row[columns[name]]) if name in columns else 0.0
            for row, name in zip(analyses.marginals, names, strict=True)
            if name
        ]


def _analysed(
    pipe: ChainLabeler, examples: Sequence[Example]
) -> Iterator[tuple[Example, DocAnalyses]]:
    for batch in minibatch(examples, size=BATCH):
        analyses = pipe.analyses(example.predicted for example in batch)
        yield from zip(batch, analyses, strict=True)
