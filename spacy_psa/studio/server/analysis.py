"""The answers of a component about a text, as plain data for the page."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy
from pydantic import BaseModel, Field
from spacy.tokens import Doc

from spacy_psa.analysis.attention import View
from spacy_psa.pipeline.analyses import DocAnalyses, best_sums
from spacy_psa.pipeline.chain.tagger import CRFTagger
from spacy_psa.pipeline.component import StructuredPipe
from spacy_psa.pipeline.nested.places import places
from spacy_psa.pipeline.nested.spans import NestedSpanLabeler
from spacy_psa.pipeline.parser.constituents import bracketed
from spacy_psa.pipeline.parser.parser import ConstituencyParser
from spacy_psa.pipeline.parser.trees import TreeSentence
from spacy_psa.sentences import Bounds

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


def answer(
    analyses: DocAnalyses,
    bounds: Bounds,
    evidence: Sequence[Evidence],
    chosen: Iterable[int],
    k: int,
) -> dict[int, Row]:
    """Answer the questions of the page about a component under evidence; as `rows_of`."""
    given = analyses
    if evidence:
        spans: dict[bool, list[Span]] = {True: [], False: []}
        for each in evidence:
            spans[each.required].append((each.start, each.end, each.label))
        given = analyses.given(require=spans[True], forbid=spans[False])
    return rows_of(analyses, given, bounds, chosen, k)


def rows_of(
    analyses: DocAnalyses, given: DocAnalyses, bounds: Bounds, chosen: Iterable[int], k: int
) -> dict[int, Row]:
    """Read the k best analyses of some sentences of the page, and their probabilities.

    A tree is nested: [label, probability, children], where the children are trees or the numbers of
    tokens. The trees of several sentences are below a node without label.

    Args:
        analyses: the analyses of a doc by a component.
        given: the same, given the evidence.
        bounds: the sentences of the page, each of which may be several of the component.
        chosen: the numbers of sentences of the page.
        k: the number of analyses.
    """
    pipe, rows = analyses.pipe, {}
    starts = [sentence.start for sentence in analyses.sentences]
    for i in chosen:
        start, end = bounds[i]
        first, last = bisect_left(starts, start), bisect_left(starts, end)
        own = list(zip(analyses.sentences[first:last], given.sentences[first:last]))
        parts: list[Any] = [after for _, after in own]
        if isinstance(pipe, ConstituencyParser):
            trees = [_trees(analyses.doc, part, k) for part in parts]
            row: Row = {"trees": _together(trees, k)}
        else:
            row = _sentence(pipe, parts, k)
            coverage = pipe.calibrated.coverage
            # The promise is for texts of which nothing is known.
            if own and coverage and given is analyses:
                items = [each for part in parts for each in part.above(coverage.least)]
                sets = [[s, e, label, round(p, 5)] for s, e, label, p in items]
                row["sets"] = {"level": coverage.level, "items": sets}
        gain = sum(after.log_partition - before.log_partition for before, after in own)
        row["evidence"] = math.exp(min(gain, 0.0))
        rows[i] = row
    return rows


def _sentence(pipe: StructuredPipe, parts: Sequence[Any], k: int) -> Row:
    """Answer for a sentence of the page."""
    ranked = [part.kbest(k) for part in parts]
    items = [[_items(pipe, part, names) for _, names in own] for part, own in zip(parts, ranked)]
    scores = [numpy.array([log_prob for log_prob, _ in own]) for own in ranked]
    entropies = [_entropies(pipe, part).round(4).tolist() for part in parts]
    sure = [_sure(pipe, part).round(4).tolist() for part in parts]
    return {
        "entropy": sum((part.entropy for part in parts), 0.0),
        "entropies": [*chain.from_iterable(entropies)],
        "sure": [*chain.from_iterable(sure)],
        "analyses": [
            {
                "probability": math.exp(log_prob),
                "items": [*chain.from_iterable(own[i] for own, i in zip(items, places))],
            }
            for log_prob, places in (best_sums(scores, k) if parts else [])
        ],
    }


def _items(pipe: StructuredPipe, part: Any, names: list[Any]) -> list[Any]:
    """List the spans or tags of an analysis, with the probability of each."""
    if isinstance(pipe, CRFTagger):
        names = [(i, i + 1, tag) for i, tag in enumerate(names, start=part.start)]
    return [[*span, round(part.posterior(*span), 5)] for span in names]


def _entropies(pipe: StructuredPipe, part: Any) -> Any:
    """Compute the entropy of the tag of each token, in bits.

    For nested spans, it is that of the most doubtful span which begins or ends at the token.
    """
    if not isinstance(pipe, NestedSpanLabeler):
        return abs(_bits(part.marginals).sum(1))
    chances = part.marginals.clip(0, 1)
    doubts = (_bits(chances) + _bits(1 - chances)).max(1, initial=0)
    start, end = places(part.end - part.start, pipe._longest)
    bits = numpy.zeros(part.end - part.start)
    for token in (start, end - 1):
        numpy.maximum.at(bits, token, doubts)
    return bits


def _sure(pipe: StructuredPipe, part: Any) -> Any:
    """Find how sure the model is of each token: the probability of its best tag.

    For nested spans, it is sure of a token as far as of the most doubtful span that begins or ends
    there: of its presence or absence, whichever is more probable.
    """
    if not isinstance(pipe, NestedSpanLabeler):
        return part.marginals.max(1)
    chances = part.marginals.clip(0, 1)
    least = numpy.maximum(chances, 1 - chances).min(1, initial=1)
    start, end = places(part.end - part.start, pipe._longest)
    sure = numpy.ones(part.end - part.start)
    for token in (start, end - 1):
        numpy.minimum.at(sure, token, least)
    return sure


def _bits(chances: Any) -> Any:
    return -chances * numpy.log2(chances, out=numpy.zeros_like(chances), where=chances > 0)


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


def _trees(doc: Doc, part: TreeSentence, k: int) -> list[Row]:
    """Nest the best trees of a sentence, with the probabilities of their constituents."""
    words, rows = part.sentence.words, []
    for log_prob, nodes in part.scored(k):
        sure = {node[:3]: round(node.confidence, 5) for node in nodes}
        tree = bracketed(doc, words, [node[:3] for node in nodes])
        root, _, _ = _nested(tree, iter(words.tolist()), sure)
        rows.append({"probability": math.exp(log_prob), "tree": root})
    return rows


def _nested(tree: Any, words: Iterator[int], sure: dict[Span, float]) -> tuple[Any, int, int]:
    """Nest a tree, and find its first token and the one after its last."""
    if len(tree) == 1 and isinstance(tree[0], str):  # a word with its tag
        word = next(words)
        return word, word, word + 1
    below = [_nested(child, words, sure) for child in tree]
    start, end, label = below[0][1], below[-1][2], tree.label()
    return [label, sure.get((start, end, label)), [node for node, _, _ in below]], start, end


def attention_rows(views: Iterable[View], start: int, end: int) -> list[Row]:
    """Read the attention between the tokens `start` to `end` (excluded), one row for each layer.

    The views are those of a doc, over each sentence that the encoder sees.

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
