"""`SpanTree.augment` and `SpanTree.hinge` against the enumeration of every tree."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_psa.structs.span_cells import hamming
from spacy_psa.structs.tree import SpanTree
from tests.helpers.span_trees import enumerate_trees, random_scores
from tests.helpers.structs import INF, TOLERANCE, quick

LENGTHS = torch.tensor([4, 1, 3, 2])


def test_hinge_has_no_gradient_where_scores_have_none(path):
    scores = random_scores(LENGTHS, 3)
    dist = SpanTree(scores, LENGTHS)
    hinge = dist.hinge(dist.argmax)
    assert not hinge.requires_grad
    with torch.inference_mode():
        inside = SpanTree(scores.clone(), LENGTHS.clone())
        assert torch.equal(inside.hinge(inside.argmax), hinge)


def test_hinge_of_an_impossible_tree_is_an_error_that_names_the_sentences(path):
    scores = random_scores(torch.tensor([3, 1, 2]), 3, seed=2)
    scores[0, 1, 2] = -INF  # a word that is nothing
    scores[1, 0, 1, 1:] = -INF  # a root that could only be null
    trees = [[(0, n, 1)] for n in (3, 1, 2)]
    dist = SpanTree(scores, torch.tensor([3, 1, 2]))
    assert dist.log_partition.tolist()[:2] == [-INF, -INF]
    with pytest.raises(ValueError, match=r"trees of the sentences \[0, 1\] are not possible"):
        dist.hinge(trees)


def test_augmented_scores_are_scores_plus_hamming_distance(path, dtype):
    lengths = torch.tensor([3, 1, 4])
    scores = random_scores(lengths, 3, seed=9, null=False, dtype=dtype)
    gold = SpanTree(random_scores(lengths, 3, seed=10), lengths).argmax
    augmented = SpanTree(scores, lengths).augment(gold)
    for b, n in enumerate(lengths.tolist()):
        best = -INF
        for tree, score in enumerate_trees(scores[b], n):
            cost = hamming(tree, gold[b])
            best = max(best, score + cost)
            if n < 4:
                batch = [*gold[:b], tree, *gold[b + 1 :]]
                found = augmented.score(batch)[b].item()
                assert found == pytest.approx(score + cost, abs=TOLERANCE[dtype])
        assert augmented.max[b].item() == pytest.approx(best, abs=TOLERANCE[dtype])


@quick
@given(seed=st.integers(0, 10_000), margin=st.sampled_from([0.0, 0.9, 1.0, 1.1]))
def test_hinge_is_zero_exactly_when_the_margin_is_met(path, seed, margin):
    lengths = torch.tensor([3, 1, 2])
    gold = SpanTree(random_scores(lengths, 3, seed=seed), lengths).argmax
    scores = 0.05 * random_scores(lengths, 3, seed=seed + 1, null=False)
    for b, tree in enumerate(gold):
        scores[b, ..., 1:] -= margin  # the spans of no gold constituent
        for start, end, label in tree:
            scores[b, start, end, 1:] += margin
            scores[b, start, end, label] += margin
    hinge = SpanTree(scores, lengths).hinge(gold)
    for b, n in enumerate(lengths.tolist()):
        trees = enumerate_trees(scores[b], n)
        own = next(score for tree, score in trees if tree == gold[b])
        worst = max(score + hamming(tree, gold[b]) for tree, score in trees)
        assert hinge[b].item() == pytest.approx(worst - own, abs=1e-9)
        met = all(own >= score + hamming(tree, gold[b]) for tree, score in trees)
        assert (hinge[b].item() == 0.0) == met


def test_hinge_gradient_touches_the_spans_of_two_trees_alone(path):
    lengths = torch.tensor([6, 1, 5])
    scores = random_scores(lengths, 4, seed=1, null=False).requires_grad_()
    gold = SpanTree(random_scores(lengths, 4, seed=2), lengths).argmax
    dist = SpanTree(scores, lengths)
    dist.hinge(gold).sum().backward()
    worst = dist.augment(gold).argmax
    expected = torch.zeros_like(scores)
    for b in range(3):
        for tree, sign in ((worst[b], 1.0), (gold[b], -1.0)):
            for start, end, label in tree:
                expected[b, start, end, label] += sign
    assert expected.any()
    assert torch.equal(scores.grad[..., 1:], expected[..., 1:])
