"""Scores for the spans of sentences' tokens to distributions over trees of their words."""

from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from spacy_psa.pipeline.parser.constituents import Sentence
from spacy_psa.structs.span_cells import Tree
from spacy_psa.structs.tree import SpanTree

Shares = NDArray[numpy.floating[Any]]


def span_count(sentence: Sentence) -> int:
    """The spans of a sentence of n tokens, n (n + 1) / 2; 0 where it has no words."""
    n = sentence.end - sentence.start
    return n * (n + 1) // 2 if len(sentence.words) else 0


def span_tree(flat: Tensor, sentences: list[Sentence]) -> SpanTree:
    """The distribution over trees of the words of B sentences, each with some.

    flat: (S, L - 1), a row for each span of each sentence's tokens, by start, then end.
    Only spans that begin and end with a word count.
    """
    rows, first = [], 0
    for start, end, words in sentences:
        one, other = numpy.triu_indices(len(words))
        rows.append(first + _row(words[one] - start, words[other] - start + 1, end - start))
        first += (end - start) * (end - start + 1) // 2
    if first != sum(map(len, rows)):  # there is white space
        flat = flat[torch.from_numpy(numpy.concatenate(rows)).to(flat.device)]
    return SpanTree.from_spans(flat, torch.tensor([len(words) for _, _, words in sentences]))


def label_shares(dist: SpanTree, trees: list[Tree]) -> list[Shares]:
    """For each constituent of a tree, one for each sentence, the marginal probabilities of
    the labels over its words: (constituents, L - 1) arrays."""
    marginals = dist.span_marginals
    shares, first = [], 0
    for n, tree in zip(dist.lengths.tolist(), trees, strict=True):
        rows = [first + _row(start, end, n) for start, end, _ in tree]
        shares.append(marginals[rows].cpu().numpy())
        first += n * (n + 1) // 2
    return shares


def _row(start: Any, end: Any, n: int) -> Any:
    """The place of a span among those of its n tokens; of numbers or arrays."""
    return start * n - start * (start - 1) // 2 + end - start - 1
