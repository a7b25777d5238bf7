"""What the labelling components share: from docs to a chain distribution and back."""

import multiprocessing
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy
import torch
from numpy.typing import NDArray
from spacy.errors import Errors
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.util import minibatch
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate, torch2xp, xp2torch
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.architectures.heads import Bounds, listens, sentence_bounds, sentences
from spacy_psa.bridge import clip_gradients
from spacy_psa.errors import InputError
from spacy_psa.modules.ragged import mask, pad
from spacy_psa.pipeline.schemes import MISSING, Moves
from spacy_psa.structs.chain import LinearChain

Tags = NDArray[numpy.int64]
Allowed = NDArray[numpy.bool_]
Reduction = Literal["mean", "sum"]
INIT_SAMPLE = 10


class SequenceLabeler(TrainablePipe, ABC):
    """A component that gives each token one of K tags, by a linear chain over sentences.

    A subclass says what its tags are and what may follow what (`tags`, `legal`), finds
    labels in gold docs (`find_labels`), reads gold tags (`gold_tags`) and what is known
    already (`known_tags`), and writes tags to docs (`set_annotations`).

    model: Model[List[Doc], List[Floats2d]] with one array of potentials for each
    sentence: K * K log potentials or K log probabilities a token.
    max_grad_norm: limit of the joint L2 norm of the model's gradients in an update
    (J section 5.2: 5.0); 0 for none.
    reduction: whether an update follows the "mean" or the "sum" of its sentences'
    negative log likelihoods (J Eq 3 writes the sum).
    batch_tokens: tokens, padding counted, that go through the model at once in prediction.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        *,
        scorer: Callable | None = None,
        max_grad_norm: float = 5.0,
        reduction: Reduction = "mean",
        batch_tokens: int = 4000,
    ):
        if reduction not in ("mean", "sum"):
            raise InputError(f"{name}: reduction is {reduction!r}: take 'mean' or 'sum'")
        self.vocab = vocab
        self.model = model
        self.name = name
        self.scorer = scorer
        self.max_grad_norm = max_grad_norm
        self.reduction = reduction
        self.batch_tokens = batch_tokens
        self.cfg: dict[str, Any] = {"labels": []}

    @property
    @abstractmethod
    def tags(self) -> tuple[str, ...]:
        """The K tags of a token, in the order of the model's output."""

    @abstractmethod
    def legal(self) -> Moves:
        """What a tag sequence may do."""

    @abstractmethod
    def find_labels(self, examples: Iterable[Example]) -> list[str]:
        """The labels in the examples' reference docs, sorted."""

    @abstractmethod
    def gold_tags(self, example: Example, bounds: Bounds) -> list[Tags]:
        """The gold tags of each sentence of the predicted doc, MISSING where there is
        no annotation; legal where nothing is missing."""

    @abstractmethod
    def known_tags(self, doc: Doc, bounds: Bounds) -> list[Allowed | None]:
        """For each sentence, the tags (n, K) that what stands on the doc allows; None
        where it says nothing."""

    # Labels

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order that fixes the tags' numbers."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> list[str]:
        """What `spacy init labels` writes and `initialize` takes."""
        return list(self.labels)

    def add_label(self, label: str) -> int:
        """Add a label before initialization. Returns 0 where it is there already.

        Errors: ValueError for what is no string, or once the model has weights.
        """
        if not isinstance(label, str):
            raise ValueError(Errors.E187)
        if label in self.labels:
            return 0
        if self.model.has_dim("nO"):
            raise ValueError(Errors.E922.format(name=self.name, nO=self.model.get_dim("nO")))
        self.cfg["labels"].append(label)
        self.vocab.strings.add(label)
        return 1

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Iterable[str] | None = None,
    ) -> None:
        """Fix the labels, given or found in the examples, and make the weights.

        Errors: InputError where there is no label, ValueError where there is no token.
        """
        validate_get_examples(get_examples, f"{type(self).__name__}.initialize")
        found = self.find_labels(get_examples()) if labels is None else labels
        for label in found:
            self.add_label(label)
        if not self.labels:
            raise InputError(
                f"{self.name}: no labels. The training data has no annotation that this "
                "component learns from; check [paths.train], or give [initialize.components."
                f"{self.name}.labels]"
            )
        docs = (eg.predicted for eg in get_examples() if len(eg.predicted))
        sample = list(islice(docs, INIT_SAMPLE))
        if not sample:
            raise ValueError(Errors.E923.format(name=self.name))
        self.model.set_dim("nO", len(self.tags))
        self.model.initialize(X=sample)

    # Inference

    def distribution(self, docs: Iterable[Doc]) -> LinearChain:
        """The distribution over legal tag sequences of the docs' sentences, one row each,
        given what stands on the docs already. Sentences without tokens are left out.

        Errors: ValueError where the docs have no token or the component no weights.
        """
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            raise ValueError(f"{self.name}: there are no tokens to give a distribution over")
        known = [allowed for doc in docs for allowed in self.known_tags(doc, sentence_bounds(doc))]
        potentials = self._potentials(docs)
        filled = [i for i, array in enumerate(potentials) if len(array)]
        return self._legal_chain([potentials[i] for i in filled], [known[i] for i in filled])

    def predict(self, docs: Iterable[Doc]) -> list[Tags]:
        """The most probable legal tags of each doc, (n,) int64 arrays.

        Sentences go through the model in order of length, `batch_tokens` at a time, so
        a long one does not pad the rest."""
        docs = list(docs)
        inputs = sentences(docs)
        known = [allowed for doc in docs for allowed in self.known_tags(doc, sentence_bounds(doc))]
        # A listener hands over what the upstream component computed for whole docs.
        ready = self._potentials(docs) if listens(self.model) else None
        best: list[Tags] = [numpy.zeros(0, dtype="int64")] * len(inputs)
        for batch in _batches_by_length([len(x) for x in inputs], self.batch_tokens):
            if ready is None:
                potentials = self._potentials([inputs[i] for i in batch])
            else:
                potentials = [ready[i] for i in batch]
            chain = self._legal_chain(potentials, [known[i] for i in batch])
            for i, tags in zip(batch, chain.argmax.cpu().numpy(), strict=True):
                best[i] = tags[: len(inputs[i])]
        tags_of = iter(best)
        return [numpy.concatenate([next(tags_of) for _ in sentence_bounds(doc)]) for doc in docs]

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream of docs. Where a batch fails, its docs are taken one by one,
        so that only those that fail themselves go to the error handler."""
        if multiprocessing.parent_process() is not None:
            # torch's threads do not survive the fork of nlp.pipe(n_process=...).
            torch.set_num_threads(1)
        for docs in minibatch(stream, size=batch_size):
            try:
                predictions = self.predict(docs)
            except Exception:
                yield from self._pipe_one_by_one(docs)
            else:
                self.set_annotations(docs, predictions)
                yield from docs

    def _pipe_one_by_one(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        handle_error = self.get_error_handler()
        for doc in docs:
            try:
                self.set_annotations([doc], self.predict([doc]))
            except Exception as error:
                handle_error(self.name, self, [doc], error)
            else:
                yield doc

    def _potentials(self, docs: list[Doc]) -> list[Floats2d]:
        if not self.model.has_dim("nO"):
            raise ValueError(Errors.E109.format(name=self.name))
        return self.model.predict(docs)

    def _chain(self, flat: Tensor, lengths: Tensor) -> LinearChain:
        """(N, K) or (N, K * K) scores of a ragged batch as a distribution."""
        k = len(self.tags)
        if flat.shape[1] == k:
            return LinearChain.from_emissions(pad(flat, lengths), lengths)
        return LinearChain(pad(flat.view(-1, k, k), lengths), lengths)

    def _legal_chain(self, potentials: list[Floats2d], known: list[Allowed | None]) -> LinearChain:
        flat = xp2torch(self.model.ops.xp.concatenate(potentials))
        lengths = torch.tensor([len(array) for array in potentials])
        chain = self._constrain(self._chain(flat, lengths))
        if any(allowed is not None for allowed in known):
            tokens = mask(lengths)
            evidence = tokens[..., None].expand(-1, -1, len(self.tags)).clone()
            for row, allowed in enumerate(known):
                if allowed is not None:
                    evidence[row, : len(allowed)] = torch.from_numpy(allowed)
            chain = chain.constrain(evidence.to(flat.device))
        return chain

    def _constrain(self, chain: LinearChain) -> LinearChain:
        device = chain.potentials.device
        moves, start, end = (torch.from_numpy(array).to(device) for array in self.legal())
        return chain.constrain(moves=moves, start=start, end=end)

    # Training

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch of examples. `drop` reaches spaCy's own layers only."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        if not any(len(eg.predicted) for eg in examples):
            return losses
        set_dropout_rate(self.model, drop)
        potentials, backprop = self.model.begin_update([eg.predicted for eg in examples])
        loss, d_potentials = self.get_loss(examples, potentials)
        backprop(d_potentials)
        if sgd not in (None, False):
            self.finish_update(sgd)
        losses[self.name] += loss
        return losses

    def get_loss(
        self, examples: Iterable[Example], scores: list[Floats2d]
    ) -> tuple[float, list[Floats2d]]:
        """The negative log likelihood of what is annotated (J Eq 3), and its gradient
        with respect to the potentials. Tokens without annotation are summed out.

        A CRF is normalised over legal sequences, which are all that it ever predicts;
        independent tags are normalised token by token (J Table 9, model 5)."""
        gold = [
            tags for eg in examples for tags in self.gold_tags(eg, sentence_bounds(eg.predicted))
        ]
        sizes = [len(tags) for tags in gold]
        flat = xp2torch(self.model.ops.xp.concatenate(scores)).requires_grad_()
        lengths = torch.tensor([size for size in sizes if size])
        chain = self._chain(flat, lengths)
        if flat.shape[1] != len(self.tags):
            chain = self._constrain(chain)
        values = torch.from_numpy(numpy.concatenate(gold)).to(flat.device)
        log_likelihood = _log_likelihood(chain, pad(values, lengths))
        loss = -log_likelihood.sum()
        if self.reduction == "mean":
            loss = loss / len(lengths)
        loss.backward()
        assert flat.grad is not None
        ends = numpy.cumsum(sizes)[:-1].tolist()
        return float(loss.detach()), self.model.ops.xp.split(torch2xp(flat.grad), ends)

    def finish_update(self, sgd: Optimizer) -> None:
        """Clip the gradients of the whole model by their joint norm, then update it."""
        if self.max_grad_norm:
            clip_gradients(self.model, self.max_grad_norm)
        self.model.finish_update(sgd)

    # Serialisation

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "SequenceLabeler":
        """Load from `to_bytes`. Where that fails, the component stays as it was.

        Errors: InputError for damaged data or another architecture's weights."""
        with self._all_or_nothing():
            super().from_bytes(bytes_data, exclude=tuple(exclude))
        return self

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "SequenceLabeler":
        """Load from `to_disk`. Where that fails, the component stays as it was.

        Errors: InputError for damaged files or another architecture's weights."""
        with self._all_or_nothing():
            super().from_disk(path, exclude=tuple(exclude))
        return self

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        cfg, model = {**self.cfg, "labels": self.label_data}, self.model.to_bytes()
        nodes = list(self.model.walk())
        open_dims = [(node, d) for node in nodes for d in node.dim_names if not node.has_dim(d)]
        try:
            yield
            if self.model.has_dim("nO") and self.model.get_dim("nO") != len(self.tags):
                raise InputError(
                    f"the weights are for {self.model.get_dim('nO')} tags, "
                    f"the labels give {len(self.tags)}"
                )
        except Exception as error:
            self.cfg = cfg
            self.model.from_bytes(model)
            for node, dim in open_dims:  # thinc keeps those that were loaded
                node.set_dim(dim, None, force=True)  # type: ignore[arg-type]
            if isinstance(error, FileNotFoundError):
                raise
            raise InputError(f"Component '{self.name}' cannot be loaded: {error}") from error


def _batches_by_length(sizes: list[int], budget: int) -> Iterator[list[int]]:
    """Indices of the items that are not empty, longest first, in batches whose size
    times its longest item stays within the budget (one item may exceed it alone)."""
    order = sorted((i for i, size in enumerate(sizes) if size), key=lambda i: -sizes[i])
    start = 0
    while start < len(order):
        count = max(1, budget // sizes[order[start]])
        yield order[start : start + count]
        start += count


def _log_likelihood(chain: LinearChain, gold: Tensor) -> Tensor:
    """(B,) log probability of what is known of gold tags (B, n)."""
    missing = gold == MISSING
    if not missing.any():
        return chain.log_prob(gold)
    k = chain.potentials.shape[-1]
    known = torch.nn.functional.one_hot(gold.clamp(min=0), k).bool() | missing[..., None]
    return chain.constrain(known).log_partition - chain.log_partition
