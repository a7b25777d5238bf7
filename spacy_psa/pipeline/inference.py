"""From docs to the distributions over the analyses of their sentences, and back to predictions."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

import numpy
import torch
from spacy.errors import Errors
from spacy.tokens import Doc, Span
from thinc.api import Model, xp2torch
from thinc.types import Floats2d
from torch import Tensor, nn

from spacy_psa.architectures.sentencewise import sentence_scores
from spacy_psa.bridge.layers import join_rows
from spacy_psa.errors import InputError
from spacy_psa.pipeline.evidence import CHANGE, NOTHING, Evidence, Node
from spacy_psa.pipeline.upstream import check_upstream
from spacy_psa.pipeline.written import spans_in
from spacy_psa.sentences import Bounds, SplitDocs

COLDEST, HOTTEST = 0.01, 100.0
Answer = TypeVar("Answer")
Item = TypeVar("Item")
Decode = Literal["viterbi", "mbr", "threshold"]
Infer = Callable[[list[Doc], Callable[[Any], Iterable[Any]]], list[list[tuple[int, Any]]]]
"""Calls a function with batches that have a `dist`; see `infer`."""


class Batch(NamedTuple):
    """Sentences that go through the model together."""

    numbers: list[int]
    """Their numbers among the sentences of all docs."""
    bounds: list[tuple[int, int]]
    """The first token of each sentence in its doc, and the token after its last one."""
    scores: list[Floats2d]
    known: list[Any]
    dist: Any
    """The distributions over their analyses, given what is known."""
    tags: list[Floats2d]
    """The output of the tag head of a parser; empty without one."""


class Inference:
    """The sentences of docs, and what is known of each, on their way to answers.

    Args:
        pipe: the component. It reads and translates evidence (`_on_doc`, `_translated`), divides
            sentences into batches (`_divided`) and makes distributions (`_given`).

    Raises:
        InputError: if the evidence on a doc contradicts itself, or the model listens to a component
            that has not seen a doc.
        ValueError: if the component has no weights.
    """

    def __init__(self, pipe: Any, docs: Iterable[Doc]):
        _require_weights(pipe)
        self.pipe = pipe
        self.split = SplitDocs(docs)
        self.places = list(chain.from_iterable(self.split.bounds))
        if pipe._listens:
            check_upstream(pipe.name, pipe.model, self.split.docs)
        self.evidence: list[Evidence] = []
        self.known: list[Any] = []
        for doc, bounds in zip(self.split.docs, self.split.bounds):
            evidence = evidence_on(pipe, doc, bounds)
            self.evidence.append(evidence)
            self.known += pipe._translated(doc, evidence, bounds)

    def distribution(self) -> Any:
        """Return the distribution over the analyses of all sentences that can be scored.

        Raises:
            ValueError: if there are none.
        """
        numbers = sorted(i for batch in self._divided() for i in batch)
        if not numbers:
            raise ValueError(
                f"{self.pipe.name}: no token is left to make a distribution over: use docs "
                "with words, and for a parser sentences of at most max_length tokens"
            )
        return self._batch(numbers).dist

    def answers(self, read: Callable[[Batch], Iterable[Answer]]) -> list[Answer | None]:
        """Read an answer for each sentence from its distribution.

        Sentences go through the model in order of length, so that a long sentence does not pad
        many short ones.

        Args:
            read: called with each batch; returns an answer for each of its sentences.

        Returns:
            The answer for each sentence; None for one that cannot be scored, as without tokens.
        """
        answers: list[Answer | None] = [None] * len(self.known)
        for numbers in self._divided():
            batch = self._batch(numbers)
            try:
                for i, answer in zip(batch.numbers, read(batch), strict=True):
                    answers[i] = answer
            except ValueError as error:
                impossible = self._impossible(batch)
                if impossible is None:
                    raise
                raise impossible from error
        return answers

    def by_doc(self, items: Iterable[Item]) -> list[list[Item]]:
        """Group what belongs to the sentences by their docs."""
        left = iter(items)
        return [list(islice(left, len(bounds))) for bounds in self.split.bounds]

    def _divided(self) -> list[list[int]]:
        sizes = self.split.sizes
        return self.pipe._divided(sizes, self.known) if any(sizes) else []

    def _batch(self, numbers: list[int]) -> Batch:
        """Compute the distributions of the sentences with these numbers."""
        pipe = self.pipe
        if pipe._listens:
            arrays, docs = self._scores_of(numbers), self._seen.docs
        else:
            docs = self._seen.sentences.chosen(numbers)
            arrays = pipe.model.predict(docs)
        check_scores(pipe.name, pipe.model, arrays, docs)
        scores, known = arrays[: len(numbers)], list(map(self.known.__getitem__, numbers))
        bounds = list(map(self.places.__getitem__, numbers))
        dist = pipe._given(scores, known)
        return Batch(numbers, bounds, scores, known, dist, arrays[len(numbers) :])

    @cached_property
    def _seen(self) -> SplitDocs:
        """The docs as the model sees them."""
        return cast(SplitDocs, self.pipe._seen(self.split))

    @cached_property
    def _scores_of(self) -> Callable[[list[int]], list[Floats2d]]:
        """The output of a model that must get whole docs, which are computed once for all."""
        return sentence_scores(self.pipe.model, self._seen)

    def _impossible(self, batch: Batch) -> InputError | None:
        """Name the first sentence of a batch without a legal analysis; None if there is none."""
        rows = (batch.dist.log_partition == -torch.inf).nonzero()[:, 0].tolist()
        if not rows:
            return None
        owners = [doc for doc, each in zip(self.split.docs, self.split.bounds) for _ in each]
        start, end = batch.bounds[rows[0]]
        text = owners[batch.numbers[rows[0]]][start:end].text
        return InputError(
            f"{self.pipe.name}: no legal analysis of the sentence {text!r} "
            "agrees with the annotation on its doc: correct it, or set overwrite = true"
        )


def infer(
    pipe: Any, docs: Iterable[Doc], read: Callable[[Batch], Iterable[Answer]]
) -> list[list[tuple[int, Answer]]]:
    """Read an answer for each sentence of docs; see `Inference.answers`.

    Returns:
        For each doc, the first token of each sentence that has an answer, and the answer.
    """
    inference = Inference(pipe, docs)
    answers = iter(inference.answers(read))
    return [
        [(start, answer) for (start, _), answer in zip(bounds, answers) if answer is not None]
        for bounds in inference.split.bounds
    ]


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


def evidence_on(pipe: Any, doc: Doc, bounds: Bounds) -> Evidence:
    """Read and check what is on a doc, and in its groups of required and forbidden spans."""
    evidence: Evidence = pipe._on_doc(doc, bounds)
    if evidence is not NOTHING:
        pipe._check_evidence(doc, evidence, bounds, "remove one, or set overwrite = true")
    keys = pipe.required_spans_key, pipe.forbidden_spans_key
    if keys == (None, None):
        return evidence
    required, forbidden = (spans_in(doc, key) for key in keys)
    grouped = pipe._read_evidence(doc, required, forbidden)
    if grouped.is_empty:
        return evidence
    evidence = evidence.joined(grouped)
    pipe._check_evidence(doc, evidence, bounds, CHANGE)
    return evidence


class Temperature:
    """The number that log potentials are divided by before inference (Guo et al. 2017).

    It is a number from 0.01 to 100; another value raises an InputError. A value above 1 makes the
    model less sure, a value below 1 makes it surer, and 1 leaves it as it was trained. The best
    analysis stays the same. Training does not use the temperature. Another temperature removes what
    was calibrated for other probabilities.
    """

    if TYPE_CHECKING:

        def __get__(self, pipe: object, owner: type) -> float: ...
    else:

        def __get__(self, pipe: Any, owner: type) -> Any:
            return self if pipe is None else float(pipe.cfg.get("temperature", 1.0))

    def __set__(self, pipe: Any, value: float) -> None:
        checked = checked_temperature(pipe.name, value)
        if checked != pipe.temperature:
            pipe.calibrated.forget()
        pipe.cfg["temperature"] = checked


def checked_temperature(name: str, value: Any) -> float:
    """Raise InputError, which begins with `name`, unless a temperature is from 0.01 to 100."""
    number = isinstance(value, (int, float, numpy.floating)) and not isinstance(value, bool)
    if not number or not COLDEST <= value <= HOTTEST:
        raise InputError(
            f"{name}: temperature is {value!r}: it must be a number from {COLDEST:g} to {HOTTEST:g}"
        )
    return float(value)


def tempered(pipe: Any, scores: Sequence[Floats2d]) -> Tensor:
    """Join the scores of sentences, divided by the temperature of the component."""
    temperature: float = pipe.temperature
    flat = xp2torch(join_rows(pipe.model.ops.xp, list(scores)))
    return flat if temperature == 1.0 else flat / temperature


def checked_scores(pipe: Any, docs: list[Doc]) -> list[Floats2d]:
    """Compute the output of the model for docs, without evidence; see `check_scores`."""
    _require_weights(pipe)
    arrays: list[Floats2d] = pipe.model.predict(docs)
    check_scores(pipe.name, pipe.model, arrays, docs)
    return arrays


def _require_weights(pipe: Any) -> None:
    if not pipe.model.has_dim("nO"):
        raise ValueError(Errors.E109.format(name=pipe.name))


def check_scores(name: str, model: Model, scores: list[Floats2d], docs: Iterable[Doc]) -> None:
    """Check that no score of a component's model is NaN or infinite; -inf excludes a label.

    The InputError names the weights, or else the word vector, that is not finite.
    """
    largest: list[Any] = [array.max() for array in scores if array.size]
    if len(largest) > 1:
        largest = [model.ops.xp.stack(largest).max()]  # one answer to wait for on a GPU
    if largest and not float(largest[0]) < math.inf:  # NaN is the largest of all
        raise InputError(
            f"{name}: the scores of the model are NaN or infinite, {_cause(model, docs)}"
        )


def _cause(model: Model, docs: Iterable[Doc]) -> str:
    for node in model.walk():
        weights = {n: node.get_param(n) for n in node.param_names if node.has_param(n)}
        if any(not bool(node.ops.xp.isfinite(array).all()) for array in weights.values()):
            return _of_weights(node.name)
        for module in (getattr(shim, "_model", None) for shim in node.shims):
            if isinstance(module, nn.Module):
                for name, tensor in module.named_parameters():
                    if not bool(torch.isfinite(tensor).all()):
                        return _of_weights(f"{node.name}, {name}")
    for doc in docs:
        for token in doc:
            vector: Any = doc.vocab.get_vector(token.orth)
            if not math.isfinite(float(vector.sum())):
                return f"as is the word vector of {token.text!r}: correct the vectors"
    return "though its weights are finite: check the component that it listens to"


def _of_weights(name: str) -> str:
    return (
        f"as are its weights ({name}): use another checkpoint, or train again with a lower "
        "learning rate"
    )
