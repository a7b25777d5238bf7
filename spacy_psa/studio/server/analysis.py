"""The answers of a component about a text, as plain data for the page."""

import math
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
    before = list(zip(analyses.starts, analyses.sentences))
    after = list(zip(given.starts, given.sentences))
    bounds = sentence_bounds(analyses.doc)
    found = {}
    for i in chosen:
        start, end = bounds[i]
        own = [part for part in after if start <= part[0] < end]
        found[i] = _sentence(pipe, own, k)
        # The promise is for texts of which nothing is known.
        if own and pipe.coverage and given is analyses:
            found[i]["sets"] = _sets(pipe, own)
        known = sum(part.log_partition for _, part in own)
        gain = known - sum(part.log_partition for first, part in before if start <= first < end)
        found[i]["evidence"] = math.exp(min(gain, 0.0))
    return found


def _split(evidence: Iterable[Evidence]) -> tuple[list[Span], list[Span]]:
    """Give the spans that must be there, and those that must not."""
    required: list[Span] = []
    forbidden: list[Span] = []
    for one in evidence:
        (required if one.required else forbidden).append((one.start, one.end, one.label))
    return required, forbidden


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
    """The spans or tags of which the true ones are with the probability that was promised."""
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


def parser_answer(
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
        doc: the doc, as the pipeline gives it to the component.
        bounds: the sentences to answer for, each of which may be several of the doc.
        evidence: the constituents that must or must not be there.
        chosen: the numbers of these that are asked for.
        k: number of trees of a sentence.

    Raises:
        InputError: if the evidence contradicts itself, and for labels that are not known.
    """
    own = sentence_bounds(doc)
    _check_within(parser, doc, evidence, own)
    parts = {i: [j for j, (start, _) in enumerate(own) if _holds(bounds[i], start)] for i in chosen}
    asked = {i: _split(one for one in evidence if _is_in(one, bounds[i])) for i in chosen}
    # The sentences without evidence are decoded together.
    groups = [[i] for i, known in asked.items() if any(known)]
    groups.append([i for i, known in asked.items() if not any(known)])
    found = {}
    for numbers in filter(None, groups):
        require, forbid = asked[numbers[0]]
        together = [j for i in numbers for j in parts[i]]
        decoding = parser.decode(doc, require=require, forbid=forbid, k=k, sentences=together)
        sure = math.exp(min(decoding.log_evidence, 0.0))
        for i in numbers:
            trees = [
                _trees(doc, own[j], decoding.trees[j], decoding.constituents[j]) for j in parts[i]
            ]
            found[i] = {"trees": _together(trees, k), "evidence": sure}
    return found


def _together(parts: list[list[Row]], k: int) -> list[Row]:
    """Join the trees of several sentences into the best analyses of all of them."""
    if len(parts) == 1:
        return parts[0]
    parts = [own for own in parts if own]  # a sentence that is too long has no tree
    scores = [numpy.log([one["probability"] for one in own]) for own in parts]
    return [
        {
            "probability": math.exp(log_prob),
            "tree": ["", None, [own[place]["tree"] for own, place in zip(parts, places)]],
        }
        for log_prob, places in (best_sums(scores, k) if parts else [])
    ]


def _holds(bounds: tuple[int, int], start: int) -> bool:
    return bounds[0] <= start < bounds[1] or bounds == (start, start)


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


def attention_rows(views: Iterable[View], start: int, end: int) -> list[Row]:
    """Read the attention between the tokens of a sentence, one row for each layer.

    Args:
        views: the attention over each sentence that the encoder sees, which are those of a doc.
        start: the first token.
        end: the token after the last one.

    Raises:
        ValueError: if there is no view of these tokens.
    """
    found: list[Row] = []
    at = 0
    for view in views:
        n = len(view.sentence)
        first, last = max(start, at), min(end, at + n)
        for i, layer in enumerate(view.layers if first < last else []):
            if i == len(found):
                found.append({"attention": numpy.zeros((end - start,) * 2), "gate": None})
            inside, shown = slice(first - at, last - at), slice(first - start, last - start)
            weights = layer.attention.reshape(-1, n, n).mean(0)
            found[i]["attention"][shown, shown] = weights[inside, inside].round(4)
            if layer.gate is not None:
                gate = found[i]["gate"] or [0.0] * (end - start)
                gate[shown] = layer.gate.mean(1)[inside].tolist()
                found[i]["gate"] = gate
        at += n
    if not found:
        raise ValueError(f"there is no attention over the tokens {start} to {end}")
    return [{**row, "attention": row["attention"].tolist()} for row in found]
