"""How many mentions and distinct entities texts have, and how sure the model is of these numbers.

The number of mentions has its exact mean and variance under the distribution over analyses. For the
distinct ones, a form is there unless all sentences lack it. Sentences are independent, and the
probability that one lacks a form is exact, however often the form occurs in it. Forms whose spans
overlap, or cross if they may be nested, exclude each other, and the variance allows for it. Apart
from that, the forms of a sentence count as independent there.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from spacy.tokens import Doc

from spacy_psa.pipeline.analyses import DocAnalyses, SentenceAnalyses
from spacy_psa.pipeline.chain.chain_analyses import Scored
from spacy_psa.pipeline.coverage import CountCorrection
from spacy_psa.pipeline.evidence import Node

FLOOR = 1e-4
"""The least probability of a mention that counts for the distinct ones."""
JOINT = 1e-6
"""Mentions of one sentence count as independent if less probable together."""
CERTAIN = 1 - 1e-12
"""The greatest probability, so that its complement has a logarithm."""
Form = tuple[str, str]
"""A label and a text."""


class Moments(NamedTuple):
    """The mean and the variance of a number."""

    mean: float = 0.0
    variance: float = 0.0

    def plus(self, other: "Moments") -> "Moments":
        """Add an independent number."""
        return Moments(self.mean + other.mean, self.variance + other.variance)


class TextCounts:
    """The numbers of mentions and distinct entities in independent sentences, by label.

    It holds a number for each label and each form, not the texts, and can be pickled.
    """

    def __init__(self) -> None:
        self.mentions: dict[str, Moments] = {}
        # The log probability that no sentence has the form.
        self.absent: defaultdict[Form, float] = defaultdict(float)
        # P(neither is there) over the product of the two, as a log, for forms that overlap.
        self.rivals: defaultdict[tuple[Form, Form], float] = defaultdict(float)

    def add(self, other: "TextCounts") -> None:
        """Add the numbers of other sentences."""
        for label, moments in other.mentions.items():
            self.mentions[label] = self.mentions.get(label, Moments()).plus(moments)
        for key, value in other.absent.items():
            self.absent[key] += value
        for pair, value in other.rivals.items():
            self.rivals[pair] += value

    def distinct(self) -> dict[str, Moments]:
        """Compute the number of distinct forms of each label."""
        means, variances = (dict.fromkeys(self.mentions, 0.0) for _ in range(2))
        absent = {form: math.exp(value) for form, value in self.absent.items()}
        for (label, _), share in absent.items():
            means[label] += 1 - share
            variances[label] += share * (1 - share)
        for (a, b), log_ratio in self.rivals.items():
            variances[a[0]] += 2 * absent[a] * absent[b] * math.expm1(log_ratio)
        return {label: Moments(mean, max(0.0, variances[label])) for label, mean in means.items()}

    def intervals(
        self, corrections: Mapping[str, CountCorrection] | None = None
    ) -> dict[str, dict[str, tuple[float, float]]]:
        """Compute the 95% intervals of the numbers of each label.

        Args:
            corrections: those of `spacy-psa calibrate --counts`; None for none.

        Returns:
            For each label, `mentions` and `distinct`: the number, and half the width of its
            interval.
        """
        rows = {}
        for label, distinct in sorted(self.distinct().items()):
            own = (corrections or {}).get(label, CountCorrection())
            mentions = own.mentions.interval(*self.mentions[label])
            number, half = own.distinct.interval(*distinct)
            # The two are corrected apart, but there are never more entities than mentions.
            rows[label] = {"mentions": mentions, "distinct": (min(number, mentions[0]), half)}
        return rows


def count_mentions(pipe: Any, docs: Sequence[Doc]) -> list[TextCounts]:
    """Count the mentions and the distinct entities of docs; the evidence on them counts.

    Args:
        pipe: a `crf_ner`, `crf_chunker` or `crf_spans`.
    """
    read: dict[int, _Batch] = {}
    counts = []
    for analyses in pipe.analyses(docs):
        own = TextCounts()
        own.mentions = dict.fromkeys(pipe._span_labels, Moments())
        for sentence in analyses.sentences:
            key = id(sentence.batch)
            batch = read.get(key) or read.setdefault(key, _Batch(sentence.batch))
            rows = batch.means[sentence.row].tolist(), batch.variances[sentence.row].tolist()
            for label, *values in zip(pipe._span_labels, *rows, strict=True):
                own.mentions[label] = own.mentions[label].plus(Moments(*values))
            _add_forms(own, analyses, sentence, batch.spans[sentence.row])
        counts.append(own)
    return counts


class _Batch:
    """The moments of the numbers of mentions in a batch of sentences, and their likely spans."""

    def __init__(self, answers: Any) -> None:
        self.answers = answers  # its id is not that of another batch
        self.means, self.variances = (each.numpy(force=True) for each in answers.span_moments())
        self.spans = answers.above(FLOOR)


def _add_forms(
    counts: TextCounts, analyses: DocAnalyses, sentence: SentenceAnalyses, scored: list[Scored]
) -> None:
    first = sentence.start
    forms: dict[Form, list[Scored]] = {}
    for start, end, label, p in scored:
        span = start + first, end + first, label, min(p, CERTAIN)
        forms.setdefault(form_of(analyses.doc, span), []).append(span)
    for form, spans in forms.items():
        *_, second, best = [0.0, *sorted(probability for *_, probability in spans)]
        if second > JOINT and best < CERTAIN:
            own = DocAnalyses(analyses.pipe, analyses.doc, [sentence], analyses.evidence)
            counts.absent[form] += own.given(forbid=[span[:3] for span in spans]).log_evidence
        else:
            counts.absent[form] += sum(math.log1p(-probability) for *_, probability in spans)
    for pair, p, q in _rivals(forms, sentence.batch.clash):
        neither = math.log(max(1 - p - q, 1 - CERTAIN))
        counts.rivals[pair] += min(0.0, neither - math.log1p(-p) - math.log1p(-q))


def form_of(doc: Doc, span: Sequence[Any]) -> Form:
    """Return the label and the text of (start, end, label, ...), its white space made alike."""
    start, end, label = span[:3]
    return label, " ".join(doc[start:end].text.split())


def _rivals(
    forms: Mapping[Form, list[Scored]], clash: Callable[[Node, Node], str | None]
) -> Iterator[tuple[tuple[Form, Form], float, float]]:
    """Yield the pairs of forms of one label whose spans exclude each other, and the two chances."""
    by_label: defaultdict[str, list[tuple[float, Node, Form]]] = defaultdict(list)
    for form, spans in forms.items():
        by_label[form[0]] += [(span[3], span[:3], form) for span in spans]
    for every in by_label.values():
        every.sort(reverse=True)
        for i, (p, a, form) in enumerate(every):
            for q, b, other in every[i + 1 :]:
                if p * q <= JOINT:
                    break  # those that follow are even less probable
                if form != other and clash(min(a, b), max(a, b)):
                    yield (min(form, other), max(form, other)), p, q
