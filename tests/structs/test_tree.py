"""SpanTree against the enumeration of every labelled n-ary tree, with kernels and without."""

from __future__ import annotations

import functools
import itertools
import math
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from spacy_psa.structs.tree import SpanTree
from tests.helpers.span_trees import (
    enumerate_trees,
    flat_spans,
    is_span,
    log_total,
    random_scores,
    subtrees,
    tree_constituents,
)
from tests.helpers.structs import INF, TOLERANCE, quick

LENGTHS = torch.tensor([4, 1, 3, 2])


@pytest.mark.parametrize("excluded", [0.0, 0.2])
@pytest.mark.parametrize(("lengths", "labels"), [([4, 1, 3, 2], 3), ([1, 5], 2)])
def test_everything_agrees_with_enumeration(path, dtype, excluded, lengths, labels):
    lengths = torch.tensor(lengths)
    scores = random_scores(lengths, labels, seed=7, excluded=excluded, dtype=dtype)
    dist = SpanTree(scores, lengths)
    best = dist.kbest(7)
    near = functools.partial(pytest.approx, abs=TOLERANCE[dtype])
    assert dist.log_partition.dtype == dist.marginals.dtype == dist.entropy.dtype == dtype
    for b, n in enumerate(lengths.tolist()):
        trees = enumerate_trees(scores[b], n)
        assert trees, "the seed should leave something possible"
        log_z = log_total(trees)
        marginals = torch.zeros(dist.marginals.shape[1:], dtype=torch.float64)
        entropy = 0.0
        for tree, score in trees:
            prob = math.exp(score - log_z)
            entropy -= prob * (score - log_z)
            for constituent in tree:
                marginals[constituent] += prob
        assert dist.log_partition[b].item() == near(log_z)
        assert dist.max[b].item() == near(trees[0][1])
        assert dist.argmax[b] == trees[0][0]
        assert dist.entropy[b].item() == near(entropy)
        close = {"atol": TOLERANCE[dtype], "rtol": 0}
        torch.testing.assert_close(dist.marginals[b, ..., 1:].double(), marginals[..., 1:], **close)
        assert len(best[b]) == min(7, len(trees))
        for (log_prob, tree), (expected, score) in zip(best[b], trees, strict=False):
            assert tree == expected
            assert log_prob == near(score - log_z)


@pytest.mark.parametrize("excluded", [0.0, 0.2])
def test_log_prob_and_score_of_every_tree(path, dtype, excluded):
    lengths = torch.tensor([3, 1, 2])
    scores = random_scores(lengths, 3, seed=5, excluded=excluded, dtype=dtype)
    dist = SpanTree(scores, lengths)
    every = [[tree_constituents(t) for t in subtrees(0, n, 3, True)] for n in lengths.tolist()]
    possible = [enumerate_trees(scores[b], n) for b, n in enumerate(lengths.tolist())]
    for i, tree in enumerate(every[0]):
        batch = [tree, every[1][i % len(every[1])], every[2][i % len(every[2])]]
        found = zip(batch, possible, dist.score(batch).tolist(), dist.log_prob(batch).tolist())
        for asked, known, score, log_prob in found:
            expected = next((s for t, s in known if t == asked), -INF)
            assert score == pytest.approx(expected, abs=TOLERANCE[dtype])
            assert log_prob == pytest.approx(expected - log_total(known), abs=TOLERANCE[dtype])


def test_kbest_with_a_large_k_lists_every_tree_once(path):
    lengths = torch.tensor([3, 1, 2])
    scores = random_scores(lengths, 2, seed=6, excluded=0.1)
    for b, (n, found) in enumerate(zip(lengths.tolist(), SpanTree(scores, lengths).kbest(30))):
        trees = enumerate_trees(scores[b], n)
        assert [tree for _, tree in found] == [tree for tree, _ in trees]
        assert sum(math.exp(log_prob) for log_prob, _ in found) == pytest.approx(1.0)


def test_from_spans_has_null_scores_of_zero(path, dtype):
    scores = random_scores(LENGTHS, 3, null=False, dtype=dtype)
    dense, flattened = (
        SpanTree(scores, LENGTHS),
        SpanTree.from_spans(flat_spans(scores, LENGTHS), LENGTHS),
    )
    assert dense.argmax == flattened.argmax
    assert torch.equal(dense.log_partition, flattened.log_partition)
    assert torch.equal(dense.marginals, flattened.marginals)
    expected = flat_spans(dense.marginals, LENGTHS)
    assert torch.equal(flattened.span_marginals, expected)


def widest(scores: Tensor, n: int) -> float:
    """The best score of all labelled binary trees, in plain loops: K-1 without a normal form."""
    best: dict[tuple[int, int], float] = {}
    for width in range(1, n + 1):
        for i in range(n - width + 1):
            j = i + width
            label = scores[i, j, width == n :].max().item()
            splits = [best[i, m] + best[m, j] for m in range(i + 1, j)]
            best[i, j] = label + max(splits, default=0.0)
    return best[0, n]


@quick
@given(seed=st.integers(0, 10_000), labels=st.integers(2, 5), scale=st.sampled_from([0.1, 2.0]))
def test_no_binarisation_is_better_than_the_normal_form(path, seed, labels, scale):
    lengths = torch.tensor([8, 3, 1])
    scores = random_scores(lengths, labels, seed=seed, scale=scale, null=False)
    dist = SpanTree(scores, lengths)
    for b, n in enumerate(lengths.tolist()):
        assert dist.max[b].item() == pytest.approx(widest(scores[b], n))


@quick
@given(seed=st.integers(0, 10_000), excluded=st.sampled_from([0.0, 0.1]))
def test_marginals_are_probabilities(path, seed, excluded):
    lengths = torch.tensor([6, 1, 4])
    dist = SpanTree(random_scores(lengths, 3, seed=seed, excluded=excluded), lengths)
    marginals = dist.marginals
    assert (marginals >= 0).all() and (marginals <= 1 + 1e-12).all()
    assert (marginals[~is_span(lengths, 6)] == 0).all()
    for b, n in enumerate(lengths.tolist()):
        if dist.log_partition[b] == -INF:
            assert (marginals[b] == 0).all()
            continue
        assert marginals[b, 0, n, 1:].sum().item() == pytest.approx(1.0)
        assert marginals[b, 0, n, 0] == 0
        words = marginals[b].diagonal(1).sum(0)[:n]
        torch.testing.assert_close(words, torch.ones_like(words))
        # A binary tree over n tokens has 2n - 1 nodes.
        assert marginals[b].sum().item() == pytest.approx(2 * n - 1)


@quick
@given(seed=st.integers(0, 10_000), shift=st.floats(-50, 50))
def test_a_constant_on_the_root_moves_the_partition_and_nothing_else(path, seed, shift):
    lengths = torch.tensor([5, 2])
    scores = random_scores(lengths, 3, seed=seed)
    moved = scores.clone()
    moved[torch.arange(2), 0, lengths] += shift
    a, b = SpanTree(scores, lengths), SpanTree(moved, lengths)
    torch.testing.assert_close(b.log_partition, a.log_partition + shift)
    torch.testing.assert_close(b.marginals, a.marginals)
    torch.testing.assert_close(b.entropy, a.entropy)
    assert a.argmax == b.argmax


# ------------------------------------------------------------------------------ gradients


@pytest.mark.parametrize("name", ["log_prob", "score", "hinge"])
def test_gradients_of_a_tree_s_spans_are_those_of_finite_differences(path, name):
    lengths = torch.tensor([4, 1, 2])
    numbers = flat_spans(random_scores(lengths, 3, seed=5), lengths)
    trees = SpanTree.from_spans(-numbers, lengths).argmax

    def value(numbers: Tensor) -> Tensor:
        return getattr(SpanTree.from_spans(numbers, lengths), name)(trees)

    assert torch.autograd.gradcheck(value, numbers.requires_grad_())


def test_gradient_of_log_partition_is_the_marginals(path, dtype):
    scores = random_scores(LENGTHS, 4, excluded=0.1, dtype=dtype).requires_grad_()
    SpanTree(scores, LENGTHS).log_partition.sum().backward()
    torch.testing.assert_close(scores.grad, SpanTree(scores.detach(), LENGTHS).marginals)


# ------------------------------------------------------------------------------- evidence


def consistent(tree: list, required: list, forbidden: list) -> bool:
    known = {*tree, *(c[:2] for c in tree)}
    return known.issuperset(required) and known.isdisjoint(forbidden)


@pytest.mark.parametrize(
    ("required", "forbidden"),
    [
        ([(1, 3)], []),
        ([(1, 3, 2)], []),
        ([(0, 3), (1, 3), (1, 2, 1)], []),
        ([(3, 4), (0, 4, 2)], []),
        ([], [(0, 2), (1, 2, 1)]),
        ([(0, 2)], [(2, 4), (0, 2, 1), (0, 4, 2)]),
        ([], []),
    ],
)
def test_constrained_is_the_distribution_given_the_evidence(path, dtype, required, forbidden):
    lengths = torch.tensor([4, 1])
    scores = random_scores(lengths, 3, seed=4, dtype=dtype)
    dist = SpanTree(scores, lengths)
    given_evidence = dist.constrain(required=[required, []], forbidden=[forbidden, []])
    trees = enumerate_trees(scores[0], 4)
    legal = [pair for pair in trees if consistent(pair[0], required, forbidden)]
    assert legal
    near = functools.partial(pytest.approx, abs=TOLERANCE[dtype])
    assert given_evidence.log_partition[0].item() == near(log_total(legal))
    assert given_evidence.argmax[0] == legal[0][0]
    found = given_evidence.kbest(5)[0]
    assert [tree for _, tree in found] == [tree for tree, _ in legal[:5]]
    assert [p for p, _ in found] == near([s - log_total(legal) for _, s in legal[:5]])
    assert given_evidence.log_partition[1] == dist.log_partition[1]


@pytest.mark.parametrize("spans", [[(1, 3)], [(0, 4)], [(0, 2), (2, 3)], [(2, 4), (0, 4)]])
def test_merged_trees_have_the_sum_of_their_probabilities(path, dtype, spans):
    lengths = torch.tensor([4, 1])
    scores = random_scores(lengths, 3, seed=4, null=False, dtype=dtype)
    dist = SpanTree(scores, lengths)
    merged = dist.merge([spans, []], label=2)
    sums = {}
    for tree, score in enumerate_trees(scores[0], 4):
        if not any(crosses(node, span) for node in tree for span in spans):
            with_spans = {node for node in tree if node[:2] not in spans}
            key = frozenset(with_spans | {(*span, 2) for span in spans})
            sums[key] = sums.get(key, 0.0) + math.exp(score)
    near = functools.partial(pytest.approx, abs=TOLERANCE[dtype])
    total = sum(sums.values())
    assert merged.log_partition[0].item() == near(math.log(total))
    found = {frozenset(tree): p for p, tree in merged.kbest(5)[0]}
    assert len(found) == 5
    assert found == near({key: math.log(sums[key] / total) for key in found})
    assert max(sums, key=lambda key: sums[key]) == next(iter(found))
    assert merged.log_partition[1] == dist.log_partition[1]


def crosses(one: tuple, other: tuple) -> bool:
    (a, b), (c, d) = one[:2], other[:2]
    return a < c < b < d or c < a < d < b


def test_allowed_labels_are_the_only_ones(path):
    lengths = torch.tensor([4, 2])
    scores = random_scores(lengths, 3, seed=4)
    allowed = torch.rand(scores.shape, generator=torch.Generator().manual_seed(3)) < 0.8
    dist = SpanTree(scores, lengths).constrain(allowed)
    masked = scores.masked_fill(~allowed, -INF)
    for b, n in enumerate(lengths.tolist()):
        trees = enumerate_trees(masked[b], n)
        assert 0 < len(trees) < len(enumerate_trees(scores[b], n))
        assert dist.log_partition[b].item() == pytest.approx(log_total(trees))
        assert dist.argmax[b] == trees[0][0]


@quick
@given(seed=st.integers(0, 10_000))
def test_requiring_the_spans_of_the_best_tree_makes_them_sure(path, seed):
    lengths = torch.tensor([6, 1, 4])
    dist = SpanTree(random_scores(lengths, 3, seed=seed), lengths)
    tree = dist.argmax
    labelled = dist.constrain(required=tree)
    assert labelled.argmax == tree
    for b, constituents in enumerate(tree):
        for constituent in constituents:
            assert labelled.marginals[b][constituent].item() == pytest.approx(1.0)
    spans = dist.constrain(required=[[c[:2] for c in constituents] for constituents in tree])
    assert spans.argmax == tree
    for b, constituents in enumerate(tree):
        for start, end, _ in constituents:
            assert spans.marginals[b, start, end, 1:].sum().item() == pytest.approx(1.0)


def test_evidence_that_crosses_leaves_no_tree(path):
    dist = SpanTree(random_scores(torch.tensor([4]), 3), torch.tensor([4]))
    crossed = dist.constrain(required=[[(0, 2), (1, 3)]])
    assert crossed.log_partition.item() == -INF
    with pytest.raises(ValueError, match=r"no tree is possible for the sentences \[0\]"):
        _ = crossed.argmax


def test_constraints_carry_gradients(path):
    lengths = torch.tensor([4])
    scores = random_scores(lengths, 3).requires_grad_()
    dist = SpanTree(scores, lengths)
    evidence = dist.constrain(required=[[(1, 3)]])
    (dist.log_partition - evidence.log_partition).sum().backward()
    assert scores.grad.isfinite().all()
    assert scores.grad[0, 1, 3, 1:].sum() < 0


# -------------------------------------------------------------------------------- extremes


def test_nothing_but_the_root_where_null_is_best(path, dtype):
    lengths = torch.tensor([5, 1, 300])
    spans = int((lengths * (lengths + 1) // 2).sum())
    dist = SpanTree.from_spans(torch.full((spans, 3), -1.0, dtype=dtype), lengths)
    assert dist.argmax == [[(0, n, 1)] for n in lengths.tolist()]
    assert dist.max.tolist() == [-1.0, -1.0, -1.0]


def test_ties_go_to_null_then_to_the_lowest_label_then_to_the_lowest_split(path, dtype):
    lengths = torch.tensor([4, 1])
    dist = SpanTree.from_spans(torch.zeros(11, 3, dtype=dtype), lengths)
    assert dist.argmax == [[(0, 4, 1)], [(0, 1, 1)]]
    scores = torch.zeros(1, 4, 4, 3, dtype=dtype)
    scores[0, :, :, 1:] = -5.0
    scores[0, 0, 2, 1:] = scores[0, 1, 3, 1:] = 1.0
    assert SpanTree(scores, torch.tensor([3])).argmax == [[(0, 3, 1), (1, 3, 1)]]


def test_one_token_is_its_labels_alone(path, dtype):
    scores = torch.tensor([9.0, 1.0, 2.0], dtype=dtype).expand(1, 2, 2, 3)
    dist = SpanTree(scores, torch.tensor([1]))
    assert dist.argmax == [[(0, 1, 2)]]
    torch.testing.assert_close(dist.log_partition, scores[0, 0, 1, 1:].logsumexp(0)[None])
    torch.testing.assert_close(dist.marginals[0, 0, 1, 1:], scores[0, 0, 1, 1:].softmax(0))
    assert [tree for _, tree in dist.kbest(5)[0]] == [[(0, 1, 2)], [(0, 1, 1)]]


def test_a_tree_of_300_tokens_is_found_again(path):
    rng = random.Random(0)
    tree = []

    def grow(start: int, end: int) -> None:
        tree.append((start, end, rng.randint(1, 6)))
        cuts = rng.sample(range(start + 1, end), min(end - start - 1, rng.randint(1, 3)))
        for i, j in itertools.pairwise(sorted({start, *cuts, end})):
            if j - i > 1 or rng.random() < 0.3:
                grow(i, j) if end - start > 1 else None

    grow(0, 300)
    lengths = torch.tensor([300])
    scores = torch.full((1, 301, 301, 7), -1.0)
    scores[..., 0] = 0.0
    for start, end, label in tree:
        scores[0, start, end, label] = 2.0
    dist = SpanTree(scores, lengths)
    assert dist.argmax == [tree]
    assert dist.max.item() == 2.0 * len(tree)
    assert dist.hinge([tree]).item() == 0.0
    assert dist.log_prob([tree]).item() < 0.0
    if path == "kernel":  # the recursion in a semiring keeps all splits of all ranks
        (first, second) = dist.kbest(2)[0]
        assert first[1] == tree and second[0] < first[0]


def test_long_sentences_keep_their_precision_in_float32(path):
    lengths = torch.tensor([60])
    exact = 10 * random_scores(lengths, 3, scale=1.0, null=False).float().double() + 500
    rounded = SpanTree(exact.float(), lengths)
    exact_dist = SpanTree(exact.float().double(), lengths)
    tree = exact_dist.argmax
    assert rounded.argmax == tree
    torch.testing.assert_close(rounded.marginals.double(), exact_dist.marginals)
    torch.testing.assert_close(rounded.log_prob(tree).double(), exact_dist.log_prob(tree))
    torch.testing.assert_close(rounded.entropy.double(), exact_dist.entropy)


def test_extreme_scores_do_not_underflow(path, dtype):
    # Without (0, 2) nothing is possible, and it costs 20,000 nats.
    scores = torch.zeros(1, 4, 4, 2, dtype=dtype)
    scores[0, 0, 2, 1] = -20_000.0
    scores[0, 0, 1] = scores[0, 1, 3] = -INF
    scores[0, 0, 1, 1] = 5_000.0
    scores[0, 1, 2, 1] = scores[0, 2, 3, 1] = -INF
    dist = SpanTree(scores, torch.tensor([3]))
    assert dist.log_partition.item() == -15_000.0
    assert dist.argmax == [[(0, 3, 1), (0, 2, 1), (0, 1, 1)]]
    assert dist.marginals[0, 0, 2, 1].item() == 1.0
    assert dist.entropy.item() == 0.0


def test_chart_may_be_larger_than_its_longest_sentence(path):
    scores = random_scores(LENGTHS, 3)
    wide = torch.nn.functional.pad(scores, (0, 0, 0, 2, 0, 2), value=math.nan)
    a, b = SpanTree(scores, LENGTHS), SpanTree(wide, LENGTHS)
    assert a.argmax == b.argmax
    assert torch.equal(a.log_partition, b.log_partition)
    assert b.marginals.shape == wide.shape
    assert torch.equal(b.marginals[:, :5, :5], a.marginals)


def test_half_precision_scores_are_taken(path):
    scores = random_scores(LENGTHS, 3, dtype=torch.bfloat16)
    half, full = SpanTree(scores, LENGTHS), SpanTree(scores.float(), LENGTHS)
    assert half.argmax == full.argmax
    assert half.log_partition.dtype == torch.bfloat16
    torch.testing.assert_close(half.log_partition, full.log_partition.bfloat16())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_scores_on_a_gpu_give_the_same(path):
    scores = random_scores(LENGTHS, 3, null=False)
    here, there = SpanTree(scores, LENGTHS), SpanTree(scores.cuda(), LENGTHS)
    assert here.argmax == there.argmax
    assert [t for best in here.kbest(3) for _, t in best] == [
        t for best in there.kbest(3) for _, t in best
    ]
    for name in ("log_partition", "max", "entropy", "marginals"):
        assert getattr(there, name).is_cuda
        torch.testing.assert_close(getattr(there, name).cpu(), getattr(here, name))
    gold = SpanTree(random_scores(LENGTHS, 3, seed=1), LENGTHS).argmax
    torch.testing.assert_close(there.hinge(gold).cpu(), here.hinge(gold))


# ---------------------------------------------------------------------------------- errors

ZEROS = torch.zeros(2, 4, 4, 3)


def full() -> SpanTree:
    return SpanTree(ZEROS, torch.tensor([3, 2]))


OK = [(0, 3, 1)]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: SpanTree(ZEROS[0], torch.tensor([3, 3])), r"\(B, n\+1, n\+1, L\)"),
        (lambda: SpanTree(ZEROS[:, :3], torch.tensor([3, 3])), r"\(B, n\+1, n\+1, L\)"),
        (lambda: SpanTree(ZEROS[..., :1], torch.tensor([3, 3])), "L at least 2"),
        (lambda: SpanTree(ZEROS.long(), torch.tensor([3, 3])), "floating point"),
        (lambda: SpanTree(ZEROS, torch.tensor([3])), "int64 of shape"),
        (lambda: SpanTree(ZEROS, torch.tensor([3.0, 3.0])), "int64 of shape"),
        (lambda: SpanTree(ZEROS, torch.tensor([3, 0])), "from 1 to 3"),
        (lambda: SpanTree(ZEROS, torch.tensor([4, 1])), "from 1 to 3"),
        (lambda: SpanTree.from_spans(torch.zeros(8, 2), torch.tensor([3, 2])), r"\(9, L - 1\)"),
        (lambda: SpanTree.from_spans(torch.zeros(9, 0), torch.tensor([3, 2])), r"\(9, L - 1\)"),
        (lambda: full().constrain(torch.ones(2, 4, 4, 2).bool()), "allowed"),
        (lambda: full().constrain(required=[[]]), "required is for 1 sentences, not 2"),
        (
            lambda: full().constrain(forbidden=[[], [(0, 3)]]),
            r"sentence 1: \(0, 3\) is not a span of its 2 tokens",
        ),
        (lambda: full().constrain(required=[[(0, 1, 3)], []]), "sentence 0: label 3"),
        (lambda: full().score([OK]), r"1 tree\(s\) for 2 sentence\(s\): each needs one"),
        (lambda: full().score([OK, OK]), r"tree of sentence 1: \(0, 3\) is not a span of 2 tokens"),
        (lambda: full().log_prob([[], [(0, 2, 1)]]), "sentence 0: no constituent covers all 3"),
        (lambda: full().hinge([OK, [(0, 2, 3)]]), "sentence 1: label 3 of .* from 1 to 2"),
        (lambda: full().augment([[*OK, (0, 2, 1), (1, 3, 1)], [(0, 2, 1)]]), "sentence 0.*crosses"),
    ],
)
def test_what_does_not_fit_is_an_error(build, message):
    with pytest.raises(ValueError, match=message):
        build()
