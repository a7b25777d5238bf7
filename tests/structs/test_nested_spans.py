"""NestedSpans against the enumeration of every set of nested, labelled spans."""

from __future__ import annotations

import functools
import itertools
import math

import pytest
import torch

from spacy_psa.structs.nested_spans import NestedSpans
from tests.helpers.nested import nested_sets, spans_of
from tests.helpers.structs import INF, TOLERANCE

LENGTHS = torch.tensor([4, 1, 3])
CASES = [([4, 1, 3], 2, None), ([1, 5], 1, None), ([4, 2], 2, 2), ([5], 2, 1)]


def random_spans(lengths, labels, longest=None, *, seed=0, excluded=0.0, dtype=torch.float64):
    count = sum(len(spans_of(n, longest)) for n in lengths)
    source = torch.Generator().manual_seed(seed)
    scores = torch.randn(count, labels, generator=source, dtype=dtype)
    gone = torch.rand(count, labels, generator=source) < excluded
    return scores.masked_fill(gone, -INF)


def enumerated(scores, lengths, labels, longest):
    """For each sentence, every possible set with its score, the best first."""
    rows = iter(range(len(scores)))
    for n in lengths:
        row = {span: next(rows) for span in spans_of(n, longest)}
        scored = [
            (sum(float(scores[row[s, e], label - 1]) for s, e, label in own), own)
            for own in nested_sets(n, labels, longest)
        ]
        yield row, sorted((each for each in scored if each[0] > -INF), key=lambda each: -each[0])


@pytest.mark.parametrize("excluded", [0.0, 0.3])
@pytest.mark.parametrize(("lengths", "labels", "longest"), CASES)
def test_everything_agrees_with_enumeration(path, dtype, excluded, lengths, labels, longest):
    scores = random_spans(lengths, labels, longest, excluded=excluded, dtype=dtype)
    dist = NestedSpans(scores, torch.tensor(lengths), longest)
    near = functools.partial(pytest.approx, abs=TOLERANCE[dtype])
    marginals = torch.zeros_like(scores, dtype=torch.float64)
    best = dist.kbest(6)
    for b, (row, every) in enumerate(enumerated(scores, lengths, labels, longest)):
        log_z = math.log(sum(math.exp(score) for score, _ in every))
        for score, own in every:
            for start, end, label in own:
                marginals[row[start, end], label - 1] += math.exp(score - log_z)
        assert dist.log_partition[b].item() == near(log_z)
        assert dist.max[b].item() == near(every[0][0])
        assert dist.argmax[b] == every[0][1]
        entropy = -sum(math.exp(score - log_z) * (score - log_z) for score, _ in every)
        assert dist.entropy[b].item() == near(entropy)
        assert len(best[b]) == min(6, len(every))
        for (log_prob, own), (score, expected) in zip(best[b], every, strict=False):
            assert own == expected
            assert log_prob == near(score - log_z)
    close = {"atol": TOLERANCE[dtype], "rtol": 0}
    torch.testing.assert_close(dist.marginals.double(), marginals, **close)


def test_score_and_log_prob_of_every_set(path):
    scores = random_spans([3, 4], 2, 3, excluded=0.1)
    dist = NestedSpans(scores, torch.tensor([3, 4]), 3)
    known = [{str(own): s for s, own in every} for _, every in enumerated(scores, [3, 4], 2, 3)]
    for first, second in zip(nested_sets(3, 2), itertools.cycle(nested_sets(4, 2))):
        result = dist.log_prob([first, second]) + dist.log_partition
        for own, some, value in zip((first, second), known, result.tolist()):
            assert value == pytest.approx(some.get(str(own), -INF))


def test_sets_that_are_not_nested_are_refused():
    dist = NestedSpans(torch.zeros(6, 2), torch.tensor([3]))
    for wrong in ([(0, 2, 1), (1, 3, 1)], [(0, 2, 1), (0, 2, 2)], [(0, 4, 1)], [(0, 1, 3)]):
        with pytest.raises(ValueError, match=r"sentence 0|label of"):
            dist.score([wrong])


def test_gradients_are_marginals_and_second_order_gradients_hold(path):
    scores = random_spans([4, 1, 3], 2, 3).requires_grad_()

    def of(values):
        return NestedSpans(values, LENGTHS, 3)

    (gradient,) = torch.autograd.grad(of(scores).log_partition.sum(), scores)
    torch.testing.assert_close(gradient, of(scores.detach()).marginals)
    assert torch.autograd.gradcheck(lambda x: of(x).log_partition, scores)
    assert torch.autograd.gradcheck(lambda x: of(x).entropy, scores)
    assert torch.autograd.gradcheck(lambda x: of(x).marginals, scores)
    gold = [[(0, 3, 1), (1, 3, 2)], [], [(0, 1, 2)]]
    assert torch.autograd.gradcheck(lambda x: of(x).log_prob(gold), scores)


@pytest.mark.parametrize("longest", [None, 3])
def test_evidence_keeps_the_sets_that_agree(path, longest):
    lengths = [4, 1, 3]
    scores = random_spans(lengths, 2, longest)
    required = [[(1, 3)], [], [(0, 2, 2)]]
    forbidden = [[(1, 2, 1), (0, 1)], [(0, 1, 1)], []]
    dist = NestedSpans(scores, LENGTHS, longest)
    given = dist.constrain(required=required, forbidden=forbidden)
    result = given.kbest(9)
    for b, (_, every) in enumerate(enumerated(scores, lengths, 2, longest)):
        agree = [
            (score, own)
            for score, own in every
            if all(any(s[: len(asked)] == asked for s in own) for asked in required[b])
            and not any(s[: len(asked)] == asked for asked in forbidden[b] for s in own)
        ]
        log_z = math.log(sum(math.exp(score) for score, _ in agree))
        assert given.log_partition[b].item() == pytest.approx(log_z)
        assert [own for _, own in result[b]] == [own for _, own in agree[:9]]
    for each in (dist, given):
        empty = each.log_prob([[], [], []]).double()
        torch.testing.assert_close(each.empty_log_prob, empty, atol=1e-5, rtol=0)


def test_the_likelihood_is_the_partition_over_consistent_trees(path):
    """Fu2021: observed spans must be there, the other nodes are latent."""
    scores = random_spans([4, 1, 3], 2)
    dist = NestedSpans(scores, LENGTHS)
    gold = [[(0, 3, 1), (1, 3, 2)], [], [(0, 1, 2)]]
    latent = torch.ones(len(scores), 1, dtype=torch.bool)
    seen = torch.zeros(len(scores), 2, dtype=torch.bool)
    for b, own in enumerate(gold):
        for start, end, label in own:
            seen[dist.row(b, start, end), label - 1] = True
    consistent = dist.constrain(latent & seen, required=gold)
    expected = consistent.log_partition - dist.log_partition
    torch.testing.assert_close(dist.log_prob(gold), expected)


def test_samples_have_their_probabilities(path):
    scores = random_spans([2, 1], 2)
    dist = NestedSpans(scores, torch.tensor([2, 1]))
    drawn = dist.sample(4000, torch.Generator().manual_seed(1))
    for b, ranked in enumerate(dist.kbest(20)):
        for log_prob, own in ranked:
            share = drawn[b].count(own) / 4000
            assert share == pytest.approx(math.exp(log_prob), abs=0.03)


def test_cross_entropy_with_itself_is_the_entropy(path):
    dist = NestedSpans(random_spans([4, 1, 3], 2), LENGTHS)
    result = dist.log_partition - dist.expected_score(dist)
    torch.testing.assert_close(result, dist.entropy)


def test_an_impossible_sentence_does_not_touch_the_others(path):
    scores = random_spans([2, 3], 1)
    dist = NestedSpans(scores, torch.tensor([2, 3])).constrain(
        required=[[(0, 1)], []], forbidden=[[(0, 1)], []]
    )
    alone = NestedSpans(scores[3:], torch.tensor([3]))
    assert dist.log_partition[0] == -INF
    assert dist.log_partition[1] == pytest.approx(alone.log_partition[0])
    assert not dist.marginals[:3].any()
    assert dist.max.tolist() == [-INF, alone.max.item()]
    with pytest.raises(ValueError, match=r"no set of nested spans .* \[0\]"):
        dist.argmax  # noqa: B018
