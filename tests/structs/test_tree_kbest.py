"""Lazy k best against the semiring of the k best and on long sentences."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_psa.structs.tree import SpanTree
from tests.helpers.span_trees import enumerate_trees, log_total, random_scores
from tests.helpers.structs import on_both_paths, quick

pytest.importorskip("numba")


@quick
@given(
    seed=st.integers(0, 10_000),
    k=st.sampled_from([1, 5, 40]),
    excluded=st.sampled_from([0.0, 0.2]),
    integer=st.booleans(),
)
def test_lazy_k_best_is_the_k_best_of_the_semiring(seed, k, excluded, integer):
    lengths = torch.tensor([7, 1, 5, 2])
    scores = random_scores(lengths, 3, seed=seed, excluded=excluded)
    if integer:  # many ties
        scores = scores.round()
    lazy, whole = on_both_paths(lambda: SpanTree(scores, lengths).kbest(k))
    assert [[tree for _, tree in best] for best in lazy] == [
        [tree for _, tree in best] for best in whole
    ]
    for ours, theirs in zip(lazy, whole, strict=True):
        assert [p for p, _ in ours] == pytest.approx([p for p, _ in theirs])


def test_all_trees_are_listed_once_in_order():
    lengths = torch.tensor([4])
    scores = random_scores(lengths, 3, seed=3)
    trees = enumerate_trees(scores[0], 4)
    found = SpanTree(scores, lengths).kbest(len(trees) + 10)[0]
    assert [tree for _, tree in found] == [tree for tree, _ in trees]
    log_z = log_total(trees)
    assert [p for p, _ in found] == pytest.approx([score - log_z for _, score in trees])
    assert sum(math.exp(p) for p, _ in found) == pytest.approx(1)


@pytest.mark.parametrize("lean", [-20.0, 20.0])
def test_long_sentences_whose_trees_are_chains_are_listed(lean):
    """Right-branching and left-branching trees are as deep as the sentence is long."""
    n = 700
    starts, ends = torch.triu_indices(n, n)
    deep = (ends == n - 1) if lean > 0 else (starts == 0)
    flat = torch.where(deep, 5.0, -50.0)[:, None]
    found = SpanTree.from_spans(flat, torch.tensor([n])).kbest(20)[0]
    log_probs = [p for p, _ in found]
    assert len({tuple(tree) for _, tree in found}) == 20
    assert log_probs == sorted(log_probs, reverse=True)
    assert len(found[0][1]) >= n - 1
