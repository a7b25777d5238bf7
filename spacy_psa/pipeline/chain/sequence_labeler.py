"""What the labelling components share: from docs to a chain distribution and back."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import numpy
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.architectures.crf import Bounds, listens, sentence_bounds, sentences
from spacy_psa.errors import InputError
from spacy_psa.ragged import mask, pad
from spacy_psa.pipeline.component import StructuredPipe, batches_by_size
from spacy_psa.pipeline.chain.extensions import register
from spacy_psa.pipeline.chain.kbest import best_sequences, best_sums
from spacy_psa.pipeline.chain.span_tags import MISSING, Moves
from spacy_psa.structs.chain import LinearChain

Tags = NDArray[numpy.int64]
Allowed = NDArray[numpy.bool_]
Marginals = NDArray[numpy.float64]
Reduction = Literal["mean", "sum"]
Read = TypeVar("Read")
NO_TAGS: Tags = numpy.zeros(0, dtype="int64")


class SequenceLabeler(StructuredPipe):
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
        super().__init__(vocab, model, name, scorer=scorer, max_grad_norm=max_grad_norm)
        self.reduction = reduction
        self._confidence = False
        self.batch_tokens = batch_tokens

    @property
    @abstractmethod
    def tags(self) -> tuple[str, ...]:
        """The K tags of a token, in the order of the model's output."""

    @abstractmethod
    def legal(self) -> Moves:
        """What a tag sequence may do."""

    @abstractmethod
    def gold_tags(self, example: Example, bounds: Bounds) -> list[Tags]:
        """The gold tags of each sentence of the predicted doc, MISSING where there is
        no annotation; legal where nothing is missing."""

    @abstractmethod
    def known_tags(self, doc: Doc, bounds: Bounds) -> list[Allowed | None]:
        """For each sentence, the tags (n, K) that what stands on the doc allows; None
        where it says nothing."""

    @property
    def outputs(self) -> int:
        return len(self.tags)

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

    def predict(self, docs: Iterable[Doc]) -> list[Any]:
        """The most probable legal tags of each doc, (n,) int64 arrays, or what else
        `set_annotations` of a subclass takes.

        Errors: InputError naming a sentence of which nothing legal agrees with the evidence.
        """
        found = self.infer(list(docs), best_tags)
        return [numpy.concatenate([NO_TAGS, *(tags for _, tags in parts)]) for parts in found]

    def infer(
        self, docs: list[Doc], read: Callable[[LinearChain], Iterable[Read]]
    ) -> list[list[tuple[int, Read]]]:
        """For each doc, the first token of each of its sentences and what `read` says of it.

        read: gives, for the distribution over a batch of sentences under the evidence on
        their docs, something for each of them. Sentences without tokens are left out.

        Sentences go through the model in order of length, `batch_tokens` at a time, so
        a long one does not pad the rest."""
        inputs = sentences(docs)
        bounds = [sentence_bounds(doc) for doc in docs]
        known = [
            allowed for doc, bound in zip(docs, bounds) for allowed in self.known_tags(doc, bound)
        ]
        # A listener hands over what the upstream component computed for whole docs.
        ready = self._potentials(docs) if listens(self.model) else None
        found: dict[int, Read] = {}
        for batch in batches_by_size([len(x) for x in inputs], self.batch_tokens):
            if ready is None:
                potentials = self._potentials([inputs[i] for i in batch])
            else:
                potentials = [ready[i] for i in batch]
            chain = self._legal_chain(potentials, [known[i] for i in batch])
            with self._naming_the_impossible(chain, [inputs[i] for i in batch]):
                found.update(zip(batch, read(chain), strict=True))
        numbers = iter(range(len(inputs)))
        return [
            [(start, found[i]) for (start, _), i in zip(bound, numbers) if i in found]
            for bound in bounds
        ]

    @contextmanager
    def _naming_the_impossible(self, chain: LinearChain, inputs: list[Doc]) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            impossible = (chain.log_partition == -torch.inf).nonzero()[:, 0].tolist()
            if not impossible:
                raise
            raise InputError(
                f"{self.name}: no legal analysis of the sentence {inputs[impossible[0]].text!r} "
                "agrees with what is known of it: check what stands on its doc"
            ) from error

    # What is asked of a doc; all of it given the evidence on the doc

    def marginals(self, doc: Doc) -> Marginals:
        """P(tag | doc), (tokens, K) float64; the columns are `tags`."""
        parts = self.infer([doc], lambda chain: cut(_exact(chain).marginals, chain.lengths))
        rows = [numpy.zeros((0, len(self.tags))), *(part for _, part in parts[0])]
        return numpy.concatenate(rows)

    def entropy(self, doc: Doc) -> float:
        """The entropy of the distribution over analyses of a doc, nats: 0 if there is no
        doubt. That of its sentences, summed."""
        parts = self.infer([doc], lambda chain: _exact(chain).entropy.tolist())
        return float(sum(entropy for _, entropy in parts[0]))

    def nbest(self, doc: Doc, n: int) -> list[tuple[float, list[Any]]]:
        """The n most probable analyses of a doc, best first, as (log probability, spans or
        tags). They are distinct, and the log probabilities are under the distribution over
        all analyses of the whole doc. There are fewer where the doc has fewer.

        Errors: InputError for n < 1.
        """
        return self.nbest_batch([doc], n)[0]

    def nbest_batch(self, docs: Iterable[Doc], n: int) -> list[list[tuple[float, list[Any]]]]:
        """`nbest` of each of some docs, which go through the model together."""
        if n < 1:
            raise InputError(f"{self.name}: n is {n}: ask for 1 analysis or more")
        docs = list(docs)
        found = self.infer(docs, lambda chain: best_sequences(_exact(chain), n))
        results = []
        for doc, parts in zip(docs, found):
            named = [[self.named(tags, start) for tags in ranked[1]] for start, ranked in parts]
            sums = best_sums([ranked[0] for _, ranked in parts], n)
            results.append(
                [
                    (log_prob, self.analysis(doc, [names[i] for names, i in zip(named, ranks)]))
                    for log_prob, ranks in sums
                ]
            )
        return results

    @abstractmethod
    def named(self, tags: Tags, start: int) -> list[Any]:
        """What a sentence's tags say, in names; `start` is its first token."""

    @abstractmethod
    def analysis(self, doc: Doc, parts: list[list[Any]]) -> list[Any]:
        """An analysis of a doc, from what `named` gave for its sentences."""

    @property
    def confidence(self) -> bool:
        """Whether predictions are written with their probabilities."""
        return self._confidence

    @confidence.setter
    def confidence(self, value: bool) -> None:
        if value:
            register()
        self._confidence = value

    @property
    def temperature(self) -> float:
        """What the log potentials are divided by before inference: more than 1 makes the
        model less sure, less than 1 surer, 1 leaves it as trained. The best analysis stays
        the same; training does not use it. It is saved with the component.

        Errors, when it is set: InputError for what is not a finite number above 0.
        """
        return float(self.cfg.get("temperature", 1.0))

    @temperature.setter
    def temperature(self, value: float) -> None:
        self.cfg["temperature"] = self._checked_temperature(value)

    def _checked_temperature(self, value: Any) -> float:
        number = isinstance(value, (int, float, numpy.floating)) and not isinstance(value, bool)
        if not number or not 0 < value < math.inf:
            raise InputError(
                f"{self.name}: temperature is {value!r}: take a finite number greater than 0"
            )
        return float(value)

    def _chain(self, flat: Tensor, lengths: Tensor) -> LinearChain:
        """(N, K) or (N, K * K) scores of a ragged batch as a distribution."""
        k = len(self.tags)
        if flat.shape[1] == k:
            return LinearChain.from_emissions(pad(flat, lengths), lengths)
        return LinearChain(pad(flat.view(-1, k, k), lengths), lengths)

    def _legal_chain(self, potentials: list[Floats2d], known: list[Allowed | None]) -> LinearChain:
        flat = xp2torch(self.model.ops.xp.concatenate(potentials))
        if self.temperature != 1.0:
            flat = flat / self.temperature
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

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        with super()._all_or_nothing():
            self.cfg.pop("temperature", None)  # what is loaded may have none
            yield
            self._checked_temperature(self.cfg.get("temperature", 1.0))

    # Training

    def get_loss(
        self, examples: Iterable[Example], scores: list[Floats2d]
    ) -> tuple[float, list[Floats2d]]:
        """The negative log likelihood of what is annotated (J Eq 3), and its gradient
        with respect to the potentials. Tokens without annotation are summed out.

        A CRF is normalised over legal sequences, which are all that it ever predicts;
        independent tags are normalised token by token (J Table 9, model 5)."""
        examples = list(examples)
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
        log_likelihood = self.log_likelihood(chain, pad(values, lengths), examples)
        loss = -log_likelihood.sum()
        if self.reduction == "mean":
            loss = loss / len(lengths)
        loss.backward()
        assert flat.grad is not None
        ends = numpy.cumsum(sizes)[:-1].tolist()
        return float(loss.detach()), self.model.ops.xp.split(torch2xp(flat.grad), ends)

    def log_likelihood(self, chain: LinearChain, gold: Tensor, examples: list[Example]) -> Tensor:
        """(B,) log probability of what is known of the B sentences of examples.

        gold: (B, n) tags, MISSING where there is no annotation."""
        if not (gold == MISSING).any():
            return chain.log_prob(gold)
        return chain.constrain(self.gold_allowed(gold)).log_partition - chain.log_partition

    def gold_allowed(self, gold: Tensor) -> Tensor:
        """(B, n, K) bool: the tags that agree with gold tags (B, n), all where MISSING."""
        known = torch.nn.functional.one_hot(gold.clamp(min=0), len(self.tags)).bool()
        return known | (gold == MISSING)[..., None]


def best_tags(chain: LinearChain) -> list[Tags]:
    """The most probable tags of each sentence."""
    return cut(chain.argmax, chain.lengths)


def cut(padded: Tensor, lengths: Tensor) -> list[NDArray[Any]]:
    """The rows of a (B, n, ...) tensor, each as long as its sentence."""
    return [row[:n] for row, n in zip(padded.cpu().numpy(), lengths.tolist(), strict=True)]


def _exact(chain: LinearChain) -> LinearChain:
    """A chain that answers in double precision.

    Errors: ValueError where a sentence has no analysis."""
    chain = LinearChain(chain.potentials.double(), chain.lengths)
    if (chain.log_partition == -torch.inf).any():
        raise ValueError("no tag sequence is possible for some sentence")
    return chain
