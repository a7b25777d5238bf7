"""The base class of the components with a distribution for each sentence, and its temperature."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model, xp2torch
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.architectures.sentencewise import listens, sentence_scores
from spacy_psa.bridge.layers import join_rows
from spacy_psa.errors import InputError, check_choice, naming
from spacy_psa.pipeline.analyses import DocAnalyses
from spacy_psa.pipeline.component import StructuredPipe, sentence_count
from spacy_psa.pipeline.coverage import (
    CALIBRATED,
    Calibrated,
    Coverage,
    checked_counts,
    checked_coverage,
    checked_recall,
    checked_temperature,
)
from spacy_psa.pipeline.evidence import Evidence
from spacy_psa.pipeline.not_finite import check_scores
from spacy_psa.pipeline.upstream import check_upstream
from spacy_psa.sentences import Bounds, SplitDocs, sentence_bounds

Answer = TypeVar("Answer")
Reduction = Literal["mean", "sum"]


class Batch(NamedTuple):
    """Sentences that go through the model together."""

    numbers: list[int]
    """Their numbers among the sentences of all docs."""
    scores: list[Floats2d]
    known: list[Any]
    dist: Any
    """The distributions over their analyses, given what is known."""


class SentenceLabeler(StructuredPipe):
    """Base class of the components that label each sentence by a distribution of its own.

    A subclass makes the distributions of sentences from scores and evidence (`_given`), divides
    sentences into batches (`_divided`) and translates evidence (`_translated`).

    Args:
        vocab: the vocabulary of the pipeline.
        model: Model[List[Doc], List[Floats2d]] with one array of scores for each sentence.
        name: the name of the component in the pipeline.
        reduction: whether an update follows the "mean" or the "sum" of its sentences' negative
            log likelihoods (Wei2020 Eq. 3 has the sum).

    Raises:
        InputError: if a setting has a value that is not possible.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        *,
        reduction: Reduction = "mean",
        **settings: Any,
    ):
        super().__init__(vocab, model, name, **settings)
        with naming(name):
            check_choice("reduction", reduction, Reduction)
        self._reduction = reduction

    # Settings that are found after training

    @property
    def temperature(self) -> float:
        """The number that the log potentials are divided by before inference (Guo et al. 2017).

        A value above 1 makes the model less sure, a value below 1 makes it surer, and 1 leaves it
        as it was trained. The best analysis stays the same. Training does not use the temperature.
        Another temperature removes what was calibrated for other probabilities.

        Raises:
            InputError: if it is set to something that is not a number from 0.01 to 100.
        """
        return float(self.cfg.get("temperature", 1.0))

    @temperature.setter
    def temperature(self, value: float) -> None:
        checked = checked_temperature(self.name, value)
        if checked != self.temperature:
            for name in CALIBRATED:
                self.cfg.pop(name, None)
        self.cfg["temperature"] = checked

    coverage = Calibrated(checked_coverage)
    """The promise of `prediction_sets`; None before `spacy-psa calibrate --coverage`."""
    recall = Calibrated(checked_recall)
    """The promises of recall by label; None before `spacy-psa calibrate --recall`."""
    counts = Calibrated(checked_counts)
    """The corrections of counts by label; None before `spacy-psa calibrate --counts`."""

    def _promised(self) -> Coverage:
        if self.coverage is None:
            raise InputError(
                f"{self.name}: it has no coverage yet: run `spacy-psa calibrate MODEL DEV.spacy "
                "--coverage 0.9`"
            )
        return self.coverage

    def _check_loaded(self) -> None:
        super()._check_loaded()
        checked_temperature(self.name, self.temperature)
        for name in CALIBRATED:
            getattr(self, name)  # checks it

    # From docs to distributions

    def distribution(self, docs: Iterable[Doc]) -> Any:
        """Return the distribution over the analyses of the docs' sentences.

        The annotation that is already on the docs is evidence.

        Args:
            docs: the docs.

        Returns:
            A distribution with one row for each sentence that has tokens.

        Raises:
            InputError: if the model listens to a component that has not seen a doc.
            ValueError: if the docs have no token, or the component has no weights.
        """
        split = SplitDocs(docs)
        if not any(split.sizes):
            raise ValueError(
                f"{self.name}: there are no tokens to make a distribution over: "
                "use docs with tokens"
            )
        check_upstream(self.name, self.model, split.docs)
        known = self._known(split)
        scores = self._scores(split.docs if listens(self.model) else split.sentences)
        filled = [i for i, array in enumerate(scores) if len(array)]
        return self._given([scores[i] for i in filled], [known[i] for i in filled])

    def analyses(self, docs: Iterable[Doc]) -> list[DocAnalyses]:
        docs = list(docs)
        analyses = []
        for doc, parts in zip(docs, self._infer(docs, self._answers)):
            sentences = [sentence.at(start) for start, sentence in parts]
            evidence = self._evidence(doc, [(s.start, s.end) for s in sentences])
            analyses.append(DocAnalyses(self, doc, sentences, evidence))
        return analyses

    @abstractmethod
    def _answers(self, batch: Batch) -> Iterable[Any]:
        """Make the analyses of each sentence of a batch, which begin at token 0.

        Raises:
            ValueError: if a sentence has no analysis.
        """

    def _infer(
        self, docs: Iterable[Doc], read: Callable[[Batch], Iterable[Answer]]
    ) -> list[list[tuple[int, Answer]]]:
        """Read an answer for each sentence of some docs from its distribution.

        Sentences go through the model in order of length, so that a long sentence does not pad
        many short ones. Sentences without tokens are left out.

        Args:
            docs: the docs.
            read: called with each batch; returns an answer for each of its sentences.

        Returns:
            For each doc, the first token of each sentence and the answer for it.

        Raises:
            InputError: if no legal analysis of a sentence agrees with the evidence, or the model
                listens to a component that has not seen a doc.
        """
        split = SplitDocs(docs)
        answers: dict[int, Answer] = {}
        for batch in self._batches(split):
            try:
                answers.update(zip(batch.numbers, read(batch), strict=True))
            except ValueError as error:
                impossible = self._impossible(batch, split)
                if impossible is None:
                    raise
                raise impossible from error
        numbers = count()
        return [
            [(start, answers[i]) for (start, _), i in zip(bounds, numbers) if i in answers]
            for bounds in split.bounds
        ]

    def _batches(self, split: SplitDocs) -> Iterator[Batch]:
        self._require_weights()
        whole = None
        if listens(self.model):
            check_upstream(self.name, self.model, split.docs)
        if not any(split.sizes):  # a transformer cannot run on docs without tokens
            return
        known = self._known(split)
        if listens(self.model):
            # Layers that must get whole docs are computed once, for all of them.
            whole = sentence_scores(self.model, split)
        for batch in self._divided(split.sizes, known):
            own = [known[i] for i in batch]
            if whole is None:
                arrays = self._scores(split.sentences.chosen(batch))
            else:
                arrays = whole(batch)
                check_scores(self.name, self.model, arrays, split.docs)
            yield Batch(batch, arrays, own, self._given(arrays, own))

    @abstractmethod
    def _divided(self, sizes: list[int], known: list[Any]) -> Iterator[list[int]]:
        """Divide sentences of `sizes` tokens into batches, without those that have no tokens."""

    def _known(self, split: SplitDocs) -> list[Any]:
        """Read what the docs tell of each sentence."""
        known: list[Any] = []
        for doc, bounds in zip(split.docs, split.bounds):
            known += self._translated(doc, self._evidence(doc, bounds), bounds)
        return known

    def _impossible(self, batch: Batch, split: SplitDocs) -> InputError | None:
        """Name the first sentence of a batch without a legal analysis; None if there is none.

        Only then the sentences are needed as docs, which take longer to make than to find.
        """
        rows = (batch.dist.log_partition == -torch.inf).nonzero()[:, 0].tolist()
        if not rows:
            return None
        sentence = split.sentences[batch.numbers[rows[0]]]
        return InputError(
            f"{self.name}: no legal analysis of the sentence {sentence.text!r} "
            "agrees with the annotation on its doc: correct it, or set overwrite = true"
        )

    def _tempered(self, scores: Sequence[Floats2d]) -> Tensor:
        """Join the scores of sentences, divided by the temperature."""
        flat = xp2torch(join_rows(self.model.ops.xp, list(scores)))
        return flat if self.temperature == 1.0 else flat / self.temperature

    def _potentials(self, docs: list[Doc]) -> list[list[Floats2d]]:
        scores = iter(self._scores(docs))
        return [[next(scores) for _ in sentence_bounds(doc)] for doc in docs]

    def _taught(self, teacher: Any, docs: Iterable[Doc]) -> Any:
        """Return the distributions of a teacher over the sentences of docs that have tokens."""
        arrays = [array for own in teacher.potentials(docs) for array in own if len(array)]
        return teacher.pipe._given(arrays, [])

    @abstractmethod
    def _given(self, scores: Sequence[Floats2d], known: Sequence[Any]) -> Any:
        """Make the distributions of sentences from their scores and what is known of them.

        Nothing is known if `known` is empty.
        """

    # Evidence

    @abstractmethod
    def _translated(self, doc: Doc, evidence: Evidence, bounds: Bounds) -> list[Any]:
        """Translate the evidence on a doc into what is known of each sentence."""

    # Training

    def _reduced(self, losses: Tensor) -> Tensor:
        """Reduce the losses of the sentences of an update by the setting `reduction`."""
        if self._reduction == "sum":
            return losses.sum()
        return losses.sum() / (sentence_count(self._whole) if self._whole else len(losses))

    def _with_teacher(self, losses: Tensor, dist: Any, examples: Iterable[Example]) -> Tensor:
        """Mix the losses of sentences with the cross entropy with the teacher's distributions.

        Raises:
            InputError: if the teacher splits a text into other sentences.
        """
        docs = [eg.predicted for eg in examples if len(eg.predicted)]
        taught = self._taught(self._teacher, docs)
        if not torch.equal(taught.lengths, dist.lengths):
            raise InputError(
                f"{self.name}: the teacher splits a text into other sentences than the student: "
                "leave the component that sets them out of the teacher's pipeline"
            )
        distance = dist.log_partition - dist.expected_score(taught).to(dist.dtype)
        return (1 - self._teacher_weight) * losses + self._teacher_weight * distance

    def _loss_share(self, part: Sequence[Example], whole: Sequence[Example]) -> float:
        return 1.0 if self._reduction == "sum" else super()._loss_share(part, whole)

    @abstractmethod
    def log_likelihood(self, flat: Tensor, lengths: Tensor, examples: list[Example]) -> Tensor:
        """Compute the log probability of the annotation of examples, without costs of training.

        Args:
            flat: the scores of all sentences, row after row.
            lengths: (B,) the number of tokens of each sentence that has tokens.
            examples: the examples that the sentences are from.

        Returns:
            (B,) nats.

        Raises:
            InputError: if the component does not know a gold label.
        """
