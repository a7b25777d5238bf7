"""Annotation that is probably wrong, by the exact distribution over all annotations of a doc.

For entities and chunks, each annotated span g is compared with what the model would have in its
place, given the rest of the annotation R: log odds = log P(best other | R) - log P(g | R). A span
that the annotation lacks has P(s | R) against P(no span there | R). For tags, the two are the tag
of a token and the most probable other one. For trees and nested spans, R is empty, and the other is
the best tree or set of spans.

A model that has learned from the same annotation agrees with it, so use one that has not.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Token
from spacy.training import Example

from spacy_psa.errors import InputError
from spacy_psa.pipeline.analyses import DocAnalyses
from spacy_psa.pipeline.chain.labeler import ChainLabeler
from spacy_psa.pipeline.chain.spans import SpanLabeler
from spacy_psa.pipeline.chain.tagger import CRFTagger
from spacy_psa.pipeline.evidence import OUTSIDE, Node, cross
from spacy_psa.pipeline.nested.spans import NestedSpanLabeler
from spacy_psa.pipeline.parser.parser import ConstituencyParser
from spacy_psa.pipeline.upstream import with_upstream
from spacy_psa.sentences import document_batches, document_key, unannotated

Kind = Literal["missed", "invented", "bounds", "type"]
LEAST = 0.05
"""The least probability that an annotation is wrong, for it to be a suspect."""
CANDIDATES = 5
"""The best analyses of a sentence in which missed spans are looked for."""
MISSED, AGREEMENT = 2.0, 1.25
"""The weights of a missed span and of the agreement with the document, next to the log odds.

Chosen on the development data of CoNLL-2003, see benchmarks/find_errors."""
SLOPE, BIAS = 0.2, -1.57
"""From a score to the log odds that the annotation is wrong, from CleanCoNLL's development set."""


UNASKED = "annotated span(s) cross sentences or are too long for the model: not asked about"


class Suspect(NamedTuple):
    """A place where the annotation is probably wrong, and its best correction."""

    doc: int
    """The number of the doc, from 0."""
    kind: Kind
    annotated: list[Node]
    """The spans of the annotation that would go, as (start, end, label) over the tokens."""
    proposed: list[Node]
    """The spans that would replace them."""
    p_annotated: float
    """The probability of the annotation in this place."""
    p_proposed: float
    """The probability of the correction."""
    as_annotated: int = 0
    """How often the document annotates the same words so in other places."""
    as_proposed: int = 0
    """How often the document annotates the same words as the correction does."""

    @property
    def start(self) -> int:
        """The first token of the place."""
        return min(start for start, _, _ in [*self.annotated, *self.proposed])

    @property
    def end(self) -> int:
        """The token after its last one."""
        return max(end for _, end, _ in [*self.annotated, *self.proposed])

    @property
    def log_odds(self) -> float:
        """The log odds of the correction against the annotation, in nats."""
        return math.log(self.p_proposed + 1e-9) - math.log(self.p_annotated + 1e-9)

    @property
    def score(self) -> float:
        """How much speaks for the correction: its log odds and the document, by length.

        Annotators forget spans more often than they invent them, and they are consistent within a
        document. The sum is divided by the root of the number of tokens, since the errors of the
        model add up over the tokens of a place, and grow with this root if they are independent.
        """
        agreement = math.log1p(self.as_proposed) - math.log1p(self.as_annotated)
        total = self.log_odds + AGREEMENT * agreement + MISSED * (self.kind == "missed")
        return total / math.sqrt(self.end - self.start)

    @property
    def chance(self) -> float:
        """The estimated probability that the annotation is wrong, from 0 to 1."""
        return 1 / (1 + math.exp(-SLOPE * self.score - BIAS))


class Found(NamedTuple):
    """Suspects in the order of the corpus, and the docs that could not be asked about."""

    suspects: list[Suspect]
    failed: list[tuple[int, str]]
    """The number of a doc, and the reason; some of its annotation may have been asked about."""
    bare: int
    """The number of docs without annotation."""


def find_suspects(
    nlp: Language,
    name: str,
    docs: Sequence[Doc],
    numbers: Iterable[int] | None = None,
    every_label: bool = True,
    watch: Callable[[Iterator[Doc]], Iterable[Doc]] = lambda docs: docs,
) -> Found:
    """Find annotation that is probably wrong.

    Args:
        nlp: a pipeline that has not learned from the docs.
        name: the component of this package to ask.
        docs: annotated docs; they stay as they are.
        numbers: the numbers of the docs in their corpus; from 0 by default.
        every_label: whether the component must know all labels of the annotation; otherwise docs
            with others fail.
        watch: follows the docs.
    """
    pipe: Any = nlp.get_pipe(name)
    of_kind: Callable[..., list[Suspect]] = _nodes
    if isinstance(pipe, ChainLabeler):
        of_kind = _spans if isinstance(pipe, SpanLabeler) else _tags
    if every_label:
        known = ", ".join(pipe._span_labels)
        _check_labels(pipe, docs, f" (it knows {known}); use a model of these labels")
    places = iter(range(len(docs)) if numbers is None else numbers)
    suspects: list[Suspect] = []
    failed: list[tuple[int, str]] = []
    bare = 0
    for batch in document_batches(watch(iter(docs)), nlp.batch_size):
        examples = [Example(unannotated(doc, nlp.vocab, document=True), doc) for doc in batch]
        examples = with_upstream(nlp, name, examples)
        for example, analyses in zip(examples, _analyses(pipe, examples)):
            number, gold = next(places), annotation(pipe, example.reference)
            try:
                if gold is None:
                    bare += 1
                elif isinstance(analyses, InputError):
                    raise analyses
                else:
                    _check_labels(pipe, [example.reference])
                    asked = [node for node in gold if _can_be(pipe, analyses, node)]
                    lost = [node for node in gold if node not in asked]
                    if lost and isinstance(pipe, SpanLabeler):  # nothing else is proposed there
                        there = dict.fromkeys(i for s, e, _ in lost for i in range(s, e))
                        analyses = analyses.given(allow=dict.fromkeys(there, OUTSIDE))
                    suspects += of_kind(pipe, number, analyses, asked, example)
                    if lost:
                        failed.append((number, f"{pipe.name}: {len(lost)} {UNASKED}"))
            except InputError as error:
                failed.append((number, f"left out: {error}"))
    return Found(suspects, failed, bare)


def ranked(suspects: Iterable[Suspect], pipe: Any, docs: Sequence[Doc]) -> list[Suspect]:
    """Sort suspects by their score, highest first, after a look at the rest of their documents.

    `docs` are all docs of the corpus. Docs of one document name it, see `document_key`.
    """
    names = [document_key(doc, i) for i, doc in enumerate(docs)]
    seen: Counter[tuple[str, str, str]] = Counter()
    for name, doc in zip(names, docs):
        for start, end, label in annotation(pipe, doc) or ():
            seen[name, doc[start:end].text.lower(), label] += 1

    def most(doc: int, spans: list[Node], own: int) -> int:
        texts = [(docs[doc][start:end].text.lower(), label) for start, end, label in spans]
        return max((seen[(names[doc], *each)] - own for each in texts), default=0)

    counted = [
        each._replace(
            as_annotated=most(each.doc, each.annotated, 1),
            as_proposed=most(each.doc, each.proposed, 0),
        )
        for each in suspects
    ]
    return sorted(counted, key=lambda each: (-each.score, each.doc, each.start))


def annotation(pipe: Any, doc: Doc) -> list[Node] | None:
    """Read the annotation of a component's kind as spans; None if the doc has none.

    The tag of a token is a span of one token.
    """
    if isinstance(pipe, CRFTagger):
        tags = [(token.i, token.i + 1, token.tag_) for token in doc if token.tag_]
        return [each for each in tags if not pipe._is_negative(each[2])] or None
    if isinstance(pipe, SpanLabeler):
        spans = pipe.store.reference(pipe.name, doc)
    else:
        spans = list(doc.spans[pipe.spans_key]) if pipe.spans_key in doc.spans else None
    return None if spans is None else [(s.start, s.end, s.label_) for s in spans]


def _analyses(pipe: Any, examples: list[Example]) -> list[DocAnalyses | InputError]:
    """Analyse docs together, or one by one if that fails."""
    try:
        return list(pipe.analyses([example.predicted for example in examples]))
    except InputError:
        each: list[DocAnalyses | InputError] = []
        for example in examples:
            try:
                each += pipe.analyses([example.predicted])
            except InputError as error:
                each.append(error)
        return each


def _check_labels(pipe: Any, docs: Iterable[Doc], more: str = "") -> None:
    known = set(pipe._span_labels)
    for doc in docs:
        unknown = {label for _, _, label in annotation(pipe, doc) or ()} - known
        if unknown:
            raise InputError(
                f"{pipe.name}: the annotation has the label {min(unknown)!r}, which the model does "
                f"not know{more}"
            )


def _spans(
    pipe: SpanLabeler, number: int, analyses: DocAnalyses, gold: list[Node], example: Example
) -> list[Suspect]:
    """Ask about each annotated span, given those that do not touch it, and about missed ones."""
    suspects, whole = [], analyses.given(require=gold)
    for span, probability in zip(gold, analyses.posterior(gold)):
        if probability <= 1 - LEAST:
            suspects.append(_instead(number, analyses, whole, gold, span))
    _, missing = pipe.store.gold(pipe.name, example)
    best = [spans for s in whole.sentences for _, spans in s.kbest(CANDIDATES)]
    for span in dict.fromkeys(span for spans in best for span in spans):
        (probability,) = whole.posterior([span])
        if probability >= LEAST and span not in gold and not missing[slice(*span[:2])].any():
            none = whole.given(allow=dict.fromkeys(range(*span[:2]), OUTSIDE))
            outside = math.exp(none.log_evidence - whole.log_evidence)
            suspects.append(Suspect(number, "missed", [], [span], outside, probability))
    return _apart(suspects)


def _instead(
    number: int, analyses: DocAnalyses, whole: DocAnalyses, gold: list[Node], span: Node
) -> Suspect:
    """Find the best correction of an annotated span; `whole` is given all of the annotation."""
    start, end, _ = span
    near = [each for each in gold if start <= each[1] and each[0] <= end]
    known = _without(near, analyses, whole, gold)
    (sentence,) = (s for s in known.given(forbid=[span]).sentences if s.start <= start < s.end)
    best = sentence.kbest(1)[0][1]
    new = [each for each in best if each not in gold and _meet(each, span)]
    gone = [each for each in near if each == span or any(_meet(each, other) for other in new)]
    before, after = ({i for s, e, _ in spans for i in range(s, e)} for spans in (gone, new))
    # Both are about the same tokens: those in a span of only one of the two are O in the other.
    as_it_is = known.given(require=gone, allow=dict.fromkeys(sorted(after - before), OUTSIDE))
    freed: dict[int | Token, str] = dict.fromkeys(sorted(before - after), OUTSIDE)
    other = known.given(require=new, allow=freed, forbid=[span])
    kind: Kind = "bounds" if new else "invented"
    if [each[:2] for each in new] == [each[:2] for each in gone]:
        kind = "type"
    p_gone, p_new = (math.exp(a.log_evidence - known.log_evidence) for a in (as_it_is, other))
    return Suspect(number, kind, gone, new, p_gone, p_new)


def _without(
    near: list[Node], analyses: DocAnalyses, whole: DocAnalyses, gold: list[Node]
) -> DocAnalyses:
    """Condition the sentences of some spans on the other spans.

    The log evidence is that of the whole doc, to the bit as `analyses.given` sums it; the other
    sentences are not computed again for it.
    """
    own = [s for s in analyses.sentences if any(s.start <= i < s.end for i, _, _ in near)]
    rest = [
        each for each in gold if each not in near and any(s.start <= each[0] < s.end for s in own)
    ]
    known = DocAnalyses(analyses.pipe, analyses.doc, own, analyses.evidence).given(require=rest)
    new, known.log_evidence = {s.start: s for s in known.sentences}, 0.0
    for before, after in zip(analyses.sentences, whole.sentences):
        changed = new.get(before.start, after)
        known.log_evidence += changed.log_partition - before.log_partition
    return known


def _can_be(pipe: Any, analyses: DocAnalyses, node: Node) -> bool:
    """Whether an analysis can have a node: it is in a sentence, and not too long."""
    start, end, _ = node
    inside = [s for s in analyses.sentences if s.start <= start and end <= s.end]
    if isinstance(pipe, ChainLabeler):
        return bool(inside)
    short = not isinstance(pipe, NestedSpanLabeler) or end - start <= (pipe._longest or end)
    return short and any(sentence.kbest(1) for sentence in inside)


def _tags(
    pipe: CRFTagger, number: int, analyses: DocAnalyses, gold: list[Node], _: Example
) -> list[Suspect]:
    marginals, suspects = analyses.marginals.copy(), []
    for start, end, label in gold:
        row = marginals[start]
        at = pipe.labels.index(label)
        probability, row[at] = float(row[at]), -1.0
        if probability <= 1 - LEAST:
            best = int(row.argmax())
            other = (start, end, pipe.labels[best])
            node = (start, end, label)
            suspects.append(Suspect(number, "type", [node], [other], probability, float(row[best])))
    return suspects


def _nodes(
    pipe: ConstituencyParser | NestedSpanLabeler,
    number: int,
    analyses: DocAnalyses,
    gold: list[Node],
    example: Example,
) -> list[Suspect]:
    """Compare trees or nested spans with the best ones, in places that do not depend on each other.

    A new node replaces those that it crosses or whose bounds it has, and nodes that replace the
    same one are in one place. So after any choice of corrections, no nodes cross. In a tree, a
    place has all nodes of the same bounds, from the outermost, since they have an order. A new
    nested span also replaces one of its label that shares a bound with it.
    """
    sentences: Any = analyses.sentences
    nested = isinstance(pipe, NestedSpanLabeler)
    if nested:
        every = [node for s in sentences for node in s.kbest(1)[0][1]]
        best = dict(zip(every, analyses.posterior(every)))
        missing = pipe.store.gold(pipe.name, example)[1]
    else:
        tree = [node for s in sentences for _, tree in s.scored(1) for node in tree]
        best = {node[:3]: node.confidence for node in tree}
        missing = numpy.zeros(len(example.predicted), dtype=bool)
    p_of = dict(zip(gold, analyses.posterior(gold))) | best
    new = [node for node in best if node not in gold and not missing[slice(*node[:2])].any()]
    gone = [node for node in gold if node not in best]
    places: list[tuple[list[Node], list[Node]]] = []
    for node in sorted(new, key=lambda node: -p_of[node]):
        free = [each for each in gone if all(each not in old for old, _ in places)]
        same = [each for each in (free if nested else gold) if each[:2] == node[:2]]
        old = same[:1] if nested else same
        old = old or [each for each in gone if cross(*sorted((each, node)))]
        if nested and not old:
            old = [g for g in free if g[2] == node[2] and (g[0] == node[0] or g[1] == node[1])]
        own = [node] if nested else [each for each in best if each[:2] == node[:2]]
        met = [each for each in places if {*old, *own} & {*each[0], *each[1]}]
        places = [each for each in places if each not in met]
        old = [*dict.fromkeys(chain(old, *(each[0] for each in met)))]
        own = [*dict.fromkeys(chain(own, *(each[1] for each in met)))]
        places.append((old, own))
    suspects = []
    for old, own in places:
        kind: Kind = "bounds" if old else "missed"
        if old and {each[:2] for each in old} == {each[:2] for each in own}:
            kind = "type"
        after = min(p_of[each] for each in own if each in new)
        before = min((p_of[each] for each in old if each in gone), default=1 - after)
        suspects.append(Suspect(number, kind, old, own, before, after))
    left = [each for each in gone if all(each not in old for old, _ in places)]
    suspects += [Suspect(number, "invented", [g], [], p_of[g], 1 - p_of[g]) for g in left]
    return [each for each in suspects if each.p_annotated <= 1 - LEAST]


def _meet(first: Node, second: Node) -> bool:
    return first[0] < second[1] and second[0] < first[1]


def _apart(suspects: list[Suspect]) -> list[Suspect]:
    """Keep the best of suspects whose places overlap."""
    kept: list[Suspect] = []
    for each in sorted(suspects, key=lambda each: -each.score):
        if all(each.end <= other.start or other.end <= each.start for other in kept):
            kept.append(each)
    return kept
