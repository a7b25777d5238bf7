"""Questions to the distribution of a component over the analyses of a doc."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc

from spacy_psa.errors import check_sizes, naming
from spacy_psa.pipeline.chain.kbest import Ranked, best_sequences, best_sums
from spacy_psa.pipeline.chain.refined_chain import RefinedChain
from spacy_psa.structs.chain import LinearChain

Answer = TypeVar("Answer")
Marginals = NDArray[numpy.float64]


class ChainQueries(ABC):
    """Answers questions about the analyses of a doc, exactly and given the evidence on it.

    A component gives the distributions (`infer`) and the meaning of their tags (`named`,
    `analysis`).

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> tagger = nlp.add_pipe(
        ...     "crf_tagger", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}}
        ... )
        >>> for tag in ("NOUN", "VERB"):
        ...     _ = tagger.add_label(tag)
        >>> optimizer = nlp.initialize()
        >>> doc = nlp.make_doc("fish swim")
        >>> tagger.marginals(doc).sum(axis=1).round(6)
        array([1., 1.])
        >>> len(tagger.kbest(doc, k=10))  # two tags for each of two tokens
        4
        >>> 0 <= tagger.entropy(doc) < 1.3863  # log 4
        True
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
        """Read an answer for each sentence of some docs from its distribution.

        Args:
            docs: the docs.
            read: called with the distribution of a batch of sentences; gives an answer for each of
                them.

        Returns:
            For each doc, the first token of each sentence and the answer for it.
        """

    @abstractmethod
    def named(self, tags: Any, start: int) -> list[Any]:
        """Translate the tags of a sentence into names.

        Args:
            tags: (length,) the numbers of the tags.
            start: the first token of the sentence.
        """

    @abstractmethod
    def analysis(self, doc: Doc, parts: list[list[Any]]) -> list[Any]:
        """Join the output of `named` for the sentences of a doc into an analysis of the doc."""

    def marginals(self, doc: Doc) -> Marginals:
        """Compute P(tag | doc) for each token of a doc.

        Returns:
            (tokens, K) float64; the columns are `tags`.
        """
        return self.marginals_batch([doc])[0]

    def marginals_batch(self, docs: Iterable[Doc]) -> list[Marginals]:
        """Compute P(tag | doc) for each token of several docs, which share batches of the model.

        Returns:
            For each doc, the output of `marginals`.
        """
        empty = numpy.zeros((0, len(self.tags)))
        inferred = self.infer(
            list(docs), lambda chain: cut(tag_marginals(exact(chain)), chain.lengths)
        )
        return [numpy.concatenate([empty, *(part for _, part in parts)]) for parts in inferred]

    def entropy(self, doc: Doc) -> float:
        """Compute the entropy of the distribution over the analyses of a doc, in nats.

        It is the sum of the entropies of the doc's sentences, and 0 if only one analysis is
        possible.
        """
        parts = self.infer([doc], lambda chain: exact(chain).entropy.tolist())
        return float(sum(entropy for _, entropy in parts[0]))

    def kbest(self, doc: Doc, k: int) -> list[tuple[float, list[Any]]]:
        """Find the k most probable analyses of a doc.

        Args:
            doc: the doc.
            k: how many analyses to find, at least 1.

        Returns:
            Pairs of a log probability and the spans or tags of the analysis, best first. The
            analyses are distinct, and the log probabilities are under the distribution over all
            analyses of the whole doc. There are fewer than k if the doc has fewer analyses.

        Raises:
            InputError: if k is below 1.
        """
        return self.kbest_batch([doc], k)[0]

    def kbest_batch(self, docs: Iterable[Doc], k: int) -> list[list[tuple[float, list[Any]]]]:
        """Find the k most probable analyses of several docs, which go through the model together.

        Args:
            docs: the docs.
            k: how many analyses to find, at least 1.

        Returns:
            For each doc, the output of `kbest`.

        Raises:
            InputError: if k is below 1.
        """
        with naming(self.name):
            check_sizes(k=k)
        docs = list(docs)
        found = self.infer(docs, lambda chain: best_tags(exact(chain), k))
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
        """Find the n most probable analyses; the name of `kbest` in version 0.1."""
        warnings.warn("nbest is deprecated: use kbest", DeprecationWarning, stacklevel=2)
        return self.kbest(doc, n)

    def nbest_batch(self, docs: Iterable[Doc], n: int) -> list[list[tuple[float, list[Any]]]]:
        """Find the n most probable analyses of docs; the name of `kbest_batch` in version 0.1."""
        warnings.warn(
            "nbest_batch is deprecated: use kbest_batch", DeprecationWarning, stacklevel=2
        )
        return self.kbest_batch(docs, n)


def exact(chain: LinearChain) -> LinearChain:
    """Convert a chain to double precision.

    Raises:
        ValueError: if a sentence has no analysis.
    """
    chain = chain.double()
    if (chain.log_partition == -torch.inf).any():
        raise ValueError("no tag sequence is possible for a sentence of the batch")
    return chain


def tag_marginals(chain: LinearChain) -> torch.Tensor:
    """Compute P(tag) for each token, over the tags of the component: (B, n, K)."""
    if isinstance(chain, RefinedChain):
        return chain.fold(chain.marginals)
    return chain.marginals


def best_tags(chain: LinearChain, k: int) -> list[Ranked]:
    """Find the k best tag sequences of each sentence, over the tags of the component.

    Returns:
        For each sentence, pairs of a log probability and the tags (length,), best first.

    Raises:
        ValueError: if a sentence has no tag sequence.
    """
    found = best_sequences(chain, k)
    if not isinstance(chain, RefinedChain):
        return found
    bases = chain.base.numpy()
    return [[(p, base[tags]) for p, tags in ranked] for base, ranked in zip(bases, found)]


def cut(padded: torch.Tensor, lengths: torch.Tensor) -> list[NDArray[Any]]:
    """Cut the rows of a (B, n, ...) tensor to the lengths of their sentences.

    Args:
        padded: (B, n, ...) the values of B sentences.
        lengths: (B,) int64, the number of tokens of each sentence.
    """
    return [row[:n] for row, n in zip(padded.cpu().numpy(), lengths.tolist(), strict=True)]
