"""The analyses of a doc and their probabilities, which take evidence one piece after the other."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from spacy_psa.errors import InputError
from spacy_psa.pipeline.asked_spans import Asked, check_label, read_spans
from spacy_psa.pipeline.chain.evidence import Known
from spacy_psa.pipeline.chain.kbest import Ranked, best_sums
from spacy_psa.pipeline.chain.queries import best_tags, tag_marginals
from spacy_psa.pipeline.chain.span_posteriors import Posterior, sentence_posteriors
from spacy_psa.pipeline.chain.span_tags import SpanScheme
from spacy_psa.structs.chain import LinearChain

ToChain = Callable[[int, Known], LinearChain]


class Decoding(NamedTuple):
    """The best analyses of a doc that agree with evidence.

    Examples:
        >>> decoding = Decoding([(-0.5, ["NOUN"]), (-0.9, ["VERB"])], log_evidence=-0.1)
        >>> decoding.best, round(decoding.probability, 4)
        (['NOUN'], 0.6065)
    """

    analyses: list[tuple[float, list[Any]]]
    """Pairs of a log probability, given the evidence, and the spans or tags; best first."""
    log_evidence: float
    """The log probability of the evidence before it was known."""

    @property
    def best(self) -> list[Any]:
        """The best analysis."""
        return self.analyses[0][1]

    @property
    def probability(self) -> float:
        """The probability of the best analysis among those that agree."""
        return math.exp(self.analyses[0][0])


class SentenceAnalyses:
    """The analyses of one sentence, given what is known of it; each answer is computed once.

    Args:
        chain: the distribution over the tag sequences of the sentence, in double precision.
        known: what is known.

    Examples:
        >>> import torch
        >>> chain = LinearChain.from_emissions(torch.zeros(1, 2, 2).double(), torch.tensor([2]))
        >>> sentence = SentenceAnalyses(chain, Known())
        >>> sentence.marginals
        array([[0.5, 0.5],
               [0.5, 0.5]])
        >>> len(sentence.kbest(10))
        4
    """

    def __init__(self, chain: LinearChain, known: Known):
        self.chain = chain
        self.known = known
        self._ranked: tuple[int, Ranked] = (0, [])
        self._posterior: Posterior | None = None

    @cached_property
    def log_partition(self) -> float:
        """The log of the sum over all analyses; -inf if there is none."""
        return float(self.chain.log_partition)

    @cached_property
    def marginals(self) -> NDArray[numpy.float64]:
        """P(tag) for each token, (n, K)."""
        found: NDArray[numpy.float64] = tag_marginals(self.chain)[0].cpu().numpy()
        return found

    @cached_property
    def entropy(self) -> float:
        """The entropy over the analyses, in nats."""
        return float(self.chain.entropy)

    def posterior(self, scheme: SpanScheme) -> Posterior:
        """Give the function from start, end and label of a span to its probability."""
        if self._posterior is None:
            (self._posterior,) = sentence_posteriors(self.chain, scheme)
        return self._posterior

    def kbest(self, k: int) -> Ranked:
        """Find the k best tag sequences with their log probabilities."""
        if self._ranked[0] < k:
            self._ranked = k, best_tags(self.chain, k)[0]
        return self._ranked[1][:k]


class DocAnalyses:
    """The analyses of a doc, with probabilities that are exact and given all that is known.

    The model has scored the doc once. `given` adds evidence and computes only the sentences that
    the evidence is about. `pipe.analyses(doc)` makes one.

    Args:
        pipe: a `SequenceLabeler`.
        doc: the doc.
        starts: the first token of each sentence that has tokens.
        to_chain: gives the distribution of the sentence with a number, given what is known.
        sentences: the analyses of each of these sentences.
        log_evidence: the log probability of the evidence so far.

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> tagger = nlp.add_pipe(
        ...     "crf_tagger", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}}
        ... )
        >>> for tag in ("NOUN", "VERB"):
        ...     _ = tagger.add_label(tag)
        >>> optimizer = nlp.initialize()
        >>> analyses = tagger.analyses(nlp.make_doc("fish swim"))
        >>> analyses.given(allow={0: "VERB"}).best[0]
        'VERB'
    """

    def __init__(
        self,
        pipe: Any,
        doc: Any,
        starts: list[int],
        to_chain: ToChain,
        sentences: list[SentenceAnalyses],
        log_evidence: float = 0.0,
    ):
        self.pipe = pipe
        self.doc = doc
        self.starts = starts
        self.sentences = sentences
        self.log_evidence = log_evidence
        self._to_chain = to_chain

    def given(self, **evidence: Any) -> DocAnalyses:
        """Condition on evidence, beside what was known before.

        Args:
            evidence: `require`, `forbid` and `allow`, as `decode` of the component takes them.

        Raises:
            InputError: if the evidence contradicts itself or what was known before.
        """
        bounds = [(start, start + n) for start, n in zip(self.starts, self._lengths)]
        new = self.pipe.known_of(self.doc, bounds, **evidence)
        sentences, gain = list(self.sentences), 0.0
        for i, known in enumerate(new):
            if not known.says_nothing:
                known = self.sentences[i].known.joined(known)
                sentences[i] = SentenceAnalyses(self._to_chain(i, known), known)
                if sentences[i].log_partition == -math.inf:
                    start, end = bounds[i]
                    raise InputError(
                        f"{self.pipe.name}: no legal analysis of the sentence "
                        f"{self.doc[start:end].text!r} agrees with all of the evidence: "
                        "leave out some of it"
                    )
                gain += sentences[i].log_partition - self.sentences[i].log_partition
        total = self.log_evidence + gain
        return DocAnalyses(self.pipe, self.doc, self.starts, self._to_chain, sentences, total)

    def on(self, doc: Any) -> DocAnalyses:
        """Give the same analyses of another doc with the same tokens and sentences.

        Args:
            doc: the doc; None to keep the analyses without a doc, until they are put on another.
        """
        return DocAnalyses(
            self.pipe, doc, self.starts, self._to_chain, self.sentences, self.log_evidence
        )

    @property
    def best(self) -> list[Any]:
        """The spans or tags of the best analysis."""
        return self.kbest(1)[0][1]

    def kbest(self, k: int) -> list[tuple[float, list[Any]]]:
        """Find the k best analyses of the doc; see `ChainQueries.kbest`."""
        ranked = [sentence.kbest(k) for sentence in self.sentences]
        named = [
            [self.pipe.named(tags, start) for _, tags in found]
            for found, start in zip(ranked, self.starts)
        ]
        scores = [numpy.array([log_prob for log_prob, _ in found]) for found in ranked]
        return [
            (log_prob, self.pipe.analysis(self.doc, [one[i] for one, i in zip(named, places)]))
            for log_prob, places in best_sums(scores, k)
        ]

    def posterior(self, spans: Iterable[Asked]) -> list[float]:
        """Compute the probability of spans with their labels, for a component of spans.

        Args:
            spans: spans of the doc, or (start, end, label) over its tokens.

        Raises:
            InputError: for a span without label, or with one that the component does not know.
        """
        found = []
        for asked in spans:
            ((start, end, label),) = read_spans(self.pipe.name, self.doc, [asked], self.pipe.labels)
            check_label(self.pipe.name, label, self.pipe.labels, repr(self.doc[start:end].text))
            i = bisect(self.starts, start) - 1
            first, n = self.starts[i], self._lengths[i]
            inside = end <= first + n
            posterior = self.sentences[i].posterior(self.pipe.scheme)
            found.append(posterior(start - first, end - first, label) if inside else 0.0)
        return found

    @property
    def marginals(self) -> NDArray[numpy.float64]:
        """P(tag) for each token, (tokens, K); the columns are the component's `tags`."""
        empty = numpy.zeros((0, len(self.pipe.tags)))
        return numpy.concatenate([empty, *(sentence.marginals for sentence in self.sentences)])

    @property
    def entropy(self) -> float:
        """The entropy over the analyses of the doc, in nats."""
        return sum(sentence.entropy for sentence in self.sentences)

    @cached_property
    def _lengths(self) -> list[int]:
        return [int(sentence.chain.lengths[0]) for sentence in self.sentences]
