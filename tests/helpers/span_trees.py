"""Labelled n-ary trees one by one, to compare `SpanTree` with.

A tree of the enumeration is nested: (start, end, label, children), label 0 for a bare word.
"""

import functools
import itertools
import math

import torch
from torch import Tensor

from tests.helpers.structs import INF


@functools.cache
def subtrees(start: int, end: int, labels: int, root: bool = False) -> list[tuple]:
    """All trees over the tokens from start to end, of L labels with null."""
    if end == start + 1:
        return [(start, end, label, ()) for label in range(root, labels)]
    found = []
    for cuts in range(1, end - start):
        for inner in itertools.combinations(range(start + 1, end), cuts):
            fences = (start, *inner, end)
            parts = [subtrees(i, j, labels) for i, j in itertools.pairwise(fences)]
            for children in itertools.product(*parts):
                found += [(start, end, label, children) for label in range(1, labels)]
    return found


def tree_constituents(tree: tuple) -> list[tuple[int, int, int]]:
    """The constituents of a nested tree, in preorder."""
    start, end, label, children = tree
    below = [c for child in children for c in tree_constituents(child)]
    return [(start, end, label), *below] if label else below


def null_spans(tree: tuple) -> list[tuple[int, int]]:
    """Those of the normal form: bare words, and the rests after the first of many children."""
    start, end, label, children = tree
    own = [] if label else [(start, end)]
    own += [(child[0], end) for child in children[1:-1]]
    return own + [span for child in children for span in null_spans(child)]


def enumerate_trees(scores: Tensor, n: int) -> list[tuple[list, float]]:
    """Every possible tree of a sentence and its score, best first."""
    values = scores.detach().double().tolist()
    trees = []
    for tree in subtrees(0, n, scores.shape[-1], True):
        listed = tree_constituents(tree)
        score = sum(values[i][j][label] for i, j, label in listed)
        score += sum(values[i][j][0] for i, j in null_spans(tree))
        if score > -INF:
            trees.append((listed, score))
    return sorted(trees, key=lambda pair: -pair[1])


def log_total(trees: list[tuple[list, float]]) -> float:
    """The log of the sum of exp(score), -inf of none."""
    return torch.tensor([score for _, score in trees], dtype=torch.float64).logsumexp(0).item()


def is_span(lengths: Tensor, n: int) -> Tensor:
    """(B, n+1, n+1) bool."""
    fence = torch.arange(n + 1)
    return (fence[:, None] < fence) & (fence <= lengths[:, None, None])


def random_scores(
    lengths: Tensor,
    labels: int,
    *,
    seed: int = 0,
    excluded: float = 0.0,
    scale: float = 1.5,
    null: bool = True,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """Normal scores with a share of -inf, and NaN wherever nothing may be read."""
    generator = torch.Generator().manual_seed(seed)
    n = int(lengths.max())
    shape = (len(lengths), n + 1, n + 1, labels)
    scores = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    if not null:
        scores[..., 0] = 0.0
    scores[torch.rand(shape, generator=generator) < excluded] = -INF
    scores[~is_span(lengths, n)] = math.nan
    return scores.to(dtype)


def flat_spans(scores: Tensor, lengths: Tensor) -> Tensor:
    """What `from_spans` takes, gathered in plain loops."""
    spans = [
        scores[b, i, j, 1:]
        for b, n in enumerate(lengths.tolist())
        for i in range(n)
        for j in range(i + 1, n + 1)
    ]
    return torch.stack(spans)
