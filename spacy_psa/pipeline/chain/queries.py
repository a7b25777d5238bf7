"""What can be asked of a component's distribution over the analyses of a doc."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.kbest import best_sequences, best_sums
from spacy_psa.structs.chain import LinearChain

Answer = TypeVar("Answer")
Marginals = NDArray[numpy.float64]


class ChainQueries(ABC):
    """Exact answers about a doc, given the evidence on it.

    A component gives the distributions (`infer`) and says in names what their tags mean
    (`named`, `analysis`).
    """

    name: str

    @property
    @abstractmethod
    def tags(self) -> tuple[str, ...]:
        """The K tags of a token, in the order of the model's output."""

    @abstractmethod
    def infer(
        self, docs: list[Doc], read: Callable[[LinearChain], Iterable[Answer]]
    ) -> list[list[tuple[int, Answer]]]:
        """For each doc, the first token of each of its sentences and what `read` says of it.

        read: from the distribution over a batch of sentences to something for each of them.
        """

    @abstractmethod
    def named(self, tags: Any, start: int) -> list[Any]:
        """What a sentence's tags say, in names; `start` is its first token."""

    @abstractmethod
    def analysis(self, doc: Doc, parts: list[list[Any]]) -> list[Any]:
        """An analysis of a doc, from what `named` gave for its sentences."""

    def marginals(self, doc: Doc) -> Marginals:
        """P(tag | doc), (tokens, K) float64; the columns are `tags`."""
        parts = self.infer([doc], lambda chain: cut(exact(chain).marginals, chain.lengths))
        rows = [numpy.zeros((0, len(self.tags))), *(part for _, part in parts[0])]
        return numpy.concatenate(rows)

    def entropy(self, doc: Doc) -> float:
        """The entropy of the distribution over the analyses of a doc, in nats.

        It is the sum of its sentences' entropies, 0 where there is no doubt.
        """
        parts = self.infer([doc], lambda chain: exact(chain).entropy.tolist())
        return float(sum(entropy for _, entropy in parts[0]))

    def kbest(self, doc: Doc, k: int) -> list[tuple[float, list[Any]]]:
        """The k most probable analyses of a doc, best first, as (log probability, spans or
        tags).

        They are distinct, and the log probabilities are under the distribution over all
        analyses of the whole doc. There are fewer where the doc has fewer.

        Raises InputError for k < 1.
        """
        return self.kbest_batch([doc], k)[0]

    def kbest_batch(self, docs: Iterable[Doc], k: int) -> list[list[tuple[float, list[Any]]]]:
        """`kbest` of each of some docs, which go through the model together."""
        if k < 1:
            raise InputError(f"{self.name}: k is {k}: ask for 1 analysis or more")
        docs = list(docs)
        found = self.infer(docs, lambda chain: best_sequences(exact(chain), k))
        results = []
        for doc, parts in zip(docs, found):
            named = [[self.named(tags, start) for _, tags in ranked] for start, ranked in parts]
            scores = [numpy.array([log_prob for log_prob, _ in ranked]) for _, ranked in parts]
            results.append(
                [
                    (log_prob, self.analysis(doc, [names[i] for names, i in zip(named, ranks)]))
                    for log_prob, ranks in best_sums(scores, k)
                ]
            )
        return results

    def nbest(self, doc: Doc, n: int) -> list[tuple[float, list[Any]]]:
        """The name of `kbest` in version 0.1."""
        warnings.warn("nbest is now kbest", DeprecationWarning, stacklevel=2)
        return self.kbest(doc, n)

    def nbest_batch(self, docs: Iterable[Doc], n: int) -> list[list[tuple[float, list[Any]]]]:
        """The name of `kbest_batch` in version 0.1."""
        warnings.warn("nbest_batch is now kbest_batch", DeprecationWarning, stacklevel=2)
        return self.kbest_batch(docs, n)


def exact(chain: LinearChain) -> LinearChain:
    """A chain that answers in double precision.

    Raises ValueError where a sentence has no analysis.
    """
    chain = LinearChain(chain.potentials.double(), chain.lengths)
    if (chain.log_partition == -torch.inf).any():
        raise ValueError("no tag sequence is possible for some sentence")
    return chain


def cut(padded: torch.Tensor, lengths: torch.Tensor) -> list[NDArray[Any]]:
    """The rows of a (B, n, ...) tensor, each as long as its sentence."""
    return [row[:n] for row, n in zip(padded.cpu().numpy(), lengths.tolist(), strict=True)]
