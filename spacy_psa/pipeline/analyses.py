"""The analyses of a doc and their probabilities, given evidence that is added piece by piece."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy
from numpy.typing import NDArray
from thinc.types import Floats2d

from spacy_psa.errors import InputError, check_sizes, naming
from spacy_psa.pipeline.evidence import (
    CHANGE,
    Asked,
    Evidence,
    Labels,
    check_label,
    read_evidence,
)

Ranked = list[tuple[float, list[Any]]]
"""Pairs of a log probability and the parts of an analysis, best first."""


class BatchAnalyses:
    """The analyses of the sentences of a batch; each answer is computed once for all of them."""

    sentence: ClassVar[type[SentenceAnalyses]]
    """The analyses of one sentence."""

    def __init__(self, pipe: Any, dist: Any):
        self.pipe = pipe
        self.dist = dist
        self._ranked: tuple[int, list[list[tuple[float, Any]]]] = (0, [])

    @classmethod
    def of(cls, pipe: Any, batch: Any) -> list[SentenceAnalyses]:
        """Make the analyses of sentences of an `inference.Batch`; ValueError if one has none."""
        own = cls(pipe, batch.dist)
        if -math.inf in own.log_partitions:
            raise ValueError("a sentence of the batch has no analysis")
        parts = zip(batch.scores, batch.known, batch.bounds, strict=True)
        return [cls.sentence(own, row, *part) for row, part in enumerate(parts)]

    @cached_property
    def log_partitions(self) -> list[float]:
        """The log of the sum over all analyses of each sentence; -inf if there is none."""
        return self.dist.log_partition.double().tolist()

    @cached_property
    def entropies(self) -> list[float]:
        """The entropy over the analyses of each sentence, in nats."""
        return self.dist.entropy.tolist()

    @cached_property
    def marginals(self) -> list[NDArray[numpy.float64]]:
        """The probability of each label of each token, or of each span, of each sentence."""
        return self._marginals()

    @abstractmethod
    def _marginals(self) -> list[NDArray[numpy.float64]]: ...

    def kbest(self, k: int) -> list[list[tuple[float, Any]]]:
        """Find the k best analyses of each sentence, with their log probabilities."""
        if self._ranked[0] < k:
            self._ranked = k, self._kbest(k)
        return [ranked[:k] for ranked in self._ranked[1]]

    def _kbest(self, k: int) -> list[list[tuple[float, Any]]]:
        return self.dist.kbest(k)


class SentenceAnalyses:
    """The analyses of one sentence, given what is known of it.

    Args:
        known: the evidence on it.
        bounds: its first token in the doc, and the token after its last one.
    """

    def __init__(
        self,
        batch: BatchAnalyses,
        row: int,
        scores: Floats2d,
        known: Any,
        bounds: tuple[int, int],
    ):
        self.batch: Any = batch
        self.row = row
        self.scores = scores
        self.known = known
        self.start, self.end = bounds

    @property
    def pipe(self) -> Any:
        """The component."""
        return self.batch.pipe

    @property
    def log_partition(self) -> float:
        """The log of the sum over all analyses; -inf if there is none."""
        return self.batch.log_partitions[self.row]

    @property
    def entropy(self) -> float:
        """The entropy over the analyses, in nats."""
        return self.batch.entropies[self.row]

    @property
    def marginals(self) -> NDArray[numpy.float64]:
        """The probability of each label of each token, or of each span of words."""
        return self.batch.marginals[self.row]

    def kbest(self, k: int) -> Ranked:
        """Find the k best analyses with their log probabilities, over the tokens of the doc."""
        return [(log_prob, self._named(own)) for log_prob, own in self.batch.kbest(k)[self.row]]

    def sample(self, n: int) -> list[list[Any]]:
        """Draw n analyses."""
        return [self._named(own) for own in self._sample(n)]

    @abstractmethod
    def _sample(self, n: int) -> Sequence[Any]: ...

    @abstractmethod
    def _named(self, own: Any) -> list[Any]:
        """Translate an analysis into spans, names of tags or a tree, over the tokens of the doc."""

    @abstractmethod
    def posterior(self, start: int, end: int, label: str) -> float:
        """Compute the probability of a span over the tokens of the doc."""

    def given(self, doc: Any, evidence: Evidence) -> SentenceAnalyses:
        """Return the analyses given all that is known of the doc."""
        bounds = self.start, self.end
        (known,) = self.pipe._translated(doc, evidence, [bounds])
        batch = type(self.batch)(self.pipe, self.pipe._given([self.scores], [known]))
        return type(self)(batch, 0, self.scores, known, bounds)


class DocAnalyses:
    """The analyses of a doc, with probabilities that are exact and given all that is known.

    The model has scored the doc once. `given` adds evidence and computes only the sentences that
    the evidence is about. `pipe.analyses(docs)` makes one for each doc: for entities, chunks, tags
    and trees alike.

    Args:
        sentences: the analyses of its sentences that have tokens.
        log_evidence: the log probability of the evidence that was added.

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> tagger = nlp.add_pipe(
        ...     "crf_tagger", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}}
        ... )
        >>> for tag in ("NOUN", "VERB"):
        ...     _ = tagger.add_label(tag)
        >>> optimizer = nlp.initialize()
        >>> (analyses,) = tagger.analyses([nlp.make_doc("fish swim")])
        >>> len(analyses.kbest(10))
        4
        >>> analyses.given(allow={0: "VERB"}).best[0]
        'VERB'
    """

    def __init__(
        self,
        pipe: Any,
        doc: Any,
        sentences: Sequence[SentenceAnalyses],
        evidence: Evidence,
        log_evidence: float = 0.0,
    ):
        self.pipe = pipe
        self.doc = doc
        self.sentences = sentences
        self.evidence = evidence
        self.log_evidence = log_evidence

    def given(
        self,
        *,
        require: Iterable[Asked] = (),
        forbid: Iterable[Asked] = (),
        allow: Labels | None = None,
    ) -> DocAnalyses:
        """Condition on evidence, in addition to all that was known before.

        A span is a `Span` of the doc or (start, end, label) over its tokens. For a tagger, a span
        requires or forbids its label as the tag of each of its tokens.

        Args:
            require: spans that the analysis has. A span without label may have any.
            forbid: spans that it does not have; other spans over the same tokens are possible. A
                span without label is forbidden with all labels.
            allow: for a token, the label or the labels of the span that it may be in, or its tags;
                "O" is for no span. Not for trees.

        Raises:
            InputError: if the evidence contradicts itself or what was known before, if no analysis
                agrees with it, and for a label that the component does not know.
        """
        new = self.pipe._read_evidence(self.doc, require, forbid, allow)
        evidence = self.evidence.joined(new)
        bounds = [(sentence.start, sentence.end) for sentence in self.sentences]
        self.pipe._check_evidence(self.doc, evidence, bounds, CHANGE)
        sentences, gain = list(self.sentences), 0.0
        for i, before in enumerate(self.sentences):
            if not new.concerns(before.start, before.end):
                continue
            sentences[i] = before.given(self.doc, evidence)
            if sentences[i].log_partition == -math.inf:
                raise InputError(
                    f"{self.pipe.name}: no analysis of the sentence "
                    f"{self.doc[before.start : before.end].text!r} agrees with all of the "
                    "evidence: leave out some of it"
                )
            gain += sentences[i].log_partition - before.log_partition
        return DocAnalyses(self.pipe, self.doc, sentences, evidence, self.log_evidence + gain)

    def on(self, doc: Any) -> DocAnalyses:
        """Return the same analyses for another doc with the same tokens and sentences, or none."""
        return DocAnalyses(self.pipe, doc, self.sentences, self.evidence, self.log_evidence)

    @property
    def best(self) -> list[Any]:
        """The spans, tags or trees of the best analysis."""
        return self.kbest(1)[0][1]

    def kbest(self, k: int) -> Ranked:
        """Find the k most probable analyses of the doc.

        Args:
            k: how many analyses to find, at least 1.

        Returns:
            Pairs of a log probability and the spans, tags or trees of the analysis, best first.
            The analyses are distinct, and the log probabilities are under the distribution over
            all analyses of the whole doc, given the evidence. There are fewer than k if the doc
            has fewer analyses.

        Raises:
            InputError: if k is below 1.
        """
        with naming(self.pipe.name):
            check_sizes(k=k)
        ranked = [sentence.kbest(k) for sentence in self.sentences]
        ranked = [own for own in ranked if own]  # a sentence that is too long has no tree
        scores = [numpy.array([log_prob for log_prob, _ in own]) for own in ranked]
        return [
            (log_prob, self._joined([own[place][1] for own, place in zip(ranked, places)]))
            for log_prob, places in best_sums(scores, k)
        ]

    def sample(self, n: int) -> list[list[Any]]:
        """Draw n independent analyses of the doc, by torch's random numbers.

        Raises:
            InputError: if n is below 1.
        """
        with naming(self.pipe.name):
            check_sizes(n=n)
        drawn = [sentence.sample(n) for sentence in self.sentences]
        return [self._joined(list(parts)) for parts in zip(*drawn)] or [[] for _ in range(n)]

    def posterior(self, spans: Iterable[Asked]) -> list[float]:
        """Compute P(the analysis has the span with its label | doc), given the evidence.

        For a tagger, it is the probability that each token of the span has its label as tag.

        Args:
            spans: spans of the doc, or (start, end, label) over its tokens.

        Returns:
            The probability of each span; 0 for a span that crosses the bounds of a sentence.

        Raises:
            InputError: for a span without label, or with one that the component does not know.
        """
        name, labels = self.pipe.name, self.pipe._span_labels
        values = []
        for asked in spans:
            read = read_evidence(name, self.doc, labels, [asked])
            ((start, end, label),) = read.required
            check_label(name, label, labels, repr(self.doc[start:end].text))
            values.append(self._posterior(start, end, label))
        return values

    def _posterior(self, start: int, end: int, label: str) -> float:
        i = bisect(self.sentences, start, key=lambda sentence: sentence.start) - 1
        if i < 0 or end > self.sentences[i].end:
            return 0.0
        return self.sentences[i].posterior(start, end, label)

    @property
    def marginals(self) -> NDArray[numpy.float64]:
        """P(label | doc) of each token, (tokens, K): the columns are the `tags` of the component.

        For trees, there is a row for each span of words, ordered by sentence, start and end, and
        the columns are the `labels`.
        """
        empty = numpy.zeros((0, self.pipe._outputs))
        return numpy.concatenate([empty, *(sentence.marginals for sentence in self.sentences)])

    @property
    def entropy(self) -> float:
        """The entropy over the analyses of the doc, in nats: the sum over its sentences."""
        return float(sum(sentence.entropy for sentence in self.sentences))

    def _joined(self, parts: list[list[Any]]) -> list[Any]:
        joined: list[Any] = self.pipe._joined(self.doc, parts)
        return joined


def best_sums(
    lists: list[NDArray[numpy.float64]], k: int
) -> list[tuple[float, NDArray[numpy.int64]]]:
    """Find the k highest sums of one number from each list.

    Args:
        lists: numbers in descending order.

    Returns:
        Pairs of a sum and the places of its numbers in their lists, highest sum first; of equal
        sums, the one with the earlier places is first. There are fewer than k if there are fewer
        sums.
    """
    sums, places = numpy.zeros(1), numpy.zeros((1, 0), dtype="int64")
    for values in lists:
        # The pair of the i-th left and the j-th right number is among the k best only if
        # i * j <= k: as many pairs, counting from 1, are at least as good on both sides.
        counts = [min(len(values), k // (i + 1)) for i in range(min(len(sums), k))]
        left = numpy.repeat(numpy.arange(len(counts)), counts)
        right = numpy.concatenate([numpy.arange(count) for count in counts])
        total = sums[left] + values[right]
        order = numpy.argsort(-total, kind="stable")[:k]
        sums = total[order]
        places = numpy.concatenate([places[left[order]], right[order, None]], 1)
    return list(zip(sums.tolist(), places))
