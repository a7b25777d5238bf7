"""The tree with the best expected F1, against the enumeration of all trees."""

import math

import pytest
import torch

from spacy_psa.structs.tree import SpanTree
from spacy_psa.structs.tree_f1 import best_expected_f1
from tests.helpers.span_trees import enumerate_trees, log_total, random_scores

# Labels of the chart by the constituents in them: one, two, a chain of both, none.
PARTS = torch.tensor([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=torch.float64)


def members(tree):
    """The constituents of a tree of the chart, with every part of a chain."""
    return [
        (start, end, part)
        for start, end, label in tree
        for part in range(2)
        if PARTS[label - 1, part]
    ]


def expected_f1(trees, log_z):
    """The ratio of expected right constituents to all, for each tree, in plain loops."""
    probability: dict = {}
    for tree, score in trees:
        for each in members(tree):
            probability[each] = probability.get(each, 0.0) + math.exp(score - log_z)
    gold = sum(probability.values())
    found = []
    for tree, _ in trees:
        own = members(tree)
        right = sum(probability[each] for each in own)
        found.append(2 * right / (len(own) + gold) if len(own) + gold else 1.0)
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("excluded", [0.0, 0.15])
@pytest.mark.parametrize("scale", [0.3, 1.5])
def test_no_tree_has_a_better_expected_f1(path, seed, excluded, scale):
    lengths = torch.tensor([3, 1, 2])
    scores = random_scores(lengths, 5, seed=seed, excluded=excluded, scale=scale)
    scores[..., 1:][torch.isinf(scores[..., 1:])] = -torch.inf
    dist = SpanTree(scores, lengths)
    if (dist.max == -torch.inf).any():
        return
    found, f1 = best_expected_f1(dist, PARTS)
    for b, n in enumerate(lengths.tolist()):
        trees = enumerate_trees(scores[b], n)
        every = expected_f1(trees, log_total(trees))
        assert f1[b].item() == pytest.approx(max(every))
        at = [tree for tree, _ in trees].index(found[b])
        assert every[at] == pytest.approx(max(every))


def test_it_is_not_the_most_probable_tree_where_they_differ():
    """Many unlikely trees share a constituent that the most probable one lacks."""
    differ = 0
    for seed in range(20):
        lengths = torch.tensor([4])
        dist = SpanTree(random_scores(lengths, 3, seed=seed, scale=0.5), lengths)
        found, _ = best_expected_f1(dist, torch.eye(2, dtype=torch.float64))
        differ += found != dist.argmax
    assert differ > 5


def test_a_certain_tree_is_found_with_f1_one(path):
    tree = [(0, 4, 1), (0, 2, 3), (2, 4, 2)]
    flat = torch.full((10, 4), -40.0)
    index = {
        (i, j): k for k, (i, j) in enumerate((i, j) for i in range(4) for j in range(i + 1, 5))
    }
    for start, end, label in tree:
        flat[index[start, end], label - 1] = 40.0
    found, f1 = best_expected_f1(SpanTree.from_spans(flat, torch.tensor([4])), PARTS)
    assert found == [tree] and f1.item() == pytest.approx(1.0)


def test_impossible_sentences_are_an_error():
    dist = SpanTree(torch.full((1, 3, 3, 3), -torch.inf), torch.tensor([2]))
    with pytest.raises(ValueError, match=r"no tree is possible for the sentences \[0\]"):
        best_expected_f1(dist, torch.eye(2))
