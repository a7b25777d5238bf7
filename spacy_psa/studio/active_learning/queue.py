"""The order in which texts are annotated: the most useful first, by the present model."""

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacy_psa.pipeline.analyses import DocAnalyses, SentenceAnalyses


class Order(str, Enum):
    """Which text comes first; `usefulness` defines entropy and errors."""

    entropy = "entropy"
    errors = "errors"
    random = "random"


def usefulness(analyses: "DocAnalyses", order: Order) -> float:
    """Compute how useful it is to annotate a text, exactly, given what is known of it.

    - entropy: the entropy over the analyses of the text, in nats, by its number of tokens.
    - errors: the expected number of wrong and missed spans in the best analysis. With P(s) the
      probability of a span, it is the sum of 1 - P(s) over the spans of the best analysis, and the
      sum of P(s) over all others. For tags, it is the expected number of wrong ones.
    """
    if order is Order.entropy:
        tokens = sum(len(sentence.marginals) for sentence in analyses.sentences)
        return analyses.entropy / max(1, tokens)
    return sum(_expected_errors(sentence, analyses.pipe) for sentence in analyses.sentences)


def contradicted(analyses: "DocAnalyses") -> bool:
    """Check whether the model contradicts the rules of a pipeline somewhere in a text.

    It does where the probability of a suggested span is below 1/2 without all suggestions, and also
    that of each other suggestion which overlaps it. Suggestions of a weight of 0 or less do not
    count, nor do those that decisions have excluded.
    """
    evidence = analyses.evidence
    spans = [span for span, weight in evidence.suggested.items() if weight > 0]
    values: dict[tuple[int, int, str], float] = {}
    for sentence in analyses.sentences:
        own = [span for span in spans if sentence.start <= span[0] and span[1] <= sentence.end]
        if own:
            bare = sentence.given(analyses.doc, evidence._replace(suggested={}))
            values |= {span: bare.posterior(*span) for span in own}
    return any(
        0.0 < value < 0.5
        and all(other < 0.5 for (s, e, _), other in values.items() if s < span[1] and span[0] < e)
        for span, value in values.items()
    )


def _expected_errors(sentence: "SentenceAnalyses", pipe: Any) -> float:
    from spacy_psa.pipeline.chain.tagger import CRFTagger

    if isinstance(pipe, CRFTagger):
        ((_, tags),) = sentence.kbest(1)
        tagged = enumerate(tags, sentence.start)
        return len(tags) - sum(sentence.posterior(i, i + 1, tag) for i, tag in tagged)
    begins = sorted({*pipe.scheme.columns("B"), *pipe.scheme.columns("S")})
    expected = float(sentence.marginals[:, begins].sum())
    ((_, spans),) = sentence.kbest(1)
    return len(spans) + expected - 2 * sum(sentence.posterior(*span) for span in spans)


class TextQueue:
    """Chooses the next text.

    A text keeps its last value until it is computed by the present model. Texts in which the model
    contradicts rules come first. Texts without a value come after those with one, in the order of
    the file.
    """

    def __init__(self, numbers: Iterable[int], order: Order, seed: int = 0):
        self.order = order
        self.version = 0
        self._values = dict.fromkeys(numbers, (False, float("-inf")))
        if order is Order.random:
            self._values = {n: (False, Random(f"{seed} {n}").random()) for n in self._values}
        self._ranked = sorted(map(self._rank, self._values))
        self._stale: set[int] = set()
        self.renew()  # nothing is computed yet

    def renew(self) -> None:
        """Count all values as those of another model, which has the next version."""
        self.version += 1
        self._stale = set() if self.order is Order.random else set(self._values)

    def stale(self, done: Callable[[int], bool] = lambda number: False) -> list[int]:
        """List the texts that the present model has not computed, the most useful first.

        Those for which `done` is true are left out.
        """
        return sorted((n for n in self._stale if not done(n)), key=self._rank)

    def is_stale(self, number: int) -> bool:
        """Check whether the present model has not computed a text."""
        return number in self._stale

    def put(self, number: int, value: float, first: bool = False) -> None:
        """Keep how useful a text is to the present model, and whether it comes before others."""
        del self._ranked[bisect_left(self._ranked, self._rank(number))]
        self._values[number] = first, value
        insort(self._ranked, self._rank(number))
        self._stale.discard(number)

    def next(
        self,
        done: Collection[int],
        last: Mapping[int, int] | None = None,
        avoided: Callable[[int], bool] = lambda number: False,
    ) -> int | None:
        """Choose a text; None if there is none.

        The texts that are `done` need nothing. The `last` come after all others, each with its rank
        among them, and `avoided` ones only if there are no others at all.
        """
        later, others = last or {}, []
        for *_, number in self._ranked:
            if number not in done:
                if number not in later and not avoided(number):
                    return number
                others.append(number)
        return min(others, key=lambda n: (avoided(n), later.get(n, -1)), default=None)

    def _rank(self, number: int) -> tuple[bool, float, int]:
        first, value = self._values[number]
        return not first, -value, number
