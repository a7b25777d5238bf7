"""What `LinearChain` and `SpanTree` share: the same questions, answered in the same form."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.distribution import StructuredDistribution
from spacy_psa.structs.tree import SpanTree
from tests.helpers.chains import enumerate_sequences, random_potentials
from tests.helpers.span_trees import enumerate_trees, random_scores
from tests.helpers.structs import INF, TOLERANCE, on_both_paths

LENGTHS = torch.tensor([3, 1, 2])
Truth = list[dict[Hashable, float]]  # of each sentence, probabilities by value, best first


class Family(NamedTuple):
    """A distribution, and what tests must know of it."""

    kind: type[StructuredDistribution]
    scores: Callable[..., Tensor]  # random ones of sentences, with 3 tags or labels
    values: Callable[[Tensor, int], list[tuple[Any, float]]]  # of a sentence, with their scores
    plain: Callable[[Any], Hashable]  # a value that can be compared
    impossible: Callable[[Tensor, int], None]  # leaves a sentence of the scores no value
    constrain: Callable[[Any], Any]  # evidence on the first and the last of `LENGTHS`
    agrees: Callable[[int, Any], bool]  # whether a value of a sentence agrees with it


def exclude_chain(scores: Tensor, sentence: int) -> None:
    scores[sentence, min(1, int(LENGTHS[sentence]) - 1)] = -INF  # no transition, or no tag


def exclude_tree(scores: Tensor, sentence: int) -> None:
    if LENGTHS[sentence] == 1:
        scores[sentence, 0, 1, 1:] = -INF  # a root that could only be null
    else:
        scores[sentence, 1, 2] = -INF  # a word that is nothing


def constrain_chain(chain: LinearChain) -> LinearChain:
    allowed = torch.ones(3, 3, 3, dtype=torch.bool)
    allowed[0, 1, 1] = allowed[2, 0, 1] = False
    return chain.constrain(allowed)


def chain_agrees(sentence: int, tags: tuple[int, ...]) -> bool:
    return tags[1] != 1 if sentence == 0 else sentence == 1 or tags[0] != 1


def constrain_tree(trees: SpanTree) -> SpanTree:
    return trees.constrain(required=[[(1, 3)], [], []], forbidden=[[], [], [(0, 1)]])


def tree_agrees(sentence: int, tree: tuple[tuple[int, int, int], ...]) -> bool:
    spans = {constituent[:2] for constituent in tree}
    return (1, 3) in spans if sentence == 0 else sentence == 1 or (0, 1) not in spans


FAMILIES = {
    "chain": Family(
        kind=LinearChain,
        scores=random_potentials,
        values=lambda scores, n: [tuple(found) for found in enumerate_sequences(scores, n)],
        plain=lambda tags: tuple(torch.as_tensor(tags).tolist()),
        impossible=exclude_chain,
        constrain=constrain_chain,
        agrees=chain_agrees,
    ),
    "tree": Family(
        kind=SpanTree,
        scores=random_scores,
        values=enumerate_trees,
        plain=tuple,
        impossible=exclude_tree,
        constrain=constrain_tree,
        agrees=tree_agrees,
    ),
}


@pytest.fixture(params=FAMILIES.values(), ids=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> Family:
    return request.param


def normalized(scores: dict[Hashable, float]) -> dict[Hashable, float]:
    """Probabilities of values with these scores."""
    top = max(scores.values())
    total = sum(math.exp(score - top) for score in scores.values())
    return {value: math.exp(score - top) / total for value, score in scores.items()}


def truth_of(family: Family, scores: Tensor, lengths: Tensor = LENGTHS) -> Truth:
    return [
        normalized({family.plain(value): score for value, score in family.values(row, n)})
        for row, n in zip(scores, lengths.tolist(), strict=True)
    ]


def cut(family: Family, scores: Tensor, sentence: int) -> Tensor:
    """The scores of one sentence, no larger than it needs."""
    n = int(LENGTHS[sentence])
    own = scores[sentence : sentence + 1]
    return own[:, :n] if family.kind is LinearChain else own[:, : n + 1, : n + 1]


# Types and order


def test_results_are_of_each_sentence_in_order_and_of_the_same_types(path, dtype, family):
    scores = family.scores(LENGTHS, 3, seed=1, dtype=dtype)
    dist = family.kind(scores, LENGTHS)
    assert isinstance(dist, StructuredDistribution) and dist.dtype == dtype
    value = Tensor if family.kind is LinearChain else list
    for numbers in (dist.log_partition, dist.max, dist.entropy, dist.log_prob(dist.argmax)):
        assert numbers.shape == (3,) and numbers.dtype == dtype
    assert len(dist.marginals) == 3 and dist.marginals.dtype == dtype
    assert [type(best) for best in dist.argmax] == [value] * 3
    ranked, drawn = dist.kbest(2), dist.sample(4)
    assert [list(map(type, own)) for own in drawn] == [[value] * 4] * 3
    assert [[(type(p), type(v)) for p, v in own] for own in ranked] == [[(float, value)] * 2] * 3
    for b, truth in enumerate(truth_of(family, scores)):
        assert {family.plain(v) for v in (dist.argmax[b], *drawn[b])} <= truth.keys()
        assert {family.plain(v) for _, v in ranked[b]} <= truth.keys()


def test_a_sentence_has_the_same_results_alone(path, family):
    scores = family.scores(LENGTHS, 3, seed=1)
    together = family.kind(scores, LENGTHS)
    for b in range(3):
        alone = family.kind(cut(family, scores, b), LENGTHS[b : b + 1])
        assert family.plain(alone.argmax[0]) == family.plain(together.argmax[b])
        for name in ("log_partition", "max", "entropy"):
            ours, theirs = getattr(together, name)[b], getattr(alone, name)[0]
            torch.testing.assert_close(ours, theirs)
        ours, theirs = together.kbest(3)[b], alone.kbest(3)[0]
        assert [family.plain(v) for _, v in ours] == [family.plain(v) for _, v in theirs]
        assert [p for p, _ in ours] == pytest.approx([p for p, _ in theirs])


def test_no_sentences_give_empty_results(path, family):
    none = torch.zeros(0, dtype=torch.int64)
    shape = (0, 3, 2, 2) if family.kind is LinearChain else (0, 4, 4, 2)
    dist = family.kind(torch.zeros(shape), none)
    assert dist.argmax == dist.kbest(2) == dist.sample(2) == []
    for numbers in (dist.log_partition, dist.max, dist.entropy, dist.score([]), dist.log_prob([])):
        assert numbers.shape == (0,)
    assert len(dist.marginals) == 0


def test_evidence_gives_a_distribution_of_the_same_kind(path, family):
    dist = family.kind(family.scores(LENGTHS, 3, seed=1), LENGTHS)
    for other in (dist.constrain(), family.constrain(dist)):
        assert type(other) is family.kind and other.lengths.tolist() == LENGTHS.tolist()
    assert torch.equal(dist.constrain().log_partition, dist.log_partition)


# Values and probabilities


@pytest.mark.parametrize("excluded", [0.0, 0.2])
def test_kbest_has_the_log_probabilities_of_its_values(path, dtype, family, excluded):
    dist = family.kind(family.scores(LENGTHS, 3, seed=5, excluded=excluded, dtype=dtype), LENGTHS)
    ranked = [own + own[-1:] * (3 - len(own)) for own in dist.kbest(3)]
    near = {"rel": 0, "abs": 10 * TOLERANCE[dtype]}
    for i in range(3):
        values = [own[i][1] for own in ranked]
        log_probs = [own[i][0] for own in ranked]
        assert dist.log_prob(values).tolist() == pytest.approx(log_probs, **near)
        scores = (dist.log_prob(values) + dist.log_partition).tolist()
        assert dist.score(values).tolist() == pytest.approx(scores, **near)
    best = (dist.log_prob(dist.argmax) + dist.log_partition).tolist()
    assert dist.max.tolist() == pytest.approx(best, **near)


@pytest.mark.parametrize("k", [0, -1])
def test_kbest_of_less_than_one_is_an_error(path, family, k):
    dist = family.kind(family.scores(LENGTHS, 3), LENGTHS)
    with pytest.raises(ValueError, match=f"k must be at least 1, not {k}"):
        dist.kbest(k)


@pytest.mark.parametrize("name", ["score", "log_prob"])
def test_one_value_for_each_sentence_must_be_given(path, family, name):
    dist = family.kind(family.scores(LENGTHS, 3), LENGTHS)
    for values in (dist.argmax[:2], [*dist.argmax, dist.argmax[0]], dist.argmax[::-1]):
        with pytest.raises(ValueError):
            getattr(dist, name)(values)


def test_a_sentence_without_a_possible_value_has_none_and_the_others_have_theirs(path, family):
    scores = family.scores(LENGTHS, 3, seed=1)
    live = family.kind(scores.clone(), LENGTHS)
    family.impossible(scores, 1)
    dist = family.kind(scores, LENGTHS)
    assert dist.log_partition[1] == dist.max[1] == -INF and dist.entropy[1] == 0
    assert not dist.marginals[1].any()
    assert dist.log_prob(live.argmax)[1] == -INF
    assert dist.kbest(2)[1] == [] and len(dist.kbest(2)[2]) == 2
    assert torch.equal(dist.log_partition[[0, 2]], live.log_partition[[0, 2]])
    message = rf"no {dist.structure} is possible for the sentences \[1\]"
    for find in (lambda: dist.argmax, lambda: dist.sample(1)):
        with pytest.raises(ValueError, match=message):
            find()


# Gradients


def scattered(family: Family, scores: Tensor) -> tuple[Callable[[Tensor], Any], Tensor]:
    """The distribution as a function of the finite scores that are read, and these scores."""
    read = scores.isfinite()
    return lambda numbers: family.kind(scores.masked_scatter(read, numbers), LENGTHS), scores[read]


@pytest.mark.parametrize("name", ["log_partition", "entropy", "marginals", "max"])
@pytest.mark.parametrize("excluded", [0.0, 0.2])
def test_gradients_are_those_of_finite_differences(path, family, name, excluded):
    scores = family.scores(LENGTHS, 3, seed=5, excluded=excluded)
    make, numbers = scattered(family, scores)
    assert getattr(make(numbers), name).isfinite().all()
    numbers.requires_grad_()
    assert torch.autograd.gradcheck(lambda given: getattr(make(given), name), numbers)


@pytest.mark.parametrize("name", ["log_prob", "score"])
def test_gradients_with_values_are_those_of_finite_differences(path, family, name):
    scores = family.scores(LENGTHS, 3, seed=5, excluded=0.2)
    values = [ranked[-1][1] for ranked in family.kind(scores, LENGTHS).kbest(2)]
    make, numbers = scattered(family, scores)
    assert getattr(make(numbers), name)(values).isfinite().all()
    numbers.requires_grad_()
    assert torch.autograd.gradcheck(lambda given: getattr(make(given), name)(values), numbers)


@pytest.mark.parametrize("excluded", [0.0, 0.2])
def test_second_derivatives_are_those_of_finite_differences(path, family, excluded):
    make, numbers = scattered(family, family.scores(LENGTHS, 2, seed=13, excluded=excluded))
    numbers.requires_grad_()
    assert torch.autograd.gradgradcheck(lambda given: make(given).log_partition, numbers)


def test_a_sentence_without_a_possible_value_leaves_the_others_their_gradients(path, dtype, family):
    live = family.scores(LENGTHS, 3, seed=1, dtype=dtype)
    values = family.kind(live.clone(), LENGTHS).argmax
    dead = live.clone()
    family.impossible(dead, 0)
    family.impossible(dead, 1)
    gradients = []
    for scores in (dead, live):
        scores.requires_grad_()
        dist = family.kind(scores, LENGTHS)
        loss = dist.log_partition + dist.log_prob(values) + dist.entropy + dist.max
        (loss.sum() + dist.marginals.square().sum()).backward()
        gradients.append(scores.grad)
    assert dist.log_partition.isfinite().all()
    assert gradients[0].isfinite().all() and gradients[1][2].any()
    torch.testing.assert_close(gradients[0][2], gradients[1][2])


def test_values_first_read_without_gradients_still_have_them(path, family):
    scores = family.scores(LENGTHS, 3).requires_grad_()
    dist = family.kind(scores, LENGTHS)
    values = dist.argmax
    with torch.no_grad():
        assert not dist.log_prob(values).requires_grad
    dist.log_prob(values).sum().backward()
    fresh = scores.detach().clone().requires_grad_()
    family.kind(fresh, LENGTHS).log_prob(values).sum().backward()
    torch.testing.assert_close(scores.grad, fresh.grad)


def test_scores_without_gradients_give_results_without(path, family):
    dist = family.kind(family.scores(LENGTHS, 3), LENGTHS)
    values = [dist.log_partition, dist.max, dist.entropy, dist.marginals, dist.score(dist.argmax)]
    assert not any(value.requires_grad for value in values)


def plain_kbest(family: Family, dist: Any, k: int) -> list[list[tuple[float, Hashable]]]:
    return [[(p, family.plain(value)) for p, value in own] for own in dist.kbest(k)]


def test_works_in_inference_mode(path, family):
    scores = family.scores(LENGTHS, 3)
    outside = family.kind(scores, LENGTHS)
    with torch.inference_mode():
        dist = family.kind(scores.clone(), LENGTHS.clone())
        assert plain_kbest(family, dist, 3) == plain_kbest(family, outside, 3)
        assert list(map(family.plain, dist.argmax)) == list(map(family.plain, outside.argmax))
        for name in ("log_partition", "max", "marginals", "entropy"):
            assert torch.equal(getattr(dist, name), getattr(outside, name))
        values = outside.argmax
        assert torch.equal(dist.log_prob(values), outside.log_prob(values))
        assert [len(own) for own in dist.sample(3)] == [3, 3, 3]


def test_scores_may_have_any_layout(path, family):
    scores = family.scores(LENGTHS, 3)
    turned = scores.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
    a, b = family.kind(scores, LENGTHS), family.kind(turned, LENGTHS)
    assert plain_kbest(family, a, 3) == plain_kbest(family, b, 3)
    assert list(map(family.plain, a.argmax)) == list(map(family.plain, b.argmax))
    assert torch.equal(a.marginals, b.marginals)
    assert torch.equal(a.log_partition, b.log_partition)


# Draws


def assert_frequencies(drawn: Iterable[Hashable], truth: dict[Hashable, float]) -> None:
    """Each value is drawn as often as its probability says, within 5 standard deviations; those
    that are expected less than 5 times are taken together."""
    counts = Counter(drawn)
    total = counts.total()
    assert counts.keys() <= truth.keys()
    common = {value: p for value, p in truth.items() if p * total >= 5}
    for value, probability in common.items():
        error = 5 * math.sqrt(probability * (1 - probability) / total) + 1e-6
        assert counts[value] / total == pytest.approx(probability, abs=error)
    rare = total * sum(p for value, p in truth.items() if value not in common)
    assert total - sum(counts[value] for value in common) <= rare + 5 * math.sqrt(rare) + 5


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("excluded", [0.0, 0.2])
def test_samples_have_the_frequencies_of_enumeration(path, dtype, family, excluded):
    scores = family.scores(LENGTHS, 3, seed=6, excluded=excluded, dtype=dtype)
    drawn = family.kind(scores, LENGTHS).sample(8_000, seeded())
    for own, truth in zip(drawn, truth_of(family, scores), strict=True):
        assert len(own) == 8_000
        assert_frequencies(map(family.plain, own), truth)


def test_samples_under_evidence_have_the_frequencies_given_it(path, family):
    scores = family.scores(LENGTHS, 3, seed=6)
    drawn = family.constrain(family.kind(scores, LENGTHS)).sample(20_000, seeded())
    for b, (own, truth) in enumerate(zip(drawn, truth_of(family, scores), strict=True)):
        kept = {value: p for value, p in truth.items() if family.agrees(b, value)}
        total = sum(kept.values())
        assert b == 1 or 0.001 < total < 0.999  # the evidence is news
        given = {value: p / total for value, p in kept.items()}
        assert_frequencies(map(family.plain, own), given)


def test_samples_of_equal_sentences_and_in_succession_are_independent(path, family):
    (scores,) = family.scores(torch.tensor([2]), 2, seed=3)
    lengths = torch.tensor([2, 2])
    first, second = family.kind(torch.stack([scores, scores]), lengths).sample(20_000, seeded())
    first, second = ([family.plain(value) for value in own] for own in (first, second))
    (truth,) = truth_of(family, scores[None], lengths[:1])
    pairs = {(a, b): p * q for a, p in truth.items() for b, q in truth.items()}
    assert_frequencies(zip(first, second, strict=True), pairs)
    assert_frequencies(zip(first[::2], first[1::2], strict=True), pairs)


def test_a_generator_gives_the_same_draws_again(path, family):
    dist = family.kind(family.scores(LENGTHS, 3, seed=6), LENGTHS)

    def draw(seed: int) -> list[list[Hashable]]:
        return [list(map(family.plain, own)) for own in dist.sample(20, seeded(seed))]

    assert draw(3) == draw(3) != draw(4)


def test_without_a_generator_the_global_seed_decides(path, family):
    dist = family.kind(family.scores(LENGTHS, 3, seed=6), LENGTHS)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        first = [family.plain(value) for (value,) in dist.sample()]
        torch.manual_seed(5)
        assert [family.plain(value) for (value,) in dist.sample()] == first


def test_both_paths_draw_the_same(family):
    scores = family.scores(LENGTHS, 3, seed=6)

    def draw() -> list[list[Hashable]]:
        drawn = family.kind(scores, LENGTHS).sample(20, seeded())
        return [list(map(family.plain, own)) for own in drawn]

    ours, theirs = on_both_paths(draw)
    assert ours == theirs


def test_samples_carry_no_gradients_and_leave_the_scores_as_they_are(path, family):
    scores = family.scores(LENGTHS, 3, seed=6)
    read = scores.isfinite()
    before = scores[read].clone()
    scores.requires_grad_()
    family.kind(scores, LENGTHS).sample(3)
    assert scores.grad is None and torch.equal(scores.detach()[read], before)


@pytest.mark.parametrize("n", [0, -1])
def test_fewer_than_one_sample_is_an_error(path, family, n):
    dist = family.kind(family.scores(LENGTHS, 3), LENGTHS)
    with pytest.raises(ValueError, match=f"n must be at least 1, not {n}"):
        dist.sample(n)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_samples_on_a_gpu_have_the_frequencies_of_enumeration(family):
    scores = family.scores(LENGTHS, 3, seed=6)
    generator = torch.Generator("cuda").manual_seed(0)
    drawn = family.kind(scores.cuda(), LENGTHS).sample(10_000, generator)
    for own, truth in zip(drawn, truth_of(family, scores), strict=True):
        assert_frequencies(map(family.plain, own), truth)
