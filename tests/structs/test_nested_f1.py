"""The sets with the best expected F1 of a document, against the enumeration of all sets."""

import itertools
import math

import pytest
import torch

from spacy_psa.structs.nested_f1 import best_expected_f1, choices
from spacy_psa.structs.nested_spans import NestedSpans
from tests.structs.test_nested_spans import enumerated, random_spans

PLAIN = torch.eye(2, dtype=torch.float64)
JOINED = torch.tensor([[1, 0], [1, 1]], dtype=torch.float64)  # A, A + B


def members(own, parts):
    return [(s, e, part) for s, e, k in own for part in range(2) if parts[k - 1, part]]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("parts", [PLAIN, JOINED], ids=["plain", "joined"])
@pytest.mark.parametrize("excluded", [0.0, 0.2])
def test_no_sets_have_a_better_expected_f1(path, seed, parts, excluded):
    lengths = [3, 1, 2]
    scores = random_spans(lengths, 2, seed=seed, excluded=excluded)
    dist = NestedSpans(scores, torch.tensor(lengths))
    sets = best_expected_f1(choices(dist, parts), [4, 4, 2])
    every = [sets for _, sets in enumerated(scores, lengths, 2, None)]
    for numbers, own in (((0, 1), sets[:2]), ((2,), sets[2:])):
        chance: dict = {}
        for b in numbers:
            log_z = math.log(sum(math.exp(score) for score, _ in every[b]))
            for score, some in every[b]:
                for member in members(some, parts):
                    chance[b, member] = chance.get((b, member), 0.0) + math.exp(score - log_z)
        gold = sum(chance.values())
        none = 1.0
        for b in numbers:
            log_z = math.log(sum(math.exp(score) for score, _ in every[b]))
            none *= sum(math.exp(score - log_z) for score, some in every[b] if not some)

        def f1(sets, numbers=numbers, chance=chance, gold=gold, none=none):
            held = [(b, m) for b, some in zip(numbers, sets) for m in members(some, parts)]
            return 2 * sum(chance[each] for each in held) / (len(held) + gold) if held else none

        options = itertools.product(*([some for _, some in every[b]] for b in numbers))
        assert f1(own) == pytest.approx(max(map(f1, options)))


def test_no_sentences_have_no_sets():
    assert best_expected_f1([], []) == []


def test_what_is_required_stays():
    dist = NestedSpans(torch.full((3, 1), -9.0), torch.tensor([2])).constrain(required=[[(0, 1)]])
    assert best_expected_f1(choices(dist, torch.ones(1, 1)), [0]) == [[(0, 1, 1)]]
