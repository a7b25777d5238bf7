"""The gold spans of docs: those that an analysis can have, and their probability."""

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc, Span
from spacy.training import Example
from torch import Tensor

from spacy_psa.errors import InputError
from spacy_psa.modules.span_scorer import span_counts
from spacy_psa.pipeline.evidence import Node, cross, overlap, shown
from spacy_psa.pipeline.nested.places import JOIN, check_lengths, holding, parts_of, places
from spacy_psa.sentences import Bounds, sentence_bounds
from spacy_psa.structs.nested_spans import NestedSpans
from spacy_psa.structs.span_cells import Tree

Mask = NDArray[numpy.bool_]


class NestedStore:
    """The span groups in which `crf_spans` reads gold spans."""

    def __init__(
        self,
        spans_key: str,
        missing_spans_key: str | None = None,
        incorrect_spans_key: str | None = None,
    ):
        self.spans_key = spans_key
        self.missing_spans_key = missing_spans_key
        self.incorrect_spans_key = incorrect_spans_key

    def gold(self, name: str, example: Example) -> tuple[list[Node], NDArray[numpy.bool_]]:
        """Read the gold spans of an example, over the tokens of the predicted doc.

        Returns:
            The spans (start, end, label), and a bool array (n,) that is true for tokens whose
            annotation may be incomplete, also as a gold span ends inside of one.
        """
        missing = numpy.zeros(len(example.predicted), dtype=bool)
        spans = self.reference(name, example.reference)
        if spans is None:
            return [], ~missing
        aligned = self._aligned(example, spans)
        unclear = list(example.reference.spans.get(self.missing_spans_key or "") or ())
        if len(aligned) < len(spans):  # some end inside of a token
            unclear += [span for span in spans if not self._aligned(example, [span])]
        for span in unclear:
            missing[example.alignment.y2x[span.start : span.end]] = True
        nodes = {(s.start, s.end, s.label_) for s in aligned}
        return sorted(nodes, key=lambda node: (node[0], -node[1], node[2])), missing

    def group(self, example: Example, key: str | None) -> list[Span]:
        """Read a span group of the reference over the tokens of the predicted doc."""
        return self._aligned(example, list(example.reference.spans.get(key or "") or ()))

    def _aligned(self, example: Example, spans: list[Span]) -> list[Span]:
        if not spans or numpy.array_equal(
            example.predicted.to_array("ORTH"), example.reference.to_array("ORTH")
        ):
            return spans
        return list(example.get_aligned_spans_y2x(spans, allow_overlap=True))

    def reference(self, name: str, doc: Doc) -> list[Span] | None:
        """Read the gold spans of a reference doc; None if it has no such annotation.

        InputError if a span has no token, or if its label looks like a joined one.
        """
        if self.spans_key not in doc.spans:
            return None
        spans = list(doc.spans[self.spans_key])
        for span in spans:
            if not len(span) or JOIN in span.label_:
                what = "no token" if not len(span) else f"{JOIN!r} in its label"
                raise InputError(
                    f'{name}: a span ({span.label_}) of spans["{self.spans_key}"] in the '
                    f"reference {doc.text[:100]!r} has {what}: correct the annotation"
                )
        return spans


class Unfit(NamedTuple):
    """A gold span that no analysis has."""

    why: str
    """The reason, as the predicate of a message."""
    text: str
    limit: bool
    """Whether it is only too long for the model."""


class Gold(NamedTuple):
    """The gold spans of the sentences of a batch that have tokens."""

    trees: list[Tree]
    """The spans of each sentence, with the numbers of their labels from 1."""
    masks: list[Mask | None]
    """(spans, L) the labels that spans may have besides the gold ones; None for no label."""
    annotated: list[bool]
    """Whether a token of each sentence has annotation."""


def read_gold(pipe: Any, examples: Iterable[Example]) -> Gold:
    """Read the gold spans of examples."""
    number = {label: i for i, label in enumerate(pipe.labels, 1)}
    gold, every = Gold([], [], []), []
    for example in examples:
        bounds = [each for each in sentence_bounds(example.predicted) if each[0] < each[1]]
        check_lengths(pipe, example.predicted, bounds)
        spans, missing = pipe.store.gold(pipe.name, example)
        fitting, unfit = fit(pipe, example.predicted, spans, bounds)
        every += unfit
        wrong = pipe.store.group(example, pipe.store.incorrect_spans_key)
        known = [label for own in fitting for *_, label in own]
        for label in (*known, *(span.label_ for span in wrong)):
            if label not in number:
                raise InputError(
                    f"{pipe.name}: the training data has the label {label!r}, which is not among "
                    f"the labels {', '.join(pipe.labels)}: initialize with all labels"
                )
        _check_wrong(pipe, example, spans, wrong)
        gold.trees.extend([(s, e, number[label]) for s, e, label in own] for own in fitting)
        gold.masks.extend(_mask(pipe, bound, missing, wrong) for bound in bounds)
        gold.annotated.extend(not missing[start:end].all() for start, end in bounds)
    judge(pipe, every)
    return gold


def _mask(pipe: Any, bound: tuple[int, int], missing: Mask, wrong: Sequence[Span]) -> Mask | None:
    """Find the labels of `Gold.masks` in a sentence: those of spans that touch missing tokens."""
    first, last = bound
    if not missing[first:last].any():
        return None
    start, end = places(last - first, pipe._longest)
    before = numpy.concatenate([[0], numpy.cumsum(missing[first:last])])
    mask = numpy.repeat((before[end] > before[start])[:, None], len(pipe.labels), 1)
    for span in wrong:
        here = (start == span.start - first) & (end == span.end - first)
        mask[here] &= [span.label_ not in parts_of(label) for label in pipe.labels]
    return mask


def _check_wrong(pipe: Any, example: Example, gold: list[Node], wrong: Sequence[Span]) -> None:
    """Check that no wrong span is a gold span."""
    for span in wrong:
        if (span.start, span.end, span.label_) in gold:
            raise InputError(
                f"{pipe.name}: {span.text!r} ({span.label_}) is a gold span of the "
                f"reference {example.reference.text[:100]!r} and also a wrong span in its "
                f'spans["{pipe.store.incorrect_spans_key}"]: remove one of the two'
            )


def log_prob_of_gold(pipe: Any, dist: NestedSpans, gold: Gold) -> Tensor:
    """Compute the log probability of the gold spans of sentences, (B,).

    Where annotation is missing, it is that of all sets that agree with the gold spans.
    """
    if all(mask is None for mask in gold.masks):
        return dist.log_prob(gold.trees)
    allowed = torch.zeros(dist.labelled.shape, dtype=torch.bool)
    sizes = span_counts(dist.lengths, pipe._longest).tolist()
    required = []
    for b, (rows, own, mask) in enumerate(zip(allowed.split(sizes), gold.trees, gold.masks)):
        if mask is not None:
            rows |= torch.from_numpy(mask)
        for start, end, number in own:
            allowed[dist.row(b, start, end), number - 1] = True
        # Where annotation is missing, a gold span may have further labels.
        required.append([(s, e, holding(pipe.labels[k - 1], pipe.labels)) for s, e, k in own])
    return dist.constrain(allowed, required=required).log_partition - dist.log_partition


def fit(
    pipe: Any, doc: Doc, nodes: Iterable[Node], bounds: Bounds
) -> tuple[list[list[Node]], list[Unfit]]:
    """Select the gold spans that one analysis can have.

    Of two spans that cross, the one that begins first stays. Several labels of one span become one
    joined label, or only the first one fits. With a layer for each label, only spans of the same
    label exclude each other, if they overlap.

    Returns:
        The spans of each sentence in preorder, over its tokens, and those that do not fit.
    """
    longest, join = pipe._longest, pipe._several_labels == "join"
    ordered = sorted(set(nodes), key=lambda node: (node[0], -node[1], node[2]))
    fitting: list[list[Node]] = [[] for _ in bounds]
    unfit = []
    number = 0
    for start, end, label in ordered:
        while number < len(bounds) - 1 and bounds[number][1] <= start:
            number += 1
        first, last = bounds[number]
        own, node = fitting[number], (start - first, end - first, label)
        why = ""
        if end > last:
            why = "go over the bounds of a sentence"
        elif longest is not None and end - start > longest:
            why = f"have more than {longest} tokens"
        elif pipe.layers == "label":
            if any(overlap(each, node) for each in own if each[2] == label):
                why = "overlap another span of their label"
            else:
                own.append(node)
        elif own and own[-1][:2] == node[:2] and join:
            own[-1] = (*own[-1][:2], own[-1][2] + JOIN + label)
        elif own and own[-1][:2] == node[:2]:
            why = "have a second label"
        elif any(cross(each, node) for each in own):
            why = "cross another span"
        else:
            own.append(node)
        if why:
            unfit.append(Unfit(why, shown(doc, (start, end, label)), "tokens" in why))
    return fitting, unfit


def judge(pipe: Any, unfit: Sequence[Unfit]) -> None:
    """Refuse gold spans that no analysis can have, or warn once that they are left out."""
    refused = [each for each in unfit if not each.limit and pipe._unfitting == "refuse"]
    counts = Counter(each.why for each in refused or unfit)
    what = "; ".join(f"{count} {why}" for why, count in counts.items())
    if refused:
        raise InputError(
            f"{pipe.name}: no analysis has all gold spans: {what}, such as {refused[0].text}: "
            'correct them, or set unfitting = "drop" to leave them out of training'
        )
    if unfit and not pipe._warned:
        pipe._warned = True
        warnings.warn(
            f"{pipe.name}: gold spans are left out of training: {what}, such as {unfit[0].text}",
            stacklevel=3,
        )
