"""The answers of a component about a text, as plain data for the page."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy
from pydantic import BaseModel, Field
from spacy.tokens import Doc

from spacy_psa.errors import InputError
from spacy_psa.pipeline.asked_spans import checked_span
from spacy_psa.pipeline.chain.doc_analyses import DocAnalyses, SentenceAnalyses
from spacy_psa.pipeline.chain.sequence_labeler import SequenceLabeler
from spacy_psa.pipeline.chain.span_labeler import SpanLabeler
from spacy_psa.pipeline.chain.span_posteriors import SpanPosteriors
from spacy_psa.pipeline.chain.tagger import CRFTagger
from spacy_psa.pipeline.parser.parser import ConstituencyParser
from spacy_psa.sentences import Bounds, sentence_bounds

Row = dict[str, Any]
Span = tuple[int, int, str]
"""The first token, the token after the last one, and the label; empty for any label."""


class Evidence(BaseModel):
    """A span that an analysis must or must not have; for a tagger, the tag of its tokens."""

    component: str = Field(description="The name of the component in the pipeline.")
    start: int = Field(ge=0, description="The first token.")
    end: int = Field(ge=1, description="The token after the last one.")
    label: str = Field("", description="The label; empty for any.")
    required: bool = Field(True, description="Whether the span is there or not.")


def chain_answer(
    pipe: SequenceLabeler,
    analyses: DocAnalyses,
    evidence: Sequence[Evidence],
    chosen: Iterable[int],
    k: int,
) -> dict[int, Row]:
    """Answer for a component of spans or tags.

    Args:
        pipe: the component.
        analyses: the analyses of the doc.
        evidence: what is known.
        chosen: the sentences to answer for.
        k: number of analyses of a sentence.

    Raises:
        InputError: if the evidence contradicts itself, and for labels that are not known.
    """
    given = analyses
    if evidence:
        given = analyses.given(**pipe.of_spans(analyses.doc, *_split(evidence)))
    return chain_rows(pipe, analyses, given, chosen, k)


def chain_rows(
    pipe: SequenceLabeler,
    analyses: DocAnalyses,
    given: DocAnalyses,
    chosen: Iterable[int],
    k: int,
) -> dict[int, Row]:
    """Read the answers for some sentences.

    Args:
        pipe: the component.
        analyses: the analyses of the doc.
        given: the same, given what is known.
        chosen: the sentences to answer for.
        k: number of analyses of a sentence.
    """
    before = dict(zip(analyses.starts, analyses.sentences))
    after = dict(zip(given.starts, given.sentences))
    bounds = sentence_bounds(analyses.doc)
    found = {}
    for i in chosen:
        start = bounds[i][0]
        if start in after:  # the sentence has tokens
            found[i] = _sentence(pipe, after[start], start, k)
            # The promise is for texts of which nothing is known.
            if pipe.coverage and given is analyses:
                found[i]["sets"] = _sets(pipe, after[start], start)
            gain = after[start].log_partition - before[start].log_partition
            found[i]["evidence"] = math.exp(min(gain, 0.0))
        else:
            found[i] = {"analyses": [], "entropy": 0.0, "entropies": [], "evidence": 1.0}
    return found


def _split(evidence: Iterable[Evidence]) -> tuple[list[Span], list[Span]]:
    """Give the spans that must be there, and those that must not."""
    required: list[Span] = []
    forbidden: list[Span] = []
    for one in evidence:
        (required if one.required else forbidden).append((one.start, one.end, one.label))
    return required, forbidden


def _sentence(pipe: SequenceLabeler, sentence: SentenceAnalyses, start: int, k: int) -> Row:
    marginals = sentence.marginals
    answer: Row = {
        "entropy": sentence.entropy,
        "entropies": _entropies(marginals).round(4).tolist(),
        "analyses": [],
    }
    for log_prob, tags in sentence.kbest(k):
        names = pipe.named(tags, start)
        if isinstance(pipe, SpanLabeler):
            posterior = sentence.posterior(pipe.scheme)
            items = [
                [s, e, label, round(posterior(s - start, e - start, label), 5)]
                for s, e, label in names
            ]
        else:
            items = [
                [start + i, start + i + 1, name, round(float(marginals[i, tag]), 5)]
                for i, (name, tag) in enumerate(zip(names, tags.tolist()))
            ]
        answer["analyses"].append({"probability": math.exp(log_prob), "items": items})
    return answer


def _sets(pipe: SequenceLabeler, sentence: SentenceAnalyses, start: int) -> Row:
    """The spans or tags of which the true ones are with the probability that was promised."""
    coverage = pipe.coverage
    assert coverage is not None
    if isinstance(pipe, SpanLabeler):
        spans, values = SpanPosteriors(sentence.chain, pipe.scheme).above(coverage.least)
        items = [
            [start + s, start + e, pipe.scheme.labels[label], round(p, 5)]
            for (_, s, e, label), p in zip(spans.tolist(), values.tolist())
        ]
    else:
        assert isinstance(pipe, CRFTagger)
        items = [
            [start + i, start + i + 1, tag, round(p, 5)]
            for i, row in enumerate(sentence.marginals.tolist())
            for tag, p in pipe.tags_above(row, coverage.least)
        ]
    return {"level": coverage.level, "items": items}


def _entropies(marginals: Any) -> Any:
    """Compute the entropy of the tag of each token, in bits."""
    logs = numpy.log2(marginals, out=numpy.zeros_like(marginals), where=marginals > 0)
    return abs(-(marginals * logs).sum(1))


def parser_answer(
    parser: ConstituencyParser,
    doc: Doc,
    evidence: Sequence[Evidence],
    chosen: Iterable[int],
    k: int,
) -> dict[int, Row]:
    """Answer for a parser: the best trees of each sentence.

    A tree is nested: [label, probability, children], where the children are trees or the numbers of
    tokens.

    Args:
        parser: the component.
        doc: the doc, as the pipeline gives it to the component.
        evidence: the constituents that must or must not be there.
        chosen: the sentences to answer for.
        k: number of trees of a sentence.

    Raises:
        InputError: if the evidence contradicts itself, and for labels that are not known.
    """
    bounds = sentence_bounds(doc)
    _check_within(parser, doc, evidence, bounds)
    asked = {i: _split(one for one in evidence if _is_in(one, bounds[i])) for i in chosen}
    # The sentences without evidence are decoded together.
    groups = [[i] for i, own in asked.items() if any(own)]
    groups.append([i for i, own in asked.items() if not any(own)])
    found = {}
    for numbers in filter(None, groups):
        require, forbid = asked[numbers[0]]
        decoding = parser.decode(doc, require=require, forbid=forbid, k=k, sentences=numbers)
        sure = math.exp(min(decoding.log_evidence, 0.0))
        for i in numbers:
            trees = _trees(doc, bounds[i], decoding.trees[i], decoding.constituents[i])
            found[i] = {"trees": trees, "evidence": sure}
    return found


def _is_in(one: Evidence, bounds: tuple[int, int]) -> bool:
    return bounds[0] <= one.start and one.end <= bounds[1]


def _trees(doc: Doc, bounds: tuple[int, int], ranked: Any, constituents: Any) -> list[Row]:
    """Nest the trees of a sentence, with the probabilities of their constituents."""
    words = [i for i in range(*bounds) if not doc[i].is_space]
    found = []
    for (log_prob, tree), nodes in zip(ranked, constituents, strict=True):
        sure = {(start, end, label): round(p, 5) for start, end, label, p in nodes}
        root = _nested(tree, iter(words), sure)
        found.append({"probability": math.exp(log_prob), "tree": root})
    return found


def _check_within(
    parser: ConstituencyParser, doc: Doc, evidence: Iterable[Evidence], bounds: Bounds
) -> None:
    """Check that constituents that must be there are in the doc, each within one sentence."""
    for one in evidence:
        start, end, _ = checked_span(parser.name, doc, (one.start, one.end))
        if one.required and not any(first <= start and end <= last for first, last in bounds):
            raise InputError(
                f"{parser.name}: {doc[start:end].text!r} is required, but a sentence ends inside "
                "of it, so no tree has it: leave it out"
            )


def _nested(tree: Any, words: Iterator[int], sure: dict[tuple[int, int, str], float]) -> Any:
    if len(tree) == 1 and isinstance(tree[0], str):  # a word with its tag
        return next(words)
    children = [_nested(child, words, sure) for child in tree]
    return [tree.label(), sure.get((*_ends(children), tree.label())), children]


def _ends(children: list[Any]) -> tuple[int, int]:
    """Find the first token below some trees, and the one after the last."""
    first, last = children[0], children[-1]
    while not isinstance(first, int):
        first = first[2][0]
    while not isinstance(last, int):
        last = last[2][-1]
    return first, last + 1
