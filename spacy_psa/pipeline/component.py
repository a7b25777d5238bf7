"""The base class of all components: labels, weights, training steps, streams and saving."""

import multiprocessing
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import torch
from spacy.errors import Errors
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate
from thinc.types import Floats2d

from spacy_psa.bridge.optimizer import clip_gradients
from spacy_psa.errors import InputError, check_amounts, naming
from spacy_psa.pipeline.kept_settings import CHANGED, KeptSettings
from spacy_psa.pipeline.not_finite import check_scores
from spacy_psa.sentences import document_batches, sentence_bounds

INIT_SAMPLE = 10  # docs that show the model its widths
Self = TypeVar("Self", bound="StructuredPipe")


class StructuredPipe(KeptSettings, TrainablePipe, ABC):
    """Base class of the components whose model scores a structured distribution.

    A subclass counts the scores (`outputs`), finds labels in gold docs (`find_labels`), predicts
    (`predict`), writes to docs (`set_annotations`) and compares scores with gold docs
    (`get_loss`).

    Args:
        vocab: the vocabulary of the pipeline.
        model: Model[List[Doc], List[Floats2d]] that gives one array for each sentence.
        name: the name of the component in the pipeline.
        scorer: called with the examples in `score`; None for no scores.
        max_grad_norm: largest joint L2 norm of the gradients of this component in an update; 0 for
            no limit. Gradients of a shared tok2vec or transformer before it are not counted.

    Examples:
        >>> import spacy
        >>> tagger = spacy.blank("en").add_pipe("crf_tagger")
        >>> isinstance(tagger, StructuredPipe)
        True
        >>> tagger.add_label("NOUN"), tagger.add_label("NOUN")
        (1, 0)
        >>> tagger.labels
        ('NOUN',)
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        *,
        scorer: Callable | None,
        max_grad_norm: float,
    ):
        self.vocab = vocab
        self.model = model
        self.name = name
        self.scorer = scorer
        self.max_grad_norm = max_grad_norm
        self.cfg: dict[str, Any] = {"labels": []}

    @property
    def max_grad_norm(self) -> float:
        """The largest joint L2 norm of the gradients of an update; 0 for no limit.

        Raises:
            InputError: if it is set to something that is no number, or below 0.
        """
        return self._max_grad_norm

    @max_grad_norm.setter
    def max_grad_norm(self, value: float) -> None:
        with naming(self.name):
            check_amounts("take 0 for no limit, or more", max_grad_norm=value)
        self._max_grad_norm = value

    def check_beside(self, others: Iterable[Any]) -> None:
        """Warn if this component and another one of its pipeline write to the same place.

        Args:
            others: the components that the pipeline has already.
        """

    @property
    @abstractmethod
    def outputs(self) -> int:
        """The number of labels or tags that the model scores, its dimension nO."""

    @abstractmethod
    def find_labels(self, examples: Iterable[Example]) -> list[str]:
        """Find the labels in the examples' reference docs.

        Returns:
            The labels in the order of their numbers.
        """

    # Labels

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in the order of their numbers."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> list[str]:
        """The labels as `spacy init labels` writes them and `initialize` takes them."""
        return list(self.labels)

    def add_label(self, label: str) -> int:
        """Add a label, also to a trained component, where it is improbable until it is learned.

        Returns:
            1 if the label is new, 0 if the component has it already.

        Raises:
            InputError: if the label is empty.
            ValueError: if the label is not a string, or if the model is initialized and cannot take
                more labels.
        """
        if not isinstance(label, str):
            raise ValueError(Errors.E187)
        if not label:
            raise InputError(
                f"{self.name}: '' is no label: every label, and every span of the training data, "
                "needs a name"
            )
        if label in self.labels:
            return 0
        self.cfg["labels"].append(label)
        self.vocab.strings.add(label)
        if self.model.has_dim("nO"):
            try:
                self.widen_model()
            except Exception:
                self.cfg["labels"].pop()
                raise
        return 1

    def widen_model(self) -> None:
        """Let the trained model score a label that was added; it is improbable until learned.

        Raises:
            ValueError: if the model cannot take labels after its initialization.
        """
        raise ValueError(Errors.E922.format(name=self.name, nO=self.model.get_dim("nO")))

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Any = None,
    ) -> None:
        """Fix the labels and make the weights.

        Args:
            get_examples: gives the training examples.
            nlp: the pipeline, which spaCy passes; it is not used.
            labels: a list of labels; None to find them in the examples.

        Raises:
            InputError: if there is no label, or `labels` is no list of labels.
            ValueError: if the examples have no token.
        """
        # Not typed as Iterable[str]: spaCy would turn a string in a config into its letters.
        self._check_list("labels", labels)
        validate_get_examples(get_examples, f"{type(self).__name__}.initialize")
        found = self.find_labels(get_examples()) if labels is None else labels
        for label in found:
            self.add_label(label)
        if not self.labels:
            raise InputError(
                f"{self.name}: there are no labels, because the training data has no annotation "
                "that this component learns from: check [paths.train], or give "
                f"[initialize.components.{self.name}.labels]"
            )
        sample = list(islice(self.samples(get_examples()), INIT_SAMPLE))
        if not sample:
            raise ValueError(Errors.E923.format(name=self.name))
        self.model.set_dim("nO", self.outputs)
        self.prepare_model()
        self.model.initialize(X=sample)

    def _check_list(self, setting: str, names: Any) -> None:
        """Check that labels or tags for `initialize` are a list, or None.

        Raises:
            InputError: if they are a string or a mapping.
        """
        if isinstance(names, (str, Mapping)):
            raise InputError(
                f"{self.name}: {setting} is {reprlib.repr(names)}: give a list of {setting}, as "
                "`spacy init labels` writes it for this component"
            )

    def prepare_model(self) -> None:
        """Tell the model what follows from the labels, before its weights are made."""

    def samples(self, examples: Iterable[Example]) -> Iterator[Doc]:
        """Select the docs that the model can be initialized with."""
        return (eg.predicted for eg in examples if len(eg.predicted))

    # Inference

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream of docs.

        If a batch fails, its docs are tried one by one, and only the docs that fail themselves go
        to the error handler. The others are annotated together; if that fails too, one by one.

        Args:
            stream: the docs.
            batch_size: number of docs that are annotated together. The docs of one document stay
                together if possible; see `document_batches`.

        Yields:
            The annotated docs, in order.
        """
        if multiprocessing.parent_process() is not None:
            # torch's threads do not survive the fork of nlp.pipe(n_process=...).
            torch.set_num_threads(1)
        for docs in document_batches(stream, batch_size):
            try:
                self.set_annotations(docs, self.predict(docs))
            except Exception:
                yield from self._without_failing(docs)
            else:
                yield from docs

    def _without_failing(self, docs: Iterable[Doc]) -> list[Doc]:
        """Annotate the docs of a batch that failed, and give those that do not fail themselves."""
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
            # Docs of one document see each other. If they fail together, what each got alone stays.
            with suppress(Exception):
                self.set_annotations(good, self.predict(good))
        return good

    def _potentials(self, docs: list[Doc]) -> list[Floats2d]:
        self._require_weights()
        scores = self.model.predict(docs)
        check_scores(self.name, self.model, scores, docs)
        return scores

    def _require_weights(self) -> None:
        if not self.model.has_dim("nO"):
            raise ValueError(Errors.E109.format(name=self.name))

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
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        if not any(len(eg.predicted) for eg in examples):
            return losses
        set_dropout_rate(self.model, drop)
        losses[self.name] += self.accumulate(examples)
        if sgd not in (None, False):
            self.finish_update(sgd)
        return losses

    def accumulate(self, examples: list[Example]) -> float:
        """Compute the loss of a batch and add its gradients to the model's gradients."""
        scores, backprop = self.model.begin_update([eg.predicted for eg in examples])
        loss, d_scores = self.get_loss(examples, scores)
        backprop(d_scores)
        return loss

    def loss_share(self, part: Sequence[Example], whole: Sequence[Example]) -> float:
        """Say how much the loss of a part of a batch counts in the loss of the whole batch.

        Where several processes train, each computes the loss of its part. The loss is a mean over
        sentences, so a part counts by its number of sentences.

        Args:
            part: examples of the batch.
            whole: all of them.
        """
        count = _sentence_count(whole)
        return _sentence_count(part) / count if count else 0.0

    def finish_update(self, sgd: Optimizer) -> None:
        """Clip the gradients of the model by their joint L2 norm, then update the weights.

        A shared tok2vec or transformer is another component, which updates itself: neither is its
        part of the norm counted, nor are its gradients clipped here.
        """
        if self.max_grad_norm:
            clip_gradients(self.model, self.max_grad_norm)
        self.model.finish_update(sgd)

    # Serialisation

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Save the component, with the settings that were changed on it."""
        self.note_changes()
        return super().to_bytes(exclude=tuple(exclude))

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the component to a folder, with the settings that were changed on it."""
        self.note_changes()
        super().to_disk(path, exclude=tuple(exclude))

    def from_bytes(self: Self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Load what `to_bytes` saved; if that fails, the component stays as it was.

        Args:
            bytes_data: the saved bytes.
            exclude: names of parts to leave out.

        Raises:
            InputError: if the data are damaged, or belong to another architecture.
        """
        with self._all_or_nothing():
            super().from_bytes(bytes_data, exclude=tuple(exclude))
        return self

    def from_disk(self: Self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Load what `to_disk` saved; if that fails, the component stays as it was.

        Args:
            path: the folder of the component.
            exclude: names of parts to leave out.

        Raises:
            InputError: if the files are damaged, or belong to another architecture.
            FileNotFoundError: if there is no such folder, or no weights in it.
        """
        if not Path(path).is_dir():
            raise FileNotFoundError(
                f"Component '{self.name}' cannot be loaded: there is no folder {path}"
            )
        with self._all_or_nothing():
            super().from_disk(path, exclude=tuple(exclude))
        return self

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        cfg, model = {**self.cfg, "labels": self.label_data}, self.model.to_bytes()
        nodes = list(self.model.walk())
        open_dims = [(node, d) for node in nodes for d in node.dim_names if not node.has_dim(d)]
        self.cfg.pop(CHANGED, None)  # the saved settings may have none
        try:
            yield
            self.take_changes()
            if self.model.has_dim("nO") and self.model.get_dim("nO") != self.outputs:
                raise InputError(
                    f"the weights are for {self.model.get_dim('nO')} outputs, "
                    f"but the labels give {self.outputs}: use the files of one model"
                )
        except Exception as error:
            self.cfg = cfg
            self.model.from_bytes(model)
            for node, dim in open_dims:  # thinc does not unset the dimensions that were loaded
                node.set_dim(dim, None, force=True)  # type: ignore[arg-type]
            if isinstance(error, FileNotFoundError):
                raise
            raise InputError(f"Component '{self.name}' cannot be loaded: {error}") from error


def _sentence_count(examples: Iterable[Example]) -> int:
    return sum(len(sentence_bounds(eg.predicted)) for eg in examples if len(eg.predicted))
