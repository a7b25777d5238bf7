"""LabelLayers against the enumeration of every set of spans that do not overlap their own label."""

import functools
import math

import pytest
import torch

from spacy_psa.structs.label_layers import LabelLayers
from spacy_psa.structs.nested_f1 import best_expected_f1, choices
from spacy_psa.structs.semiring import KMax
from tests.helpers.nested import layered_sets, spans_of
from tests.structs.test_nested_spans import random_spans

INF = float("inf")


def enumerated(scores, lengths, longest):
    """For each sentence, the row of each span, and every possible set with its score."""
    rows = iter(range(len(scores)))
    for n in lengths:
        row = {span: next(rows) for span in spans_of(n, longest)}
        scored = [
            (sum(float(scores[row[s, e], k - 1]) for s, e, k in own), own)
            for own in layered_sets(n, scores.shape[1], longest)
        ]
        yield row, sorted((each for each in scored if each[0] > -INF), key=lambda each: -each[0])


@pytest.mark.parametrize("excluded", [0.0, 0.3])
@pytest.mark.parametrize(("lengths", "labels", "longest"), [([3, 1], 2, None), ([4, 2], 1, 2)])
def test_everything_agrees_with_enumeration(excluded, lengths, labels, longest):
    scores = random_spans(lengths, labels, longest, excluded=excluded)
    dist = LabelLayers(scores, torch.tensor(lengths), longest)
    near = functools.partial(pytest.approx, abs=1e-9)
    marginals = torch.zeros_like(scores)
    best = dist.kbest(6)
    drawn = dist.sample(1000, torch.Generator().manual_seed(0))
    for b, (row, every) in enumerate(enumerated(scores, lengths, longest)):
        log_z = math.log(sum(math.exp(score) for score, _ in every))
        for score, own in every:
            share = math.exp(score - log_z)
            assert drawn[b].count(own) / 1000 == pytest.approx(share, abs=0.08)
            for start, end, label in own:
                marginals[row[start, end], label - 1] += share
        assert dist.log_partition[b].item() == near(log_z)
        assert dist.max[b].item() == near(every[0][0])
        assert dist.argmax[b] == every[0][1]
        entropy = -sum(math.exp(score - log_z) * (score - log_z) for score, _ in every)
        assert dist.entropy[b].item() == near(entropy)
        assert [own for _, own in best[b]] == [own for _, own in every[:6]]
        assert [p for p, _ in best[b]] == near([score - log_z for score, _ in every[:6]])
    torch.testing.assert_close(dist.marginals, marginals)


def test_gradients_hold():
    scores = random_spans([3, 1], 2).requires_grad_()
    gold = [[(0, 2, 1), (1, 3, 2)], []]

    def of(values):
        return LabelLayers(values, torch.tensor([3, 1]))

    for answer in ("log_partition", "entropy", "marginals"):
        assert torch.autograd.gradcheck(lambda x, answer=answer: getattr(of(x), answer), scores)
    assert torch.autograd.gradcheck(lambda x: of(x).log_prob(gold), scores)


def test_evidence_keeps_the_sets_that_agree():
    scores = random_spans([3, 2], 2)
    dist = LabelLayers(scores, torch.tensor([3, 2]))
    given = dist.constrain(required=[[(0, 2, 1)], []], forbidden=[[(1, 3, 2)], [(0, 1)]])
    ranked = given.kbest(5)
    for b, (_, every) in enumerate(enumerated(scores, [3, 2], None)):
        agree = [
            (score, own)
            for score, own in every
            if b or ((0, 2, 1) in own and (1, 3, 2) not in own)
            if not b or not {(0, 1, 1), (0, 1, 2)} & set(own)
        ]
        log_z = math.log(sum(math.exp(score) for score, _ in agree))
        assert given.log_partition[b].item() == pytest.approx(log_z)
        assert [own for _, own in ranked[b]] == [own for _, own in agree[:5]]
    assert given.log_prob([[], []])[0] == -INF
    for each in (dist, given):
        empty = each.log_prob([[], []]).double()
        torch.testing.assert_close(each.empty_log_prob, empty, atol=1e-5, rtol=0)
    with pytest.raises(ValueError, match="needs one label"):
        dist.constrain(required=[[(0, 2)], []])


def test_spans_of_one_label_that_overlap_are_refused():
    dist = LabelLayers(torch.zeros(6, 2), torch.tensor([3]))
    assert dist.score([[(0, 2, 1), (1, 3, 2)]]).item() == 0
    with pytest.raises(ValueError, match=r"sentence 0: .* overlap"):
        dist.score([[(0, 2, 1), (1, 3, 1)]])


@pytest.mark.parametrize("seed", range(4))
def test_no_sets_have_a_better_expected_f1(seed):
    scores = random_spans([3], 2, seed=seed)
    dist = LabelLayers(scores, torch.tensor([3]))
    ((_, every),) = enumerated(scores, [3], None)
    log_z = math.log(sum(math.exp(score) for score, _ in every))
    chance: dict = {}
    for score, own in every:
        for span in own:
            chance[span] = chance.get(span, 0.0) + math.exp(score - log_z)
    gold = sum(chance.values())
    none = sum(math.exp(score - log_z) for score, own in every if not own)

    def f1(own):
        return 2 * sum(chance[span] for span in own) / (len(own) + gold) if own else none

    (own,) = best_expected_f1(choices(dist, torch.eye(2)), [0])
    assert f1(own) == pytest.approx(max(f1(some) for _, some in every))


def test_memory_grows_with_the_length_and_not_its_square():
    sizes = []
    for tokens in (1000, 4000):
        counts = [min(30, tokens - start) for start in range(tokens)]
        dist = LabelLayers(torch.zeros(sum(counts), 2), torch.tensor([tokens]), 30)
        dist = dist.constrain(required=[[(5, 8, 1)]])
        assert dist.row(0, tokens - 2, tokens) == sum(counts) - 2 and dist.row(0, 0, 31) == -1
        assert dist.argmax == [[(5, 8, 1)]] and dist.log_prob([[(0, 31, 2)]]).item() == -INF
        assert dist.marginals[dist.row(0, 5, 8), 0].item() == pytest.approx(1)
        held = {**vars(dist), **vars(dist._cells)}.values()
        sizes.append(sum(each.numel() for each in held if isinstance(each, torch.Tensor)))
    assert sizes[1] < 4.1 * sizes[0]


def test_a_step_of_the_best_sets_grows_with_their_number_and_not_its_square(monkeypatch):
    sizes = []

    class Counted(KMax):
        def times(self, a, b):
            result = super().times(a, b)
            sizes.append(len(result))
            return result

    monkeypatch.setattr("spacy_psa.structs.label_layers.KMax", Counted)
    LabelLayers(random_spans([4], 2), torch.tensor([4])).kbest(50)
    assert sizes == [50, 50, 50, 50, 50 * 50]  # the last one joins two labels
