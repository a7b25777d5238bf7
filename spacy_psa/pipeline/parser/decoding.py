"""The ways to choose a tree: the most probable one, or the one with the best expected F1."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from spacy_psa.pipeline.inference import Batch
from spacy_psa.pipeline.parser.chart import (
    Constituent,
    Known,
    chart_constituents,
    label_parts,
    label_shares,
)
from spacy_psa.structs.tree_f1 import best_expected_f1

Decode = Literal["cky", "mbr"]


class Parse(NamedTuple):
    """The prediction for a doc or a sentence."""

    constituents: list[Constituent]
    """The constituents of the best tree of each sentence, in preorder."""
    tags: dict[int, str]
    """The tag of each word, by the number of its token; empty if there is no tag head."""


def parses(
    batch: Batch, labels: Sequence[str], tags: Sequence[str], decode: Decode, scores: bool
) -> Iterator[Parse]:
    """Choose the tree of each sentence of a batch, and the best tags of its words.

    Args:
        batch: the batch.
        labels: the labels of the chart.
        tags: the tags; empty if there is no tag head.
        decode: "cky" or "mbr".
        scores: whether constituents have their posteriors.
    """
    if decode == "cky":
        trees = batch.dist.argmax
    else:
        trees = best_expected_f1(batch.dist, label_parts(labels))[0]
    shares = label_shares(batch.dist, trees) if scores else [None] * len(trees)
    best: list[dict[int, str]] = [{} for _ in trees]
    for own, array, ((start, _, words), _) in zip(best, batch.tags, batch.known):
        scored: Any = array
        numbers = scored.argmax(1)[words - start]
        own.update((i, tags[number]) for i, number in zip(words.tolist(), numbers.tolist()))
    for tree, share, own, known in zip(trees, shares, best, batch.known, strict=True):
        kept = known.constraints.kept
        yield Parse(chart_constituents(tree, labels, known.sentence, share, kept), own)


def flat_parse(known: Known, labels: Sequence[str]) -> Parse:
    """Put the first label over all words of a sentence that is too long, if it has words."""
    (_, _, words), constraints = known
    if not len(words):
        return Parse([], {})
    given = {place: chain for place, chain in constraints.required if chain}
    given |= constraints.kept
    tree = [(0, len(words), 1)]
    return Parse(chart_constituents(tree, labels, known.sentence, None, given), {})


def joined(parts: Sequence[Parse]) -> Parse:
    """Join the parses of the sentences of a doc."""
    tags = {i: tag for part in parts for i, tag in part.tags.items()}
    return Parse([node for part in parts for node in part.constituents], tags)
