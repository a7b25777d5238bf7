"""The compiled recursions over spans against their semiring twin, and against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

pytest.importorskip("numba")

from spacy_psa.kernels import tree as kernel
from spacy_psa.structs.tree import SpanTree
from spacy_psa.structs.tree_kbest import Forest
from tests.helpers.structs import on_both_paths

quick = settings(max_examples=30)
batches = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(torch.tensor)


def random_scores(lengths: Tensor, labels: int, seed: int, scale: float, excluded: float) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    side = int(lengths.max()) + 1
    shape = (len(lengths), side, side, labels)
    scores = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    return scores.masked_fill(torch.rand(shape, generator=generator) < excluded, -torch.inf)


@quick
@given(
    lengths=batches,
    labels=st.integers(2, 5),
    scale=st.sampled_from([0.1, 3.0, 2000.0]),
    excluded=st.sampled_from([0.0, 0.1, 0.4]),
    seed=st.integers(0, 10_000),
)
def test_both_paths_agree(lengths, labels, scale, excluded, seed):
    def compute():
        scores = random_scores(lengths, labels, seed, scale, excluded)
        dist = SpanTree(scores, lengths)
        log_probs = [p for best in dist.kbest(3) for p, _ in best]
        values = [dist.log_partition, dist.max, dist.marginals, dist.entropy]
        values.append(torch.tensor(log_probs, dtype=torch.float64))
        weight = torch.linspace(-1, 1, len(lengths), dtype=torch.float64)
        log_z = SpanTree(scores.requires_grad_(), lengths).log_partition
        log_z.backward(weight)
        return [*values, scores.grad]

    for ours, theirs in zip(*on_both_paths(compute), strict=True):
        assert not ours.isnan().any()
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@quick
@given(lengths=batches, labels=st.integers(2, 4), k=st.integers(1, 6), seed=st.integers(0, 10_000))
def test_both_paths_choose_the_same_among_many_ties(lengths, labels, k, seed):
    generator = torch.Generator().manual_seed(seed)
    side = int(lengths.max()) + 1
    scores = torch.randint(0, 2, (len(lengths), side, side, labels), generator=generator).float()

    def compute():
        dist = SpanTree(scores, lengths)
        return dist.argmax, [[tree for _, tree in best] for best in dist.kbest(k)]

    ours, theirs = on_both_paths(compute)
    assert ours == theirs
    assert ours[0] == [best[0] for best in ours[1]]
    for best in ours[1]:
        assert len({tuple(tree) for tree in best}) == len(best)


def plain(label: dict, null: dict, n: int, plus) -> tuple[float, dict]:
    """The sum of all trees in plain recursion, `plus` being max or logaddexp, and its parts."""
    inner: dict[tuple[int, int], float] = {}

    def child(i: int, j: int, right: bool) -> float:
        either = plus(label[i, j], null[i, j])
        return (either if right or j == i + 1 else label[i, j]) + inner[i, j]

    for width in range(1, n + 1):
        for i in range(n - width + 1):
            j = i + width
            inner[i, j] = 0.0 if width == 1 else -math.inf
            for m in range(i + 1, j):
                inner[i, j] = plus(inner[i, j], child(i, m, False) + child(m, j, True))
    return label[0, n] + inner[0, n], inner


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 9])
def test_kernels_agree_with_plain_recursion(dtype, n):
    rng = np.random.default_rng(n)
    spans = [(i, j) for i in range(n) for j in range(i + 1, n + 1)]
    scores = rng.normal(size=(2, len(spans))).astype(dtype)
    label, null = (dict(zip(spans, row.astype(float), strict=True)) for row in scores)
    lengths = np.array([n])
    best, cells = kernel.cky(scores[0], scores[1], lengths)
    assert best[0] == pytest.approx(plain(label, null, n, max)[0])
    assert cells[0] == n - 1  # the root first
    log_z = plain(label, null, n, np.logaddexp)[0]
    doubles = scores.astype(np.float64)
    assert kernel.log_partition(doubles[0], doubles[1], lengths)[0] == pytest.approx(log_z)
    assert kernel.inside_outside(doubles[0], doubles[1], lengths)[0][0] == pytest.approx(log_z)
    children = kernel.best_children(scores[0], scores[1], n)
    score, tree = Forest(scores[0][:, None], scores[1], n, *children).best(1)[0]
    assert score == pytest.approx(best[0])
    assert [spans.index((start, end)) for start, end, _ in tree] == cells.tolist()


def test_sentences_of_a_batch_do_not_touch_each_other():
    lengths = torch.tensor([5, 1, 7, 2])
    scores = random_scores(lengths, 4, 0, 2.0, 0.0)
    scores[1] = -torch.inf  # nothing is possible
    together = SpanTree(scores, lengths)
    for b, n in enumerate(lengths.tolist()):
        alone = SpanTree(scores[b : b + 1, : n + 1, : n + 1], lengths[b : b + 1])
        assert together.log_partition[b] == alone.log_partition[0]
        assert together.max[b] == alone.max[0]
        assert together.kbest(4)[b] == alone.kbest(4)[0]
        assert together.entropy[b] == alone.entropy[0]
        assert torch.equal(together.marginals[b, : n + 1, : n + 1], alone.marginals[0])
