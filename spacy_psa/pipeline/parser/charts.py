"""From the scores of a sentence's spans to the distribution over trees of its words."""

from collections.abc import Sequence
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from spacy_psa.pipeline.parser.constituents import FLAT, JOIN, Sentence
from spacy_psa.structs.span_cells import Tree
from spacy_psa.structs.tree import SpanTree

Shares = NDArray[numpy.floating[Any]]


def span_count(sentence: Sentence) -> int:
    """Count the spans of a sentence of n tokens, n (n + 1) / 2; 0 if it has no words.

    Examples:
        >>> span_count(Sentence(0, 3, numpy.arange(3)))
        6
    """
    n = sentence.end - sentence.start
    return n * (n + 1) // 2 if len(sentence.words) else 0


def span_tree(flat: Tensor, sentences: list[Sentence]) -> SpanTree:
    """Make the distribution over trees of the words of B sentences.

    Only spans that begin and end with a word count.

    Args:
        flat: (S, L - 1) scores, a row for each span of the tokens of each sentence, ordered by
            sentence, start and end.
        sentences: the B sentences, each with at least one word.

    Examples:
        >>> sentence = Sentence(0, 3, numpy.array([0, 2]))  # the second token is white space
        >>> trees = span_tree(torch.zeros(6, 1), [sentence])
        >>> trees.lengths
        tensor([2])
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
    """Compute the marginal probability of each label over the words of each constituent of a tree.

    Args:
        dist: the distribution of B sentences.
        trees: a tree for each sentence.

    Returns:
        For each sentence, an array (constituents, L - 1).
    """
    marginals = dist.span_marginals
    shares, first = [], 0
    for n, tree in zip(dist.lengths.tolist(), trees, strict=True):
        rows = [first + _row(start, end, n) for start, end, _ in tree]
        shares.append(marginals[rows].cpu().numpy())
        first += n * (n + 1) // 2
    return shares


def label_parts(labels: Sequence[str]) -> Tensor:
    """Tell which constituents are in each label of a chart: (L - 1, P) float64, 0 or 1.

    A second NP of one label is another constituent than its first one, as PARSEVAL counts: a label
    with three of them and one with one have one in common.

    Examples:
        >>> label_parts(["TOP", "S", "NP NP S"])  # TOP is no constituent
        tensor([[0., 0., 0.],
                [0., 0., 1.],
                [1., 1., 1.]], dtype=torch.float64)
    """
    chains = [[] if label == FLAT else label.split(JOIN) for label in labels]
    parts = [{(name, i) for name in chain for i in range(chain.count(name))} for chain in chains]
    number = {part: column for column, part in enumerate(sorted(set().union(*parts)))}
    has = torch.zeros(len(labels), len(number), dtype=torch.float64)
    for row, found in enumerate(parts):
        has[row, [number[part] for part in found]] = 1
    return has


def _row(start: Any, end: Any, n: int) -> Any:
    """Find the place of a span among the spans of its n tokens.

    Args:
        start: the first token of the span; a number, or an array for many spans.
        end: the token after its last one; likewise.
        n: the number of tokens.
    """
    return start * n - start * (start - 1) // 2 + end - start - 1
