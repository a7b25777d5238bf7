"""A chart label with the same constituent several times, as NP over NP, and expected F1."""

import math
from collections import Counter

import pytest
import torch

from spacy_psa.pipeline.parser.trees import label_parts
from spacy_psa.structs.tree import SpanTree
from spacy_psa.structs.tree_f1 import best_expected_f1
from tests.helpers.span_trees import enumerate_trees, log_total, random_scores

LABELS = ["TOP", "NP", "NP NP NP", "NP S"]


def constituents(tree):
    """The constituents of a tree, each as often as it is there."""
    chains = [(i, j, [] if label == 1 else LABELS[label - 1].split()) for i, j, label in tree]
    return Counter((i, j, name) for i, j, chain in chains for name in chain)


@pytest.mark.parametrize("seed", range(8))
def test_a_constituent_that_is_there_once_is_right_once(seed):
    lengths = torch.tensor([2, 1])
    scores = random_scores(lengths, len(LABELS) + 1, seed=seed, scale=1.5)
    found, f1 = best_expected_f1(SpanTree(scores, lengths), label_parts(LABELS))
    for b, n in enumerate(lengths.tolist()):
        trees = enumerate_trees(scores[b], n)
        log_z = log_total(trees)
        true = [(constituents(tree), math.exp(score - log_z)) for tree, score in trees]
        gold = sum(p * each.total() for each, p in true)
        every = []
        for own, _ in true:
            right = sum(p * (own & each).total() for each, p in true)
            size = own.total() + gold
            every.append(2 * right / size if size else 1.0)
        assert f1[b].item() == pytest.approx(max(every))
        assert every[[tree for tree, _ in trees].index(found[b])] == pytest.approx(max(every))
