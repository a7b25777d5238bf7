"""The base class of all components: labels, weights, training, streams, queries and saving."""

import multiprocessing
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy
import torch
from numpy.typing import NDArray
from spacy.errors import Errors
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.architectures.sentencewise import listens
from spacy_psa.bridge.encoder_weights import encoder_weights_in
from spacy_psa.bridge.optimizer import clip_gradients
from spacy_psa.errors import InputError, check_amounts, naming
from spacy_psa.pipeline import overlap
from spacy_psa.pipeline.analyses import BatchAnalyses, DocAnalyses, Ranked, SentenceAnalyses
from spacy_psa.pipeline.coverage import check_saved
from spacy_psa.pipeline.evidence import (
    OUTSIDE,
    Asked,
    Evidence,
    Labels,
    check_groups,
    read_evidence,
)
from spacy_psa.pipeline.inference import Inference, checked_scores
from spacy_psa.pipeline.initialization import SAMPLE, check_list, read_examples
from spacy_psa.pipeline.prepared import Prepared
from spacy_psa.pipeline.settings import (
    Setting,
    all_or_nothing,
    check_switch,
    joined_signature,
    note_changes,
    set_changes,
)
from spacy_psa.pipeline.upstream import check_before, check_upstream
from spacy_psa.sentences import (
    Bounds,
    SplitDocs,
    document_batches,
    sentence_bounds,
    sentence_count,
)

Self = TypeVar("Self", bound="StructuredPipe")
Reduction = Literal["mean", "sum"]


class StructuredPipe(TrainablePipe, metaclass=ABCMeta):
    """Base class of the components whose model scores a structured distribution.

    A subclass finds labels in gold docs (`_find_labels`), predicts (`predict`), writes to docs
    (`set_annotations`), compares scores with gold docs (`get_loss`) and answers questions about
    docs (`analyses`).

    Args:
        model: Model[List[Doc], List[Floats2d]] with one array for each sentence.
        max_grad_norm: the largest joint L2 norm of the gradients of this component in an update
            (Wei2020 section 5.2: 5.0); 0 for no limit. The gradients of a shared tok2vec or
            transformer before it are not counted; see `joint_clipping.v1`.
        confidence: whether predictions are written with their probabilities.
        overwrite: True to ignore and replace the annotation that is on a doc; False to use it as
            evidence.
        required_spans_key: the key of `doc.spans` with spans that predictions must have; None for
            no such spans. A span without label may have any.
        forbidden_spans_key: the key of `doc.spans` with spans that predictions must not have; None
            for no such spans. A span without label is forbidden with all labels.
        scorer: called with the examples in `score`; None for no scores.
    """

    max_grad_norm = Setting(
        lambda name, value: check_amounts("it must be 0 for no limit, or more", **{name: value})
    )
    confidence = Setting(check_switch)
    overwrite = Setting(check_switch)
    # The batch of which the present examples are a part, where it is divided into several updates:
    # a mean loss is one over the whole batch.
    _whole: Sequence[Example] | None = None
    _reduction: Reduction = "mean"
    _teacher: Any = None  # see `spacy_psa.pipeline.distillation`
    _teacher_weight: float = 0.0
    # Cached properties that follow from the settings, the labels and the model.
    _derived: ClassVar[tuple[str, ...]] = ("_listens",)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__signature__ = joined_signature(cls)

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        *,
        max_grad_norm: float = 5.0,
        confidence: bool = False,
        overwrite: bool = False,
        required_spans_key: str | None = None,
        forbidden_spans_key: str | None = None,
        scorer: Callable | None = None,
    ):
        self.vocab = vocab
        self.model = model
        self.name = name
        self.scorer = scorer
        self.cfg: dict[str, Any] = {"labels": []}
        with naming(name):
            check_groups(required_spans_key, forbidden_spans_key)
        self.max_grad_norm = max_grad_norm
        self.confidence = confidence
        self.overwrite = overwrite
        self.required_spans_key = required_spans_key
        self.forbidden_spans_key = forbidden_spans_key

    def _forget_derived(self) -> None:
        for name in self._derived:
            self.__dict__.pop(name, None)

    def _check_others(self, others: Iterable[Any]) -> None:
        """Warn if this component and another one of its pipeline write to the same place."""

    # Labels

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in the order of their numbers."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> list[str]:
        """The labels as `spacy init labels` writes them and `initialize` reads them."""
        return list(self.labels)

    @property
    @abstractmethod
    def _outputs(self) -> int:
        """The number of labels or tags that the model scores, its dimension nO."""

    @abstractmethod
    def _find_labels(self, examples: Iterable[Example]) -> list[str]:
        """Find the labels in the reference docs, in the order of their numbers."""

    def add_label(self, label: str) -> int:
        """Add a label, also to a trained component, where it is improbable until it is learned.

        Returns:
            1 if the label is new, 0 if the component has it already.

        Raises:
            InputError: if the label is empty.
            ValueError: if the label is not a string, or if the model is initialized and cannot have
                more labels.
        """
        if not isinstance(label, str):
            raise ValueError(Errors.E187)
        if not label:
            raise InputError(
                f"{self.name}: '' is not a label: every label, and every span of the training "
                "data, needs a name"
            )
        if label in self.labels:
            return 0
        self.cfg["labels"].append(label)
        self._forget_derived()
        self.vocab.strings.add(label)
        if self.model.has_dim("nO"):
            try:
                self._widen_model()
            except Exception:
                self.cfg["labels"].pop()
                self._forget_derived()
                raise
        return 1

    @abstractmethod
    def _widen_model(self) -> None:
        """Let the trained model score a label that was added; ValueError if it cannot."""

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Any = None,
    ) -> None:
        """Fix the labels and make the weights.

        Args:
            get_examples: returns the training examples.
            nlp: the pipeline, which spaCy passes.
            labels: a list of labels; None to find them in the examples.

        Raises:
            InputError: if there is no label, or `labels` is not a list of labels, or if it listens
                to a component that is not before it.
            ValueError: if the examples have no token.
        """
        if nlp is not None:
            check_before(nlp, self)
        # Not typed as Iterable[str]: spaCy would turn a string in a config into its letters.
        check_list(self.name, "labels", labels)
        sample: list[Doc] = []
        examples = read_examples(self, get_examples, sample)
        for label in self._find_labels(examples) if labels is None else labels:
            self.add_label(label)
        if not self.labels:
            raise InputError(
                f"{self.name}: there are no labels, because the training data has no annotation "
                "that this component learns from: check [paths.train], or set "
                f"[initialize.components.{self.name}.labels]"
            )
        while len(sample) < SAMPLE and next(examples, None) is not None:
            pass
        if not sample:
            raise ValueError(Errors.E923.format(name=self.name))
        self.model.set_dim("nO", self._outputs)
        self._prepare_model()
        self.model.initialize(X=sample)
        self._check_model(sample[0])

    def _prepare_model(self) -> None:
        """Tell the model what follows from the labels, before its weights are made."""

    def _check_model(self, doc: Doc) -> None:
        """Check that the initialized model fits this component, by a doc that it can score."""

    def _samples(self, examples: Iterable[Example]) -> Iterator[Doc]:
        """Select the docs that the model can be initialized with."""
        return (eg.predicted for eg in examples if len(eg.predicted))

    # Inference

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream of docs.

        If a batch fails, its docs are tried one by one, and only the docs that fail themselves go
        to the error handler. The others are annotated together; if that fails also, one by one.

        Args:
            stream: the docs.
            batch_size: number of docs that are annotated together. The docs of one document stay
                together if possible; see `document_batches`. On a GPU, the next batch is
                read and predicted while this one is annotated.

        Yields:
            The annotated docs, in order.
        """
        if multiprocessing.parent_process() is not None:
            # torch's threads do not survive the fork of nlp.pipe(n_process=...).
            torch.set_num_threads(1)
        batches = document_batches(stream, batch_size)
        if overlap.AHEAD and self.model.ops.device_type == overlap.DEVICE:
            predictions = overlap.predicted_ahead(self, batches)
        else:
            predictions = ((docs, partial(self.predict, docs)) for docs in batches)
        for docs, predicted in predictions:
            try:
                self.set_annotations(docs, predicted())
            except Exception:
                yield from self._without_failing(docs)
            else:
                yield from docs

    def _without_failing(self, docs: Iterable[Doc]) -> list[Doc]:
        """Annotate the docs of a batch that failed; return those that do not fail themselves."""
        handle_error = self.get_error_handler()
        good = []
        for doc in docs:
            try:
                self.set_annotations([doc], self.predict([doc]))
            except Exception as error:
                handle_error(self.name, self, [doc], error)
            else:
                good.append(doc)
        if len(good) > 1:
            # Docs of one document see each other. If they fail together, each stays as it is.
            with suppress(Exception):
                self.set_annotations(good, self.predict(good))
        return good

    def _potentials(self, docs: list[Doc]) -> list[list[Floats2d]]:
        """Score the sentences of each doc, without evidence, for a component that learns from it.

        A sentence that is not scored has an array without rows.
        """
        scores = iter(checked_scores(self, docs))
        return [[next(scores) for _ in sentence_bounds(doc)] for doc in docs]

    def _same_outputs(self, other: "StructuredPipe") -> bool:
        """Whether the scores of another component are for the same labels."""
        return isinstance(other, type(self)) and self.labels == other.labels

    # From docs to distributions; see `Inference`

    _analyses: ClassVar[type[BatchAnalyses]]
    """The analyses of the sentences of a batch."""

    @cached_property
    def _listens(self) -> bool:
        """Whether the model must get whole docs."""
        return listens(self.model)

    def _seen(self, split: SplitDocs) -> SplitDocs:
        """Return the docs as the model sees them."""
        return split

    @abstractmethod
    def _translated(self, doc: Doc, evidence: Evidence, bounds: Bounds) -> list[Any]:
        """Translate the evidence on a doc into what is known of each sentence."""

    @abstractmethod
    def _divided(self, sizes: list[int], known: list[Any]) -> list[list[int]]:
        """Divide sentences of `sizes` tokens into batches, without those that have no tokens."""

    @abstractmethod
    def _given(self, scores: Sequence[Floats2d], known: Sequence[Any]) -> Any:
        """Make the distributions of sentences from their scores and what is known of them.

        Nothing is known if `known` is empty.
        """

    def distribution(self, docs: Iterable[Doc]) -> Any:
        """Return the distribution over the analyses of the docs' sentences.

        The annotation that is already on the docs is evidence.

        Returns:
            A distribution with one row for each sentence that has tokens. For trees, `labels[i]`
            has the number i + 1, and sentences without words or over `max_length` are left out.

        Raises:
            InputError: if the model listens to a component that has not seen a doc.
            ValueError: if no sentence is left, or the component has no weights.
        """
        return Inference(self, docs).distribution()

    # Queries

    def analyses(self, docs: Iterable[Doc]) -> list[DocAnalyses]:
        """Score docs once, for many questions about their analyses.

        Args:
            docs: the docs; they stay as they are. The evidence on them counts.

        Returns:
            The analyses of each doc: the best ones, probabilities, entropy and samples, exact.
            More evidence is added by `given`.

        Raises:
            InputError: if no analysis of a sentence agrees with the evidence on its doc, or if the
                model listens to a component that has not seen a doc.
            ValueError: if the component has no weights.
        """
        inference = Inference(self, docs)
        parts = inference.by_doc(self._sentence_analyses(inference))
        return [
            DocAnalyses(self, doc, [part for part in own if part is not None], evidence)
            for doc, own, evidence in zip(inference.split.docs, parts, inference.evidence)
        ]

    def _sentence_analyses(self, inference: Inference) -> Sequence[SentenceAnalyses | None]:
        return inference.answers(lambda batch: self._analyses.of(self, batch))

    def kbest(self, doc: Doc, k: int) -> Ranked:
        """Find the k most probable analyses of a doc; see `DocAnalyses.kbest`."""
        return self.analyses([doc])[0].kbest(k)

    def marginals(self, doc: Doc) -> NDArray[numpy.float64]:
        """Compute the probability of each label of each token; see `DocAnalyses.marginals`."""
        return self.analyses([doc])[0].marginals

    def entropy(self, doc: Doc) -> float:
        """Compute the entropy of the distribution over the analyses of a doc, in nats."""
        return self.analyses([doc])[0].entropy

    def posterior(self, spans: Iterable[Span]) -> NDArray[numpy.float64]:
        """Compute P(the span with its label is in the analysis | doc), exactly, given the evidence.

        Args:
            spans: any spans of one doc, predicted or not.

        Returns:
            (spans,) float64. The probability is 0 for a span that crosses the bounds of a sentence
            or has no token.

        Raises:
            InputError: if they are not spans of one doc, or if the model does not know a label.
        """
        spans = list(spans)
        if not all(isinstance(span, Span) for span in spans):
            raise InputError(
                f"{self.name}: posterior needs spans of a doc: for (start, end, label), use "
                "analyses([doc])[0].posterior"
            )
        filled = [span for span in spans if len(span)]
        if not filled:
            return numpy.zeros(len(spans))
        values = iter(self.analyses([filled[0].doc])[0].posterior(filled))
        return numpy.array([next(values) if len(span) else 0.0 for span in spans])

    @property
    def _span_labels(self) -> Sequence[str]:
        """The labels of spans that can be asked about."""
        return self.labels

    @property
    def _token_labels(self) -> Sequence[str]:
        """The labels of tokens that evidence may allow."""
        return (*self.labels, OUTSIDE)

    @abstractmethod
    def _joined(self, doc: Doc, parts: list[list[Any]]) -> list[Any]:
        """Join the parts of the analyses of sentences into an analysis of their doc."""

    # Evidence

    def _read_evidence(
        self,
        doc: Doc,
        require: Iterable[Asked] = (),
        forbid: Iterable[Asked] = (),
        allow: Labels | None = None,
    ) -> Evidence:
        spans, tokens = self._span_labels, self._token_labels
        return read_evidence(self.name, doc, spans, require, forbid, allow, tokens)

    @abstractmethod
    def _check_evidence(self, doc: Doc, evidence: Evidence, bounds: Bounds, remedy: str) -> None:
        """Check that an analysis can agree with the evidence on a doc."""

    @abstractmethod
    def _on_doc(self, doc: Doc, bounds: Bounds) -> Evidence:
        """Read the annotation on a doc that this component has not predicted itself."""

    # Training

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch of examples.

        Args:
            examples: predicted docs with their references.
            drop: dropout rate of spaCy's own layers. The dropout rates of this package's layers are
                settings of their architectures; `drop` does not change them.
            sgd: the optimizer; None to add up gradients and keep the weights as they are.
            losses: the losses so far, by component; the loss of the batch is added to them.

        Returns:
            The losses.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = examples if isinstance(examples, Prepared) else list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        if not any(len(eg.predicted) for eg in examples):
            return losses
        set_dropout_rate(self.model, drop)
        losses[self.name] += self._accumulate(examples)
        if sgd not in (None, False):
            self.finish_update(sgd)
        return losses

    def _accumulate(self, examples: list[Example]) -> float:
        """Compute the loss of a batch and add its gradients to the model's gradients."""
        docs = examples.docs if isinstance(examples, Prepared) else [e.predicted for e in examples]
        if self._listens:
            check_upstream(self.name, self.model, docs, update=True)
        scores, backprop = self.model.begin_update(docs)
        loss, d_scores = self.get_loss(examples, scores)
        backprop(d_scores)
        return loss

    @abstractmethod
    def _read_gold(self, examples: Sequence[Example]) -> Any:
        """Read what `get_loss` needs of the annotation of examples."""

    def _gold(self, examples: Sequence[Example]) -> Any:
        """Return what `_read_gold` reads, or has read already; see `Prepared`."""
        known = examples.gold if isinstance(examples, Prepared) else {}
        return known[self.name] if self.name in known else self._read_gold(examples)

    def _reduced(self, losses: Tensor) -> Tensor:
        """Reduce the losses (B,) of the sentences of an update to their mean, or to their sum."""
        if self._reduction == "sum":
            return losses.sum()
        return losses.sum() / (sentence_count(self._whole) if self._whole else len(losses))

    def finish_update(self, sgd: Optimizer) -> None:
        """Clip the gradients of the model by their joint L2 norm, then update the weights.

        A shared tok2vec or transformer is another component, which updates itself: its gradients
        are neither counted in the norm nor clipped here, but by `joint_clipping.v1`.
        """
        if self.max_grad_norm:
            clip_gradients([self.model], self.max_grad_norm)
        self.model.finish_update(sgd)

    # Saving

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Save the component, with the settings that were changed on it."""
        note_changes(self)
        return super().to_bytes(exclude=tuple(exclude))

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the component to a folder, with the settings that were changed on it."""
        note_changes(self)
        with encoder_weights_in(Path(path)):
            super().to_disk(path, exclude=tuple(exclude))

    def from_bytes(self: Self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Load what `to_bytes` saved; if that fails, the component stays as it was.

        Raises:
            InputError: if the data are damaged, or belong to another architecture.
        """
        with all_or_nothing(self):
            super().from_bytes(bytes_data, exclude=tuple(exclude))
        return self

    def from_disk(self: Self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Load what `to_disk` saved; if that fails, the component stays as it was.

        Raises:
            InputError: if the files are damaged, or belong to another architecture.
            FileNotFoundError: if there is no such folder, or no weights in it.
        """
        if not Path(path).is_dir():
            raise FileNotFoundError(
                f"Component '{self.name}' cannot be loaded: there is no folder {path}"
            )
        with all_or_nothing(self), encoder_weights_in(Path(path)):
            super().from_disk(path, exclude=tuple(exclude))
        return self

    def _check_loaded(self) -> None:
        """Check what was loaded, and set the settings that had been changed."""
        self._forget_derived()
        set_changes(self)
        check_saved(self.name, self.cfg)
        if self.model.has_dim("nO") and self.model.get_dim("nO") != self._outputs:
            raise InputError(
                f"the weights are for {self.model.get_dim('nO')} outputs, "
                f"but the labels make {self._outputs}: use the files of one model"
            )
