"""The answers of a component about a text, as plain data for the page."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy
from numpy.typing import NDArray
from pydantic import BaseModel, Field
from spacy.tokens import Doc

from spacy_psa.analysis.attention import View
from spacy_psa.errors import InputError
from spacy_psa.pipeline.asked_spans import checked_span
from spacy_psa.pipeline.chain.doc_analyses import DocAnalyses, SentenceAnalyses
from spacy_psa.pipeline.chain.kbest import best_sums
from spacy_psa.pipeline.chain.sequence_labeler import SequenceLabeler
from spacy_psa.pipeline.chain.span_labeler import SpanLabeler
from spacy_psa.pipeline.chain.span_posteriors import SpanPosteriors
from spacy_psa.pipeline.chain.tagger import CRFTagger
from spacy_psa.pipeline.parser.parser import ConstituencyParser
from spacy_psa.sentences import Bounds, sentence_bounds

Row = dict[str, Any]
Span = tuple[int, int, str]
"""The first token, the token after the last one, and the label; empty for any label."""
Part = tuple[int, SentenceAnalyses]
"""The first token of a sentence, and its analyses."""


class Evidence(BaseModel):
    """A span that an analysis must or must not have; for a tagger, the tag of its tokens."""

    component: str = Field(description="The name of the component in the pipeline.")
    start: int = Field(ge=0, description="The first token.")
    end: int = Field(ge=1, description="The token after the last one.")
    label: str = Field("", description="The label; empty for any.")
    required: bool = Field(True, description="Whether the span is there or not.")


def split_evidence(evidence: Iterable[Evidence]) -> tuple[list[Span], list[Span]]:
    """Separate the spans that must be there from those that must not."""
    required: list[Span] = []
    forbidden: list[Span] = []
    for each in evidence:
        (required if each.required else forbidden).append((each.start, each.end, each.label))
    return required, forbidden


def chain_rows(
    pipe: SequenceLabeler,
    analyses: DocAnalyses,
    given: DocAnalyses,
    chosen: Iterable[int],
    k: int,
) -> dict[int, Row]:
    """Answer for a component of spans or tags.

    Args:
        pipe: the component.
        analyses: the analyses of the doc.
        given: the same, given what is known.
        chosen: the numbers of the sentences to answer for.
        k: number of analyses of a sentence.
    """
    bounds = sentence_bounds(analyses.doc)
    rows = {}
    for i in chosen:
        first, last = _between(analyses.starts, *bounds[i])
        own = list(zip(analyses.starts[first:last], given.sentences[first:last]))
        rows[i] = _sentence(pipe, own, k)
        # The promise is for texts of which nothing is known.
        if own and pipe.coverage and given is analyses:
            rows[i]["sets"] = _sets(pipe, own)
        gain = sum(part.log_partition for _, part in own)
        gain -= sum(part.log_partition for part in analyses.sentences[first:last])
        rows[i]["evidence"] = math.exp(min(gain, 0.0))
    return rows


def _between(starts: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """Find the sentences that begin between two tokens, as the first and the one after the last."""
    return bisect_left(starts, start), bisect_left(starts, end)


def _sentence(pipe: SequenceLabeler, parts: Sequence[Part], k: int) -> Row:
    """Answer for a sentence of the page, which may be several of the component."""
    ranked = [part.kbest(k) for _, part in parts]
    items = [
        [_items(pipe, start, part, tags) for _, tags in own]
        for (start, part), own in zip(parts, ranked)
    ]
    scores = [numpy.array([log_prob for log_prob, _ in own]) for own in ranked]
    entropies = [_entropies(part.marginals).round(4).tolist() for _, part in parts]
    return {
        "entropy": sum((part.entropy for _, part in parts), 0.0),
        "entropies": [*chain.from_iterable(entropies)],
        "analyses": [
            {
                "probability": math.exp(log_prob),
                "items": [*chain.from_iterable(own[i] for own, i in zip(items, places))],
            }
            for log_prob, places in (best_sums(scores, k) if parts else [])
        ],
    }


def _items(
    pipe: SequenceLabeler, start: int, part: SentenceAnalyses, tags: NDArray[numpy.int64]
) -> list[Any]:
    names = pipe.named(tags, start)
    if isinstance(pipe, SpanLabeler):
        posterior = part.posterior(pipe.scheme)
        return [
            [s, e, label, round(posterior(s - start, e - start, label), 5)] for s, e, label in names
        ]
    return [
        [start + i, start + i + 1, name, round(float(part.marginals[i, tag]), 5)]
        for i, (name, tag) in enumerate(zip(names, tags.tolist()))
    ]


def _sets(pipe: SequenceLabeler, parts: Sequence[Part]) -> Row:
    """List the spans or tags that hold the true ones with the probability that was promised."""
    coverage = pipe.coverage
    assert coverage is not None
    items: list[Any] = []
    for start, part in parts:
        if isinstance(pipe, SpanLabeler):
            spans, values = SpanPosteriors(part.chain, pipe.scheme).above(coverage.least)
            items += [
                [start + s, start + e, pipe.scheme.labels[label], round(p, 5)]
                for (_, s, e, label), p in zip(spans.tolist(), values.tolist())
            ]
        else:
            assert isinstance(pipe, CRFTagger)
            items += [
                [start + i, start + i + 1, tag, round(p, 5)]
                for i, row in enumerate(part.marginals.tolist())
                for tag, p in pipe.tags_above(row, coverage.least)
            ]
    return {"level": coverage.level, "items": items}


def _entropies(marginals: Any) -> Any:
    """Compute the entropy of the tag of each token, in bits."""
    logs = numpy.log2(marginals, out=numpy.zeros_like(marginals), where=marginals > 0)
    return abs(-(marginals * logs).sum(1))


def parser_rows(
    parser: ConstituencyParser,
    doc: Doc,
    bounds: Bounds,
    evidence: Sequence[Evidence],
    chosen: Iterable[int],
    k: int,
) -> dict[int, Row]:
    """Answer for a parser: the best trees of each sentence.

    A tree is nested: [label, probability, children], where the children are trees or the numbers of
    tokens. The trees of several sentences are below a node without label.

    Args:
        parser: the component.
        doc: the doc that the component sees in the pipeline.
        bounds: the sentences of the page, each of which may be several of the doc.
        evidence: the constituents that must or must not be there.
        chosen: the numbers of the sentences to answer for.
        k: number of trees of a sentence.

    Raises:
        InputError: if the evidence contradicts itself, and for labels that are not known.
    """
    own = sentence_bounds(doc)
    starts = [start for start, _ in own]
    _check_within(parser, doc, evidence, own)
    parts, asked = {}, {}
    for i in chosen:
        start, end = bounds[i]
        # A text without tokens has one sentence, which is empty.
        parts[i] = range(*_between(starts, start, max(end, start + 1)))
        asked[i] = list[Evidence]()
    shown = [start for start, _ in bounds]
    for each in evidence:
        i = bisect_right(shown, each.start) - 1
        if i in asked and each.end <= bounds[i][1]:
            asked[i].append(each)
    # The sentences without evidence are decoded together.
    groups = [[i] for i, known in asked.items() if known]
    groups.append([i for i, known in asked.items() if not known])
    rows = {}
    for numbers in filter(None, groups):
        require, forbid = split_evidence(asked[numbers[0]])
        together = [j for i in numbers for j in parts[i]]
        decoding = parser.decode(doc, require=require, forbid=forbid, k=k, sentences=together)
        sure = math.exp(min(decoding.log_evidence, 0.0))
        for i in numbers:
            trees = [
                _trees(doc, own[j], decoding.trees[j], decoding.constituents[j]) for j in parts[i]
            ]
            rows[i] = {"trees": _together(trees, k), "evidence": sure}
    return rows


def _together(parts: list[list[Row]], k: int) -> list[Row]:
    """Join the trees of several sentences into the best analyses of all of them."""
    if len(parts) == 1:
        return parts[0]
    parts = [own for own in parts if own]  # a sentence that is too long has no tree
    scores = [numpy.log([row["probability"] for row in own]) for own in parts]
    return [
        {
            "probability": math.exp(log_prob),
            "tree": ["", None, [own[place]["tree"] for own, place in zip(parts, places)]],
        }
        for log_prob, places in (best_sums(scores, k) if parts else [])
    ]


def _trees(doc: Doc, bounds: tuple[int, int], ranked: Any, constituents: Any) -> list[Row]:
    """Nest the trees of a sentence, with the probabilities of their constituents."""
    words = [i for i in range(*bounds) if not doc[i].is_space]
    rows = []
    for (log_prob, tree), nodes in zip(ranked, constituents, strict=True):
        sure = {(start, end, label): round(p, 5) for start, end, label, p in nodes}
        root, _, _ = _nested(tree, iter(words), sure)
        rows.append({"probability": math.exp(log_prob), "tree": root})
    return rows


def _check_within(
    parser: ConstituencyParser, doc: Doc, evidence: Iterable[Evidence], bounds: Bounds
) -> None:
    """Check that constituents that must be there are in the doc, each within one sentence."""
    ends = [end for _, end in bounds]
    for each in evidence:
        start, end, _ = checked_span(parser.name, doc, (each.start, each.end))
        if each.required and end > ends[bisect_right(ends, start)]:
            raise InputError(
                f"{parser.name}: {doc[start:end].text!r} is required, but a sentence ends inside "
                "of it, so no tree has it: leave it out"
            )


def _nested(tree: Any, words: Iterator[int], sure: dict[Span, float]) -> tuple[Any, int, int]:
    """Nest a tree, and find its first token and the one after its last."""
    if len(tree) == 1 and isinstance(tree[0], str):  # a word with its tag
        word = next(words)
        return word, word, word + 1
    below = [_nested(child, words, sure) for child in tree]
    start, end, label = below[0][1], below[-1][2], tree.label()
    return [label, sure.get((start, end, label)), [node for node, _, _ in below]], start, end


def attention_rows(views: Iterable[View], start: int, end: int) -> list[Row]:
    """Read the attention between the tokens of a sentence, one row for each layer.

    Args:
        views: the attention over each sentence that the encoder sees, which are those of a doc.
        start: the first token.
        end: the token after the last one.

    Raises:
        ValueError: if there is no view of these tokens.
    """
    rows: list[Row] = []
    at = 0
    for view in views:
        n = len(view.sentence)
        first, last = max(start, at), min(end, at + n)
        for i, layer in enumerate(view.layers if first < last else []):
            if i == len(rows):
                rows.append({"attention": numpy.zeros((end - start,) * 2), "gate": None})
            inside, shown = slice(first - at, last - at), slice(first - start, last - start)
            weights = layer.attention.reshape(-1, n, n).mean(0)
            rows[i]["attention"][shown, shown] = weights[inside, inside].round(4)
            if layer.gate is not None:
                gate = rows[i]["gate"] or [0.0] * (end - start)
                gate[shown] = layer.gate.mean(1)[inside].tolist()
                rows[i]["gate"] = gate
        at += n
    if not rows:
        raise ValueError(f"there is no attention over the tokens {start} to {end}")
    return [{**row, "attention": row["attention"].tolist()} for row in rows]
